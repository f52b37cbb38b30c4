"""What a judge is asked about a state, and what it decides: typed questions, answers with probabilities.

The shapes and limits are those of decision models ("System One"): one request carries a state and any number of typed
questions, which are answered independently. What is not exactly such an answer counts as none: nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pydantic import JsonValue

from trunchray.core.names import nearest
from trunchray.core.share import is_share
from trunchray.errors import UsageError

QuestionType = Literal["boolean", "choice", "score"]
FallbackReason = Literal["no-key", "timeout", "network", "http-error", "parse-error"]
Method = Literal["logprobs", "stated"]

YES, NO = "yes", "no"

MOST_OPTIONS = 255
FEWEST_LEVELS, MOST_LEVELS = 2, 10


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `answers` are all that are allowed, each with its description or None.

    boolean: yes and no. choice: the options. score: the levels by name, lowest first.
    """

    id: str
    type: QuestionType
    instructions: str
    answers: Mapping[str, str | None]

    def to_json(self) -> dict[str, JsonValue]:
        """As a step or function that judges is given it: `{id, type, instructions, criteria?}`.

        `criteria` is `{true?, false?}` of a boolean question, `{option: description | null}` of a choice, and the list
        of levels, lowest first, of a score.
        """
        asked: dict[str, JsonValue] = {"id": self.id, "type": self.type}
        return asked | self._asked()

    def to_wire(self) -> dict[str, JsonValue]:
        """As it stands under its id in a request to a decision model, which calls a boolean question `noul`."""
        asked: dict[str, JsonValue] = {"type": "noul" if self.type == "boolean" else self.type}
        return asked | self._asked()

    def _asked(self) -> dict[str, JsonValue]:
        criteria = self._criteria()
        asked: dict[str, JsonValue] = {"instructions": self.instructions}
        return asked | {"criteria": criteria} if criteria else asked

    def _criteria(self) -> JsonValue:
        match self.type:
            case "boolean":
                meant = {"true": self.answers.get(YES), "false": self.answers.get(NO)}
                return {key: text for key, text in meant.items() if text is not None}
            case "choice":
                return dict(self.answers)
            case "score":
                return [f"{level}: {text}" if text else level for level, text in self.answers.items()]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a judge makes of the question with the same `id`."""

    id: str
    probabilities: Mapping[str, float]
    """By answer, in the order of the question; for boolean ones of yes and of no."""
    choice: str | None = None
    """The option that the judge itself says it picks, for a choice."""
    method: Method | None = None
    """Where a language model's probabilities come from: those of its tokens, or what it says they are. None: they are
    a decision model's own."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """Why there is no decision."""

    reason: FallbackReason
    detail: str | None = None
    """For people; without credentials."""
    http_status: int | None = None
    """The HTTP status, where that is the reason."""
    backend: str | None = None
    """Who was asked: a host or a model; None when nobody was."""
    latency_ms: float | None = field(default=None, compare=False)
    """Milliseconds that asking took, retries included; None where it was not measured."""

    def to_json(self) -> dict[str, JsonValue]:
        """`{fallback: true, reason, latencyMs?, backendAttempted?, httpStatus?, detail?}`."""
        rest: dict[str, JsonValue] = {
            "latencyMs": self.latency_ms,
            "backendAttempted": self.backend,
            "httpStatus": self.http_status,
            "detail": self.detail,
        }
        found: dict[str, JsonValue] = {"fallback": True, "reason": self.reason}
        return found | {name: value for name, value in rest.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A yes/no question passes at `yes` and above, fails at `no` and below; others need `sure` for the likeliest.

    All are probabilities, from 0 to 1, and `no` is at most `yes`.

    Raises:
        UsageError: they are not.
    """

    yes: float = 0.7
    no: float = 0.3
    sure: float = 0.6

    def __post_init__(self) -> None:
        for name in ("yes", "no", "sure"):
            value: Any = getattr(self, name)
            if not is_share(value):
                raise UsageError(f"thresholds: {name} must be a number from 0 to 1 (got {value!r})")
        if self.no > self.yes:
            raise UsageError(f"thresholds: no ({self.no:g}) must not be above yes ({self.yes:g})")

    @classmethod
    def of(cls, given: Mapping[str, Any] | Self | None) -> Self:
        """Those given, as a mapping with any of `yes`, `no` and `sure`; the others keep their defaults.

        Raises:
            UsageError: it is not a mapping, or has another key, or a value out of range.
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        if not isinstance(given, Mapping):
            raise UsageError(f"thresholds must be a mapping such as {{'yes': 0.8, 'no': 0.2}} (got {given!r})")
        for name in given:
            if name not in ("yes", "no", "sure"):
                raise UsageError(f"thresholds: there is no {name!r}{nearest(str(name), ('yes', 'no', 'sure'))}")
        return cls(**given)


def check_questions(questions: Sequence[Question]) -> None:
    """Refuse what no judge can be asked.

    Raises:
        UsageError: an id is empty or used twice, a question has no instructions, a choice has none or more
            than 255 options, or a score less than 2 or more than 10 levels.
    """
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise UsageError(f"two questions have the id {question.id!r}; each needs its own")
        seen.add(question.id)
        if problem := _problem(question):
            raise UsageError(f"question {question.id!r}: {problem}")


def _problem(question: Question) -> str | None:
    count = len(question.answers)
    if not question.id.strip():
        return "its id is empty"
    if not question.instructions.strip():
        return "it asks nothing: its instructions are empty"
    match question.type:
        case "boolean" if set(question.answers) != {YES, NO}:
            return f"a boolean question is answered by yes and no, not by {', '.join(map(repr, question.answers))}"
        case "choice" if not 1 <= count <= MOST_OPTIONS:
            return f"a choice has 1 to {MOST_OPTIONS} options, not {count}"
        case "score" if not FEWEST_LEVELS <= count <= MOST_LEVELS:
            return f"a score has {FEWEST_LEVELS} to {MOST_LEVELS} levels, not {count}"
        case _:
            return None
