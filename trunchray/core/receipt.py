"""What a worker hands back for a shard: which stored parts hold its rows. Rows themselves never travel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from pydantic import Field

from trunchray.core.frozen import Frozen
from trunchray.core.trial import Outcome


class Mark(NamedTuple):
    """What a receipt keeps of a row. `retryable`: an error that asking again could mend."""

    outcome: Outcome
    tokens: int
    retryable: bool = False


class Counts(Frozen):
    """Rows by outcome, and the tokens they used. `retryable` of the errors could be mended by asking again."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    tokens: int = 0
    retryable: int = 0

    @property
    def rows(self) -> int:
        return self.passed + self.failed + self.error

    @classmethod
    def of(cls, marks: Iterable[Mark]) -> Self:
        """The counts of rows."""
        counts = {"passed": 0, "failed": 0, "error": 0, "tokens": 0, "retryable": 0}
        for mark in marks:
            counts[mark.outcome] += 1
            counts["tokens"] += mark.tokens
            counts["retryable"] += mark.retryable
        return cls(**counts)

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields})


class PartRef(Frozen):
    """A stored part: its path in the run folder, how many rows it has, and what its bytes must hash to."""

    path: str
    rows: int = Field(ge=0)
    sha256: str


class Receipt(Frozen):
    """The parts of one shard. For a trial held by several, the row of the part listed last counts."""

    shard: str
    attempt: int
    parts: tuple[PartRef, ...]
    keys_digest: str
    """Of the set of trial keys that the parts hold: equal to the plan's when the shard is whole."""
    counts: Counts
    """Of the rows that count."""
    missing: int = Field(default=0, ge=0)
    """Planned trials that no part holds."""
    damaged: tuple[str, ...] = ()
    """Stored parts that could not be read and were left out."""
    warnings: tuple[str, ...] = ()
    """What its worker got over by itself."""
