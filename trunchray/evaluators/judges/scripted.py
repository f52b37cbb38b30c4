"""A judge that decides what it is told: for tests, and for trying checks without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds, check_questions
from trunchray.evaluators.judges.bars import checked_agent

Answer = float | Mapping[str, float]
"""The probability of yes, or one for each answer."""


class ScriptedJudge:
    """Decides by the id of a question, or gives the same fallback always.

    `asked` holds every state with the ids of the questions about it. A question that is not in `answers` makes the
    whole reply a parse-error, as it would be of any judge. Probabilities are taken as they are.
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
            return Fallback("parse-error", f"no decision about {', '.join(missing)}")
        return tuple(_decision(question.id, self._answers[question.id]) for question in questions)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def identity(self) -> JsonValue:
        """All that it answers."""
        if isinstance(self._answers, Fallback):
            return {"kind": "scripted", **self._answers.to_json()}
        return {"kind": "scripted", "answers": {key: _json(answer) for key, answer in self._answers.items()}}


def _decision(key: str, answer: Answer) -> Decision:
    if isinstance(answer, Mapping):
        return Decision(key, dict(answer))
    return Decision(key, {YES: answer, NO: 1 - answer})


def _json(answer: Answer) -> JsonValue:
    return {**answer} if isinstance(answer, Mapping) else answer
