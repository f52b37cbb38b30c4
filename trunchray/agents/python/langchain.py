"""LangChain runnables and LangGraph graphs as tasks. Neither is imported: whatever has their methods will do."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, is_chat, peek, words
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import Task
from trunchray.core.plain import as_text
from trunchray.errors import UsageError

_MODEL = {"ai", "AIMessageChunk", "assistant"}
"""The types or roles of messages that a model wrote."""


def langchain(
    runnable: Any,
    *,
    input: Callable[[JsonValue], Any] | None = None,
    output: Callable[[Any], Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Task:
    """The task that invokes a runnable or a compiled graph; `ainvoke` where it has that.

    A graph whose state has `messages` is given the input as a message of a user, unless it is a list of messages or a
    state already; any other runnable is given it as it is. `input` makes something else of it. A graph with a
    checkpointer gets a new thread for each run, unless `config` names one.

    The output is the structured response of the state if there is one, else the text of the last message of the model;
    of any other result, the result. `output` makes something else of the result. The messages that came in the run are
    its steps: those of the model, and the calls of tools with what they returned. A graph that was interrupted has
    failed, as it waits for a person.

    Raises:
        UsageError: it cannot be invoked.
    """
    if not any(callable(getattr(runnable, name, None)) for name in ("ainvoke", "invoke")):
        hint = ": compile the graph first" if callable(getattr(runnable, "compile", None)) else ""
        raise UsageError(f"langchain(…) takes something with invoke or ainvoke, not {type(runnable).__name__}{hint}")
    return Task((runnable, input, output, config), _Runnable(runnable, input, output, config))


@dataclass(frozen=True, slots=True)
class _Runnable:
    runnable: Any
    input: Callable[[JsonValue], Any] | None
    output: Callable[[Any], Any] | None
    config: Mapping[str, Any] | None

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        given = _given(self.runnable, value) if self.input is None else await call(self.input, value)
        invoke = getattr(self.runnable, "ainvoke", None) or self.runnable.invoke
        result = await call(invoke, given, _config(self.runnable, self.config))
        _observe(result, given, steps)
        if isinstance(result, Mapping) and result.get("__interrupt__"):
            raise RunFailed("suspended: the graph was interrupted and waits to be resumed")
        return _output(result) if self.output is None else await call(self.output, result)


def _given(runnable: Any, value: JsonValue) -> Any:
    """The input as the runnable takes it: a graph that keeps messages is told by its channels."""
    channels = getattr(runnable, "channels", None)
    if not isinstance(channels, Mapping) or "messages" not in channels or isinstance(value, dict):
        return value
    if is_chat(value):
        return {"messages": value}
    return {"messages": [{"role": "user", "content": as_text(value)}]}


def _config(runnable: Any, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The config, with a thread of its own where state is kept by thread."""
    found = dict(config or {})
    named: Mapping[str, Any] = found.get("configurable") or {}
    if getattr(runnable, "checkpointer", None) and "thread_id" not in named:
        found["configurable"] = {**named, "thread_id": uuid.uuid4().hex}
    return found


def _observe(result: Any, given: Any, steps: Steps) -> None:
    """The steps that a result tells of."""
    if isinstance(result, Mapping) and isinstance(known := result.get("messages"), list | tuple):
        before = given.get("messages") if isinstance(given, Mapping) else None
        _observe_messages(known[len(before) if isinstance(before, list | tuple) else 0 :], steps)
    elif isinstance(result, Mapping) and isinstance(pairs := result.get("intermediate_steps"), list | tuple):
        for place, (action, observation) in enumerate(pairs):
            steps.start(place, as_name(peek(action, "tool")), peek(action, "toolInput"))
            steps.done(place, observation)
    elif _kind(result) in _MODEL:
        _observe_messages([result], steps)


def _observe_messages(messages: Sequence[Any], steps: Steps) -> None:
    for message in messages:
        if _kind(message) in _MODEL:
            steps.model()
            for requested in peek(message, "toolCalls") or ():
                steps.start(peek(requested, "id"), as_name(peek(requested, "name")), peek(requested, "args"))
        elif _kind(message) == "tool":
            failed = peek(message, "status") == "error"
            content = peek(message, "content")
            call_id = peek(message, "toolCallId")
            steps.done(call_id, None if failed else content, words(content) if failed else None)


def _kind(message: Any) -> object:
    return peek(message, "type", "role")


def _output(result: Any) -> Any:
    if _kind(result) in _MODEL and peek(result, "content") is not None:
        return words(peek(result, "content"))
    if not isinstance(result, Mapping):
        return result
    if (structured := result.get("structured_response")) is not None:
        return structured
    if "intermediate_steps" in result and "output" in result:
        return result["output"]
    messages = result.get("messages")
    said = [message for message in messages if _kind(message) in _MODEL] if isinstance(messages, list | tuple) else []
    return words(peek(said[-1], "content")) if said else result
