"""What one check says of one attempt, or of all attempts at a case together."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from trunchray.core.decisions import Method
from trunchray.core.frozen import Frozen


class CheckResult(Frozen):
    """A check that could not be done is one that failed, and says so in its explanation."""

    passed: bool = Field(validation_alias="pass", serialization_alias="pass")
    value: float = Field(ge=0, le=1)
    explanation: str | None = None
    probabilities: dict[str, float] | None = None
    """By answer, of a check that a judge decides."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """The judge's probability of the answer it thinks likeliest."""
    method: Method | None = None
    """Where a language model's probabilities come from, as in `Decision`; None too where attempts differ in it."""
    escalated: bool = False
    """Somebody else was asked, because the judge was unsure."""

    model_config = {"validate_by_name": True, "validate_by_alias": True, "serialize_by_alias": True}

    @classmethod
    def failed(cls, explanation: str) -> CheckResult:
        """A check that fails closed."""
        return cls(passed=False, value=0.0, explanation=explanation)

    def to_json(self) -> dict[str, JsonValue]:
        """`pass` and `value`, and of the rest what there is."""
        shown: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return {"pass": self.passed, "value": self.value} | shown
