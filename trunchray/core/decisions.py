"""What a judge is asked about a state, and what it decides: typed questions, answers with probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

QuestionType = Literal["boolean", "choice", "score"]
FallbackReason = Literal["no-key", "timeout", "network", "http-error", "parse-error"]

YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `answers` is all that can be answered, each with what it means or None.

    boolean: yes and no. choice: the options. score: the levels by name, lowest first.
    """

    id: str
    type: QuestionType
    instructions: str
    answers: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a judge makes of the question with the same `id`."""

    id: str
    probabilities: Mapping[str, float]
    """By answer, in the order of the question; for boolean ones of yes and of no."""
    choice: str | None = None
    """The option that the judge itself says it picks, for a choice."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """No decision at all, and why."""

    reason: FallbackReason
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A yes/no question passes at `yes` and above, fails at `no` and below; others need `sure` for the likeliest."""

    yes: float = 0.7
    no: float = 0.3
    sure: float = 0.6
