"""A trial (what to do), its trace (what happened), its verdict (what that is worth), and all three as one row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from trunchray.core.frozen import CamelFrozen, Frozen
from trunchray.core.record import Returned
from trunchray.errors import Boundary, TrialError

KEY_FORMAT = "trunchray.trial/1"
"""Part of every trial key: a key computed another way must be another key."""

Outcome = Literal["passed", "failed", "error"]
FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]


def trial_key(release_digest: str, case_id: str, agent_digest: str, attempt: int) -> str:
    """The identity of a trial, 64 hex digits. `attempt` counts from 1."""
    return hashlib.sha256(f"{KEY_FORMAT}\n{release_digest}\n{case_id}\n{agent_digest}\n{attempt}".encode()).hexdigest()


class Trial(Frozen):
    """One case put to one agent for the `attempt`-th time (from 1)."""

    key: str
    case_id: str
    agent: str
    attempt: int = Field(ge=1)


class ToolCall(CamelFrozen):
    """One tool call as the model made it; `input` is the raw text when the arguments were not valid JSON."""

    tool_call_id: str
    tool_name: str
    input: JsonValue
    output: JsonValue = None
    error: str | None = None

    def observed(self) -> dict[str, JsonValue]:
        """The form a custom evaluator sees: `output` and `error` only where the call has one."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Usage(CamelFrozen):
    """Tokens, summed over the model calls of a trial. None means the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @property
    def counted(self) -> bool:
        """Whether the provider said what there is to pay for."""
        return self.input_tokens is not None and self.output_tokens is not None

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: _sum(getattr(self, name), getattr(other, name)) for name in Usage.model_fields})


def _sum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a trace.

    A model call, a tool call, a limit that was reached, what was observed of a Python task (its `output` is the JSON
    form of a `StepRecord`), or the attempt of a coding tool (its `output` has the attempt's `folder`, its `path` in the
    run, its `status`, and whether the skill was `loaded`).

    Not validated: a step is made here, and going through all it holds costs more than the rest of recording it.
    """

    kind: Literal["model", "tool", "limit", "observed", "attempt"]
    name: str
    input: JsonValue = None
    output: JsonValue = None


class Trace(Frozen):
    """What an agent did with one case. Times are in seconds."""

    output: str
    """The final assistant text; empty when the model ended without text."""
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    """In the order the model made them, refused ones included."""
    steps: tuple[Step, ...] = ()
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None when the price is unknown."""
    model: str | None = None
    """The model's name as the provider returned it."""
    request_id: str | None = None
    """The provider's id of the last request."""
    retries: int = 0
    waited: float = 0
    """Time spent waiting for the provider's rate limit."""
    model_seconds: float = 0
    tools_seconds: float = 0
    cache_hits: int = 0
    """Model calls that the cache answered. They are in `usage` as if they had been made, and cost nothing."""
    saved_tokens: int = 0
    """Tokens of `usage` that the cache saved."""
    returned: Returned | None = Field(default=None, exclude=True)
    """What a Python task returned, for checks in the same process; it is not stored."""

    @property
    def spent_tokens(self) -> int:
        return self.usage.total_tokens - self.saved_tokens


class Verdict(Frozen):
    """What an answer is worth."""

    passed: bool
    score: float = Field(ge=0, le=1)
    message: str | None = None
    details: JsonValue = None


BLOCKING = frozenset({"authentication", "quota_exhausted"})
"""Failures of a provider that no repetition mends, whatever is asked of it."""

MENDED_OUTSIDE = BLOCKING | {"not_found"}
"""Failures for which it is no use to try again at once, but which somebody can mend without changing the question."""


NOT_GRADED = "not_graded"
"""The type of the failure of an answer that nobody was named to grade: there is no verdict, and nothing is wrong."""
GRADING_ERROR = "grading_error"
"""The type of the failure of an attempt at a skill eval that its grader gave no grades for; it can be asked again."""


class Failure(Frozen):
    """No verdict, and why: something other than the model failed, or nobody was named who grades."""

    boundary: Boundary
    type: str
    message: str
    retryable: bool
    """Whether the same trial could end otherwise on another day."""

    @classmethod
    def of(cls, error: TrialError) -> Self:
        retryable = error.retryable or error.type in MENDED_OUTSIDE
        return cls(boundary=error.boundary, type=error.type, message=str(error), retryable=retryable)


def in_grading(boundary: str, evaluator_digest: str | None) -> bool:
    """Whether a failure came of grading a whole answer: a sandbox also runs tools, but then no evaluator is named."""
    return boundary == "evaluator" or evaluator_digest is not None


class Timing(Frozen):
    """Seconds spent in each stage of a trial; `total` runs from the start of the trial to its end."""

    queued: float = 0
    model: float = 0
    tools: float = 0
    evaluator: float = 0
    total: float = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking: a trace, or why it is missing or not whole. `queued` and `seconds` are in seconds."""

    started_at: datetime
    seconds: float
    queued: float = 0
    trace: Trace | None = None
    failure: Failure | None = None


class Result(Frozen):
    """One counted row: exactly one of `verdict` and `failure` is set. A failed trial keeps the trace it has."""

    trial: Trial
    eval_id: str
    agent_digest: str
    trace: Trace | None = None
    verdict: Verdict | None = None
    failure: Failure | None = None
    evaluator_digest: str | None = None
    latency: Timing = Timing()
    started_at: datetime
    ended_at: datetime
    worker: str = ""
    earlier_errors: int = 0
    """Rows of this trial before that ended in an error."""
    reused: bool = False
    """The answer was stored before, and is graded anew: `started_at` is when it was asked for."""

    @property
    def outcome(self) -> Outcome:
        if self.verdict is None:
            return "error"
        return "passed" if self.verdict.passed else "failed"

    @property
    def gradable(self) -> bool:
        """Grading alone failed, so that the answer can be graded again."""
        failure = self.failure
        return bool(failure and in_grading(failure.boundary, self.evaluator_digest)) and not self.not_graded

    @property
    def not_graded(self) -> bool:
        """Nobody was named who grades the answer."""
        return bool(self.failure and self.failure.type == NOT_GRADED)

    def model_post_init(self, _context: Any) -> None:
        if (self.verdict is None) == (self.failure is None):
            raise ValueError("a result has either a verdict or a failure")
