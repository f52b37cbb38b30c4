"""The shapes of evaluators: what a case asks of an answer, as data.

How each is decided lives in `trunchray.evaluators`; here is only what an author may write, and what can be refused
before a model is called.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, JsonValue, field_validator

from trunchray.core import javascript
from trunchray.core.frozen import CamelFrozen


class NonEmpty(CamelFrozen):
    """The answer has text in it."""

    kind: Literal["non_empty"] = "non_empty"


class _Expecting(CamelFrozen):
    expected: str

    @field_validator("expected")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not javascript.trim(value):
            raise ValueError("must not be empty after trimming")
        return value


class Exact(_Expecting):
    """The trimmed answer equals the trimmed `expected`."""

    kind: Literal["exact"] = "exact"


class Contains(_Expecting):
    """The lower-cased answer includes the lower-cased, trimmed `expected`."""

    kind: Literal["contains"] = "contains"


class AnswerBank(CamelFrozen):
    """No forbidden answer is in the answer, and some accepted one is; both sides normalised."""

    kind: Literal["answer_bank"] = "answer_bank"
    answers: tuple[str, ...] = Field(min_length=1)
    forbidden_answers: tuple[str, ...] = ()

    @field_validator("answers", "forbidden_answers")
    @classmethod
    def _none_blank(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for index, value in enumerate(values):
            if not javascript.normalise(value):
                raise ValueError(f"entry {index} ({value!r}) is empty after normalisation")
        return values


class Gsm8k(CamelFrozen):
    """The number after `####` equals `expected`, compared as text."""

    kind: Literal["gsm8k"] = "gsm8k"
    expected: str

    @field_validator("expected")
    @classmethod
    def _plain_number(cls, value: str) -> str:
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
            raise ValueError(f"{value!r} is not a plain number such as '41' or '-0.5' (no commas, no blanks)")
        return value


class ArgumentRule(CamelFrozen):
    """What one argument of a planned call may be; `accepted_values` None accepts any value."""

    required: bool = True
    accepted_values: tuple[JsonValue, ...] | None = None


class PlannedCall(CamelFrozen):
    """One call a plan waits for."""

    tool_name: str = Field(min_length=1)
    arguments: dict[str, ArgumentRule] = {}
    extra_arguments: Literal["forbid", "allow"] = "forbid"


class Alternative(CamelFrozen):
    """One acceptable set of calls. No calls and extra calls forbidden means: no tool may be called."""

    order: Literal["ordered", "unordered"] = "ordered"
    calls: tuple[PlannedCall, ...]
    extra_calls: Literal["forbid", "allow"] = "forbid"


class ToolCallSyntax(CamelFrozen):
    """The observed tool calls satisfy at least one alternative."""

    kind: Literal["tool_call_syntax"] = "tool_call_syntax"
    version: Literal[1]
    alternatives: tuple[Alternative, ...] = Field(min_length=1)

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(call.tool_name for alternative in self.alternatives for call in alternative.calls)


class Custom(CamelFrozen):
    """The author's own function, run in a sandbox. `evaluator_key` is `<source path>#<export>`, as in the manifest."""

    kind: Literal["custom"] = "custom"
    evaluator_key: str


class Python(CamelFrozen):
    """A check of a Python evaluation, which is code or a question for a judge. `digest` is of all that decides it."""

    kind: Literal["python"] = "python"
    digest: str


class Completed(CamelFrozen):
    """The attempt at a skill eval ended as it should; nobody grades what it made, so there is no verdict."""

    kind: Literal["completed"] = "completed"


class RubricLine(CamelFrozen):
    """A grader found this expectation of a skill's author met."""

    kind: Literal["rubric"] = "rubric"
    text: str


class Triggered(CamelFrozen):
    """A tool that was asked a query loaded the skill, or, if `expected` is false, did not."""

    kind: Literal["triggered"] = "triggered"
    expected: bool


Check = Annotated[
    NonEmpty
    | Exact
    | Contains
    | AnswerBank
    | Gsm8k
    | ToolCallSyntax
    | Custom
    | Python
    | Completed
    | RubricLine
    | Triggered,
    Field(discriminator="kind"),
]
