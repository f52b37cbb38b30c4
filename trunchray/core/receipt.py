"""What a worker hands back for a shard: which stored parts hold its rows. Rows themselves never travel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from pydantic import Field

from trunchray.core.budget import Spend
from trunchray.core.frozen import Frozen
from trunchray.core.run import Aim
from trunchray.core.trial import Outcome


class Mark(NamedTuple):
    """What a receipt keeps of a row. `retryable`: an error that asking again could mend; `cost` is in nano-dollars.

    `gradable`: an error of grading alone, whose answer is stored. `not_graded`: no error, though there is no verdict,
    because nobody was named who grades. A row that reuses a stored answer has cost nothing.
    """

    outcome: Outcome
    tokens: int
    retryable: bool = False
    cost: int = 0
    gradable: bool = False
    not_graded: bool = False

    @property
    def spent(self) -> Spend:
        return Spend(self.cost, self.tokens)


def owes(aim: Aim, newest: Mark | None) -> bool:
    """Whether a trial is to be done, whose `newest` row this is; None where it has none."""
    match aim:
        case "run":
            return newest is None or newest.retryable
        case "retry":
            return newest is not None and newest.retryable
        case "regrade":
            return newest is not None and newest.gradable


class Counts(Frozen):
    """Rows by outcome, and what they cost. `retryable` of the errors could be mended by asking again."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    not_graded: int = 0
    """Answers that nobody was named to grade; they are none of the errors."""
    tokens: int = 0
    """Read and written by the model."""
    retryable: int = 0
    cost: int = 0
    """Nano-dollars (see `core.budget`); a row whose price is unknown adds none."""

    @property
    def rows(self) -> int:
        return self.passed + self.failed + self.error + self.not_graded

    @property
    def spent(self) -> Spend:
        return Spend(self.cost, self.tokens)

    @classmethod
    def of(cls, marks: Iterable[Mark]) -> Self:
        """The counts of rows."""
        counts = dict.fromkeys(cls.model_fields, 0)
        for mark in marks:
            counts["not_graded" if mark.not_graded else mark.outcome] += 1
            counts["tokens"] += mark.tokens
            counts["retryable"] += mark.retryable
            counts["cost"] += mark.cost
        return cls(**counts)

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields})

    def __sub__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) - getattr(other, name) for name in Counts.model_fields})


class InHand(NamedTuple):
    """What a worker has of a shard: its rows, its trials in flight, and how many of the rows it asks for once more."""

    counts: Counts
    in_flight: int = 0
    again: int = 0


@dataclass(slots=True)
class Marks:
    """The rows of a shard by trial key, the newest of each, and what the ones before them had cost."""

    newest: dict[str, Mark] = field(default_factory=dict[str, Mark])
    replaced: Spend = field(default_factory=Spend)
    errors: Counter[str] = field(default_factory=Counter[str])
    """How many rows of a trial ended in an error, the newest included."""

    def put(self, key: str, mark: Mark) -> None:
        """A row that came later replaces the one before, which was paid for nonetheless."""
        if before := self.newest.get(key):
            self.replaced += before.spent
        self.newest[key] = mark
        if mark.outcome == "error":
            self.errors[key] += 1


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
    plan_digest: str = ""
    """Of all the shard's trial keys, held or not; empty in receipts of versions that committed whole shards only."""
    counts: Counts
    """Of the rows that count."""
    replaced: Spend = Spend()
    """What rows had cost that newer ones replace: paid for, but counted nowhere else."""
    missing: int = Field(default=0, ge=0)
    """Planned trials that no part holds."""
    undone: int = Field(default=0, ge=0)
    """Trials that its worker was to do and has not done, because it was stopped or may begin no more."""
    damaged: tuple[str, ...] = ()
    """Stored parts that could not be read and were left out."""
    warnings: tuple[str, ...] = ()
    """What its worker got over by itself."""

    @property
    def spent(self) -> Spend:
        """All that was paid for the shard, as far as its parts tell."""
        return self.counts.spent + self.replaced

    def is_of(self, plan_digest: str | None) -> bool:
        """Whether it is of the shard whose trial keys have this digest."""
        return (self.plan_digest or self.keys_digest) == plan_digest and (
            self.missing > 0 or self.keys_digest == plan_digest
        )

    def holds_as_much(self, other: Receipt) -> bool:
        """Whether it may count in the place of another one of the same run."""
        return self.is_of(other.plan_digest or other.keys_digest) and self.missing <= other.missing
