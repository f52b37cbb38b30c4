"""What an export says beside the rows: the model, the run, and what each case asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.agents.conversation import opening
from trunchray.core.agent import AgentSpec
from trunchray.core.case import Case
from trunchray.core.checks import AnswerBank, Contains, Exact, Gsm8k
from trunchray.core.plan import Plan
from trunchray.core.report import ModelReport

HIDDEN = ""
"""What stands where a private answer would."""


@dataclass(frozen=True)
class Subject:
    """One model of one run. `began` is when its first trial did and `ended` when its last one did, as ISO 8601.

    What only graders may see, expected answers above all, is left out unless `private` is true.
    """

    plan: Plan
    agent: AgentSpec
    report: ModelReport
    began: str
    ended: str
    private: bool

    @property
    def name(self) -> str:
        """Of the run and the model."""
        return f"{self.plan.spec.run_id}/{self.agent.name}"

    def question(self, case: Case) -> list[dict[str, Any]]:
        """The chat messages that the case began with."""
        return opening(case.input, self.agent.system_prompt)

    def target(self, case: Case) -> str | list[str]:
        """The answers that the case's checks accept, as text; empty where that is no text or must not be told."""
        if not self.private:
            return HIDDEN
        found = [text for check in case.checks.values() for text in _expected(check)]
        return found[0] if len(found) == 1 else found or HIDDEN

    def remarks(self, row: Mapping[str, Any]) -> tuple[str | None, JsonValue]:
        """What the evaluator said besides the score, message and details: it quotes what it expects."""
        return (row["message"], row["details"]) if self.private else (None, None)


def answer(row: Mapping[str, Any]) -> str:
    """What the model said last; empty when it said nothing."""
    return row["output"] or ""


def reason(row: Mapping[str, Any]) -> str:
    """Why there is no verdict."""
    failure: dict[str, JsonValue] = row["failure"]
    return f"{failure['boundary']}/{failure['type']}: {failure['message']}"


def _expected(check: object) -> tuple[str, ...]:
    match check:
        case Exact() | Contains() | Gsm8k():
            return (check.expected,)
        case AnswerBank():
            return check.answers
        case _:
            return ()
