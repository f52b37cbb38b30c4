"""A judge written in Python."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call, is_cancelled, said, within
from trunchray.adapters.models.json_text import well_formed
from trunchray.adapters.source_code import code_digest
from trunchray.core.decision_reply import read_reply
from trunchray.core.decisions import Decision, Fallback, FallbackReason, Question, Thresholds, check_questions
from trunchray.core.excerpt import excerpt
from trunchray.core.plain import plain
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_agent

TIMEOUT = 60.0
_SHOWN = 300


class FunctionJudge:
    """A function, sync or async, of `{"state", "questions"}` that returns `{"decisions"}`.

    It may also return `{"fallback": True, "reason"}`, or either as JSON text under `reply`. Sync functions run in
    threads, several at once. `timeout` bounds one call, in seconds; what a thread does after that is not waited for.
    An exception is a fallback: timeout for a `TimeoutError`, network for any other `OSError`, else parse-error.

    Raises:
        UsageError: it cannot be called.
    """

    def __init__(
        self,
        function: Callable[[dict[str, JsonValue]], Any],
        *,
        thresholds: Mapping[str, float] | Thresholds | None = None,
        escalate: object = None,
        timeout: float = TIMEOUT,
        name: str | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(f"a judge must be a function of {{state, questions}} (got {function!r})")
        self.thresholds, self.escalate, self.timeout = Thresholds.of(thresholds), checked_agent(escalate), timeout
        self._function = function
        self._name = name or getattr(function, "__qualname__", type(function).__qualname__)

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """As `Judge.invoke`."""
        check_questions(questions)
        if not questions:
            return ()
        asked: dict[str, JsonValue] = {"state": state, "questions": [question.to_json() for question in questions]}
        try:
            reply = await within(self.timeout, call(self._function, asked))
            return read_reply(questions, plain(reply))
        except BaseException as e:
            if isinstance(e, asyncio.CancelledError) and is_cancelled():
                raise
            return Fallback(_reason(e), _text(e), backend=self._name)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def identity(self) -> JsonValue:
        """The function's name and the digest of its code."""
        return {"kind": "function", "name": self._name, "code": code_digest(self._function)}


def _reason(error: BaseException) -> FallbackReason:
    match error:
        case TimeoutError():
            return "timeout"
        case OSError():
            return "network"
        case _:
            return "parse-error"


def _text(error: BaseException) -> str:
    message = said(error)
    text = message if isinstance(error, TimeoutError) and message else f"{type(error).__name__}: {message}"
    return well_formed(excerpt(text, _SHOWN))
