"""A check that a judge decides."""

from __future__ import annotations

from dataclasses import dataclass

from trunchray.core.decisions import Question
from trunchray.core.digest import digest
from trunchray.core.rule import Rule


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A question and what becomes of its answers."""

    instructions: str
    rule: Rule

    @property
    def digest(self) -> str:
        """64 hex digits of the question and its rule; who judges is not part of it."""
        return digest({"question": self.instructions, "rule": self.rule.to_json()})

    def question(self, id: str) -> Question:
        """The question as a judge is asked it."""
        return Question(id, self.rule.type, self.instructions, self.rule.answers)
