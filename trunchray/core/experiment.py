"""An experiment: what each check made of each case, and nothing that changes from run to run by itself.

Format 2 is `{"format": 2, "name", "about"?, "cases": {case: {scorer: {"pass", "value", "probabilities"?,
"confidence"?}}}}`: cases in the order of the data, scorers in that of the spec, no times, no inputs or outputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from trunchray.core.check_result import CheckResult
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen, first_problem
from trunchray.errors import UsageError

FORMAT = 2


class _Tolerant(Frozen):
    """Ignores keys that it does not know; refuses numbers that JSON cannot carry."""

    model_config = ConfigDict(
        extra="ignore", allow_inf_nan=False, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class CheckRecord(_Tolerant):
    """What is kept of a check of a case."""

    passed: bool = Field(validation_alias="pass", serialization_alias="pass")
    value: float = Field(ge=0, le=1)
    probabilities: dict[str, float] | None = None
    """By answer, of a check that a judge decides."""
    confidence: float | None = Field(default=None, ge=0, le=1)

    @classmethod
    def of(cls, result: CheckResult) -> CheckRecord:
        return cls(
            passed=result.passed,
            value=result.value,
            probabilities=result.probabilities,
            confidence=result.confidence,
        )

    def to_json(self) -> dict[str, JsonValue]:
        out: dict[str, JsonValue] = {"pass": self.passed, "value": _number(self.value)}
        if self.probabilities is not None:
            out["probabilities"] = {answer: _number(p) for answer, p in self.probabilities.items()}
        if self.confidence is not None:
            out["confidence"] = _number(self.confidence)
        return out


class Experiment(_Tolerant):
    """What is compared with a later run. A check that was skipped is absent from its case."""

    name: str
    about: dict[str, JsonValue] | None = None
    """What the author says of it, such as the model."""
    cases: dict[str, dict[str, CheckRecord]]

    @classmethod
    def parse(cls, value: object, where: str) -> Self:
        """An experiment as it is written; `where` begins messages.

        Raises:
            UsageError: it is of another format, or not of the shape of this one.
        """
        if not isinstance(value, Mapping):
            raise UsageError(f"{where}: {excerpt(repr(value), 60)} is not an experiment; {_REMEDY}")
        found: Any = value.get("format")
        if isinstance(found, bool) or found != FORMAT:
            said = f"it has format {excerpt(repr(found), 60)}" if "format" in value else "it names no format"
            raise UsageError(f"{where}: {said}, and only format {FORMAT} can be read; {_REMEDY}")
        try:
            return cls.model_validate_json(json.dumps(value, allow_nan=False), strict=True)
        except ValidationError as e:
            raise UsageError(f"{where}: {first_problem(e)}; {_REMEDY}") from e
        except (TypeError, ValueError, RecursionError) as e:
            raise UsageError(f"{where}: it is not JSON: {e}; {_REMEDY}") from e

    def passed(self, case: str, scorer: str) -> bool | None:
        """Whether the case passed the check; None when it has no such case or check."""
        record = self.cases.get(case, {}).get(scorer)
        return record.passed if record else None

    def to_json(self) -> dict[str, JsonValue]:
        about: dict[str, JsonValue] = {} if self.about is None else {"about": self.about}
        cases: dict[str, JsonValue] = {
            case: {scorer: record.to_json() for scorer, record in records.items()}
            for case, records in self.cases.items()
        }
        return {"format": FORMAT, "name": self.name, **about, "cases": cases}

    def to_bytes(self) -> bytes:
        """The content of its file."""
        return (json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


_REMEDY = "compare with what `save` of this evaluation wrote, or leave `compare` out"


def _number(value: float) -> int | float:
    """As JSON in other languages writes it: 1, not 1.0."""
    return int(value) if value.is_integer() else value
