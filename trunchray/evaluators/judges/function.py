"""A judge written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call, said, within
from trunchray.adapters.source_code import code_digest
from trunchray.core.decision_reply import read_reply
from trunchray.core.decisions import Decision, Fallback, Question, Thresholds, check_questions
from trunchray.core.excerpt import excerpt
from trunchray.core.plain import plain
from trunchray.core.well_formed import well_formed
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_agent

TIMEOUT = 60.0
_SHOWN = 300


class FunctionJudge:
    """A function, sync or async, of `{"state", "questions"}` that returns `{"decisions"}`.

    It may also return `{"fallback": True, "reason"}`, or either as JSON text under `reply`. Sync functions run in
    threads, several at once. `timeout` bounds one call, in seconds; what a thread does after that is not waited for.
    A `TimeoutError` is the fallback timeout, any other `OSError` network; whatever else it raises, it raises.

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
        except OSError as e:
            return Fallback("timeout" if isinstance(e, TimeoutError) else "network", _text(e), backend=self._name)
        try:
            return read_reply(questions, plain(reply))
        except ValueError as e:
            return Fallback("parse-error", _text(e), backend=self._name)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def identity(self) -> JsonValue:
        """The function's name and the digest of its code."""
        return {"kind": "function", "name": self._name, "code": code_digest(self._function)}


def _text(error: BaseException) -> str:
    message = said(error)
    text = message if isinstance(error, TimeoutError) and message else f"{type(error).__name__}: {message}"
    return well_formed(excerpt(text, _SHOWN))
