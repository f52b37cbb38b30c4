"""What a gate allows, as data."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from trunchray.core.frozen import Frozen
from trunchray.core.stats import CONFIDENCE

Tier = Literal["critical", "supporting", "advisory"]
LimitName = Literal["miss", "drop", "min_pass_rate", "max_drop", "max_error_share", "min_coverage"]

COVERAGE = 0.95
"""The floor where none is given."""


class Limit(Frozen):
    """What is allowed of one eval, or of all together. A bare number n stands for `{miss: n, drop: 0}`."""

    tier: Tier = "critical"
    """`critical`: has to be shown to hold. `supporting`: must not be shown to be broken, and an interval that leaves it
    open passes. `advisory`: is only told."""
    miss: int | None = Field(default=None, ge=0)
    """Cases that may be missed. A case is missed when a graded attempt at it failed."""
    drop: int | None = Field(default=None, ge=0)
    """Cases that may be missed now though every graded attempt at them passed in the run compared with; 0 where `miss`
    is given. Cases that were mended do not make up for them."""
    min_pass_rate: float | None = Field(default=None, ge=0, le=1)
    """What the pass rate must not be below; 1 is refused: no number of cases shows that, and `miss: 0` asks for it."""
    max_drop: float | None = Field(default=None, ge=0, lt=1)
    """By how much, as a share of 1, the pass rate may be below that of the run compared with."""
    max_error_share: float | None = Field(default=None, ge=0, le=1)
    """Errors as a share of the planned trials."""
    min_coverage: float | None = Field(default=None, ge=0, le=1)
    """Graded trials as a share of the planned ones, below which nothing is concluded; the gate's where left out."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return {"miss": value} if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("min_pass_rate")
    @classmethod
    def _can_be_shown(cls, value: float | None) -> float | None:
        if value == 1:
            raise ValueError("no number of cases shows a pass rate of 1; to ask that every case passes, give miss: 0")
        return value

    @property
    def dropped(self) -> int | None:
        """`drop`, or what `miss` implies of it."""
        return 0 if self.drop is None and self.miss is not None else self.drop

    @property
    def limits_anything(self) -> bool:
        """Whether any field but the tier is given."""
        return any(value is not None for name, value in self if name != "tier")


class Gate(Frozen):
    """What a run may do to pass. Limits hold for each model."""

    confidence: float = Field(default=CONFIDENCE, ge=0, lt=1)
    """Of the intervals of rates; 0 takes the rates as they are."""
    min_coverage: float = Field(default=COVERAGE, ge=0, le=1)
    models: tuple[str, ...] | None = Field(default=None, min_length=1)
    """The models that are judged; all of the run when left out."""
    overall: Limit | None = None
    """For all evals of the run together."""
    each: Limit | None = None
    """For every eval that `evals` does not name."""
    evals: dict[str, Limit] = {}

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        named = (self.overall, self.each, *self.evals.values())
        if not any(limit is not None and limit.limits_anything for limit in named):
            raise ValueError("limits nothing; give overall, each or evals, for example each: {miss: 0}")
        return self

    def of(self, eval_id: str | None) -> Limit | None:
        """The limit of an eval, or of all together (None)."""
        return self.overall if eval_id is None else self.evals.get(eval_id, self.each)
