"""The protocol of judges, which answer the questions of checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from trunchray.core.decisions import Decision, Fallback, Question, Thresholds


class Judge(Protocol):
    """Safe to share between concurrent trials of one event loop. It can be pickled before it is first asked."""

    thresholds: Thresholds
    escalate: Any
    """The agent that is asked where the judge is unsure, anything with `send(prompt)`; None: such checks fail."""
    timeout: float
    """Seconds that one request to the judge may take, and one `send` of `escalate`."""

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """One decision for each question, in their order, or why there is none.

        All questions are about the same state and are asked at once; without any, nobody is asked.

        Raises:
            UsageError: a question is invalid (see `check_questions`). Nothing else is raised but cancellation.
        """
        ...

    async def close(self) -> None:
        """Release what it holds, such as connections; it may be asked again afterwards."""
        ...

    @property
    def identity(self) -> JsonValue:
        """What distinguishes it from other judges, as JSON without credentials."""
        ...
