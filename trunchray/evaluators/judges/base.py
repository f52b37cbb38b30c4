"""Who answers the questions of checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from trunchray.core.decisions import Decision, Fallback, Question, Thresholds


class Judge(Protocol):
    """Safe to share between concurrent trials of one event loop. It can be pickled before it is first asked."""

    thresholds: Thresholds
    escalate: Any
    """An agent, anything with `send(prompt)`, that is asked where the judge is unsure; None: nobody is."""
    timeout: float
    """Seconds that one `send` of it may take, as may one question of the judge's own."""

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """One decision for each question, in their order, or why there is none. Raises nothing else but cancellation.

        All questions are about the same state and are asked at once; without any, nobody is asked.

        Raises:
            UsageError: what is asked are no questions (see `check_questions`); nobody was asked.
        """
        ...

    async def close(self) -> None:
        """Give back what it holds; it may be asked again afterwards."""
        ...

    @property
    def identity(self) -> JsonValue:
        """What tells it from other judges, as JSON without credentials."""
        ...
