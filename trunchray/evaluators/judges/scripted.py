"""A judge that decides what it is told: for tests, and for trying checks without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds, check_questions
from trunchray.core.names import nearest
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_agent

Answer = float | str | Mapping[str, float]
"""The probability of yes, the name of the answer that is certain, or a probability for each answer."""


class ScriptedJudge:
    """Decides by the id of a question, or gives the same fallback always.

    `asked` holds every state with the ids of the questions about it. A question that is not in `answers` makes the
    whole reply a parse-error, as it would be of any judge. Probabilities are taken as they are.

    Raises:
        UsageError: something is no answer.
    """

    timeout = 60.0

    def __init__(
        self,
        answers: Mapping[str, Answer] | Fallback,
        *,
        thresholds: Mapping[str, float] | Thresholds | None = None,
        escalate: object = None,
    ) -> None:
        self.thresholds, self.escalate = Thresholds.of(thresholds), checked_agent(escalate)
        _check(answers)
        self.asked: list[tuple[JsonValue, tuple[str, ...]]] = []
        self._answers = answers

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """As `Judge.invoke`."""
        check_questions(questions)
        if not questions:
            return ()
        self.asked.append((state, tuple(question.id for question in questions)))
        if isinstance(self._answers, Fallback):
            return self._answers
        missing = [question.id for question in questions if question.id not in self._answers]
        if missing:
            hints = [f"{name!r}{nearest(name, self._answers)}" for name in missing]
            return Fallback("parse-error", f"no decision about {', '.join(hints)}")
        try:
            return tuple(_decision(question, self._answers[question.id]) for question in questions)
        except ValueError as e:
            return Fallback("parse-error", str(e))

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def identity(self) -> JsonValue:
        """All that it answers."""
        if isinstance(self._answers, Fallback):
            return {"kind": "scripted", **self._answers.to_json()}
        return {"kind": "scripted", "answers": {key: _json(answer) for key, answer in self._answers.items()}}


def _check(answers: Any) -> None:
    given = {} if isinstance(answers, Fallback) else answers
    if not isinstance(given, Mapping):
        raise UsageError(f"a scripted judge takes a mapping of checks to answers, or a Fallback (got {given!r:.100})")
    for key, answer in given.items():
        if isinstance(answer, bool) or not isinstance(answer, int | float | str | Mapping):
            raise UsageError(
                f"scripted judge: the answer to {key!r} is the probability of yes, the name of an answer, or a mapping "
                f"of answers to probabilities (got {answer!r:.100})"
            )


def _decision(question: Question, answer: Answer) -> Decision:
    """Raises ValueError for the name of an answer that the question does not have."""
    match answer:
        case str():
            if answer not in question.answers:
                known = ", ".join(map(repr, question.answers))
                raise ValueError(f"decision {question.id!r}: there is no answer {answer!r}; choose one of {known}")
            return Decision(question.id, {name: float(name == answer) for name in question.answers})
        case Mapping():
            return Decision(question.id, dict(answer))
        case _:
            return Decision(question.id, {YES: answer, NO: 1 - answer})


def _json(answer: Answer) -> JsonValue:
    return {**answer} if isinstance(answer, Mapping) else answer
