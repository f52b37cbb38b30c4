"""Agents of pydantic-ai as tasks. It is not imported: whatever has the methods of its agents will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, peek, unpacked, words
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import Task
from trunchray.core.plain import as_text
from trunchray.errors import UsageError

_OUTPUT_TAKEN = "Final result processed."
"""What pydantic-ai returns to the model for the call that carries the output, which is no call of a tool."""


def pydantic_ai(agent: Any, *, options: Mapping[str, Any] | None = None) -> Task:
    """The task that runs an agent with `agent.run(input)`; an input that is not a string is given as JSON.

    `options` are further arguments of `run`, such as `deps`, `model` or `usage_limits`. The steps are what the messages
    of the run tell: replies of the model, and calls of tools, but for the call by which a model gives a structured
    output. A run that ends in requests for tools which others have to run or approve has failed.

    Raises:
        UsageError: it has no `run`.
    """
    if not callable(getattr(agent, "run", None)):
        raise UsageError(f"pydantic_ai(…) takes something with run(prompt), not {type(agent).__name__}")
    more = dict(options or {})
    return Task((agent, more), _Agent(agent, more))


@dataclass(frozen=True, slots=True)
class _Agent:
    agent: Any
    options: dict[str, Any]

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        result = await call(partial(self.agent.run, as_text(value), **self.options))
        told: Callable[[], Any] | None = peek(result, "newMessages", "allMessages")
        _observe(told() if callable(told) else (), steps)
        output = peek(result, "output")
        if type(output).__name__ == "DeferredToolRequests":
            raise RunFailed("suspended: the agent waits for tools that it does not run itself")
        return output


def _observe(messages: Iterable[Any], steps: Steps) -> None:
    listed = list(messages)
    outputs = {peek(part, "toolCallId") for part in _parts(listed) if _takes_output(peek(part, "content"))}
    for message in listed:
        if peek(message, "kind") == "response":
            steps.model()
        for part in _parts([message]):
            if peek(part, "toolCallId") not in outputs:
                _observe_part(part, steps)


def _parts(messages: Iterable[Any]) -> Iterable[Any]:
    for message in messages:
        yield from peek(message, "parts") or ()


def _takes_output(content: object) -> bool:
    return isinstance(content, str) and content == _OUTPUT_TAKEN


def _observe_part(part: Any, steps: Steps) -> None:
    kind = str(peek(part, "partKind"))
    call_id, name, content = peek(part, "toolCallId"), as_name(peek(part, "toolName")), peek(part, "content")
    if kind.endswith("tool-call"):  # also of tools that the provider runs
        steps.start(call_id, name, unpacked(peek(part, "args")))
    elif kind.endswith("tool-return"):
        refused = peek(part, "outcome") in {"failed", "denied"}
        steps.done(call_id, None if refused else content, words(content) if refused else None)
    elif kind == "retry-prompt" and name:
        steps.done(call_id, error=words(content))
