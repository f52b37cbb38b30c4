"""One attempt of a Python task at a case: what went in, what happened on the way, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from trunchray.core.plain import plain_or_printed

StepKind = Literal["llm", "tool", "step"]
OutputForm = Literal["text", "json", "repr"]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One thing that a task did: a model call (`llm`, without a name), a tool call, or a step of a workflow.

    What it does not know is None. `ms` is in milliseconds.
    """

    kind: StepKind
    name: str | None = None
    input: Any = None
    output: Any = None
    error: str | None = None
    ms: float | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """What is known of it; a value that has no JSON form as what Python prints of it."""
        found: dict[str, JsonValue] = {"kind": self.kind}
        for name in ("name", "input", "output", "error", "ms"):
            if (value := getattr(self, name)) is not None:
                found[name] = plain_or_printed(value)
        return found


@dataclass(frozen=True, slots=True)
class Returned:
    """What came of running a task once. `error` says why there is no output; None when there is one."""

    output: Any = None
    steps: tuple[StepRecord, ...] = ()
    ms: float = 0.0
    """Milliseconds that the task took by itself."""
    error: str | None = None
    form: OutputForm = "text"
    """How the text that is stored of the output is to be read: as it is, as JSON, or as what Python prints."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a check is given of one attempt. `output` is whatever the task returned."""

    input: JsonValue
    output: Any
    expected_output: JsonValue = None
    steps: tuple[StepRecord, ...] = ()
    ms: float = 0.0
    has_expected_output: bool = False
    """Whether the case has an `expectedOutput`, which may be null."""

    @classmethod
    def of(cls, input: JsonValue, returned: Returned, expected: tuple[JsonValue, ...]) -> RunRecord:
        """What came of a run; `expected` has the case's `expectedOutput`, or is empty where it has none."""
        return cls(
            input=input,
            output=returned.output,
            expected_output=expected[0] if expected else None,
            steps=returned.steps,
            ms=returned.ms,
            has_expected_output=bool(expected),
        )
