"""Agents with `send` as tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call, is_async
from trunchray.agents.python.callee import Callee
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.events import EventReader
from trunchray.agents.python.failure import RunFailed, cut
from trunchray.agents.python.peek import peek
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.streaming import listening
from trunchray.core.plain import as_text
from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends the input to an agent as a message: a string as it is, anything else as JSON.

    `send(text)` returns `{type: "reply", reply}`; or `{type: "suspended"}` when the agent waits for a person, and then
    the run has failed. If there is a `stream()`, it is read from before `send` until after it, and its events are the
    steps of the run.
    """

    send: Callee
    stream: Callable[[], Any] | None

    @classmethod
    def of(cls, agent: Any) -> Sending:
        """The way to run an agent.

        Raises:
            UsageError: it is a class, or its `send` cannot be called so.
        """
        if isinstance(agent, type):
            name = agent.__qualname__
            raise UsageError(f"the task {name} is a class: give an agent, such as {name}(…)")
        stream = getattr(agent, "stream", None)
        send = Callee.of(agent.send, ("input",), f"{type(agent).__qualname__}.send")
        return cls(send, stream if callable(stream) else None)

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        """The reply.

        Raises:
            RunFailed: there is no reply, or the stream failed. Also whatever the agent raises.
        """
        prompt = as_text(value)
        if self.stream is None:
            return _reply(await self.send.call(prompt, signal=signal))
        async with listening(await self._opened(self.stream), EventReader(steps).read):
            answer = await self.send.call(prompt, signal=signal)
        return _reply(answer)

    async def _opened(self, stream: Callable[[], Any]) -> object:
        """The stream, made where `send` is called: on the event loop, or else in a thread."""
        return stream() if is_async(self.send.function) and not is_async(stream) else await call(stream)


def _reply(answer: object) -> Any:
    match peek(answer, "type"):
        case "reply":
            reply = peek(answer, "reply")
            if reply is None:
                raise RunFailed("the agent's reply is empty: `reply` is missing or null")
            return reply
        case "suspended":
            raise RunFailed(_suspended(answer))
        case _:
            shown = cut(repr(answer))[:200]
            raise RunFailed(f"send returned {shown}; it returns {{type: 'reply', reply: …}} or {{type: 'suspended'}}")


def _suspended(answer: object) -> str:
    """What it waits for, when that is told."""
    waits_for = peek(peek(answer, "approvalSnapshot"), "name") or peek(answer, "reason")
    return f"suspended: the agent waits for {waits_for}" if isinstance(waits_for, str) else "suspended"
