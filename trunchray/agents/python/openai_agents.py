"""Agents of the OpenAI Agents SDK as tasks. It is imported when the first one runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, is_chat, peek, unpacked, words
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import Task
from trunchray.core.plain import as_text
from trunchray.errors import UsageError

_CALLS = {"tool_call_item", "handoff_call_item", "tool_search_call_item"}
_RETURNS = {"tool_call_output_item", "handoff_output_item", "tool_search_output_item"}
_SAID = {"message_output_item", "reasoning_item"}
_MISSING = "openai_agents(…) needs the OpenAI Agents SDK: pip install openai-agents"


def openai_agents(
    agent: object, *, run: Callable[..., Any] | None = None, options: Mapping[str, Any] | None = None
) -> Task:
    """The task that runs an agent with `Runner.run(agent, input)`.

    A list of messages with roles is given as it is, text likewise, anything else as its JSON. `options` are further
    arguments of `Runner.run`, such as `context` or `max_turns`; `run` takes its place. The output is `final_output`;
    the steps are what the `new_items` tell: replies of the model, and calls of tools and handoffs, also those of a run
    that the SDK ended. A run that waits for an approval has failed.

    Raises:
        UsageError: the SDK is not installed, and there is no `run`.
    """
    if run is None and not _is_installed():
        raise UsageError(_MISSING)
    more = dict(options or {})
    return Task((agent, run, more), _Agent(agent, run, more))


@dataclass(frozen=True, slots=True)
class _Agent:
    agent: object
    run: Callable[..., Any] | None
    options: dict[str, Any]

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        run = self.run or _runner()
        try:
            result = await call(partial(run, self.agent, _given(value), **self.options))
        except Exception as e:
            _observe(peek(peek(e, "runData"), "newItems"), steps)
            raise
        _observe(peek(result, "newItems"), steps)
        if peek(result, "interruptions"):
            raise RunFailed("suspended: the agent waits for the approval of a tool call")
        return peek(result, "finalOutput")


def _is_installed() -> bool:
    try:
        return find_spec("agents") is not None
    except ValueError:  # imported already, and without a spec
        return sys.modules.get("agents") is not None


def _runner() -> Callable[..., Any]:
    try:
        return importlib.import_module("agents").Runner.run
    except (ImportError, AttributeError) as e:
        raise RunFailed(_MISSING) from e


def _given(value: JsonValue) -> Any:
    return value if is_chat(value) else as_text(value)


def _observe(items: Any, steps: Steps) -> None:
    """Items as steps. One reply of the model is all its messages and calls up to the next result of a call."""
    replying = False
    for item in items or ():
        kind, raw = peek(item, "type"), peek(item, "rawItem")
        if kind in _RETURNS:
            output = peek(item, "output")
            steps.done(peek(raw, "callId", "id"), peek(raw, "output") if output is None else output)
            replying = False
            continue
        if kind in _CALLS | _SAID and not replying:
            steps.model()
            replying = True
        if kind in _CALLS:
            _observe_call(item, raw, steps)


def _observe_call(item: Any, raw: Any, steps: Steps) -> None:
    call_id = peek(raw, "callId", "id")
    steps.start(call_id, _name(item, raw), unpacked(peek(raw, "arguments")))
    output, error = peek(raw, "output"), peek(raw, "error")
    if output is not None or error is not None:  # a tool that the provider ran has ended already
        steps.done(call_id, output, None if error is None else words(error))


def _name(item: Any, raw: Any) -> str | None:
    """The name of a tool; of one that the provider runs, its kind: `web_search_call` is a call of `web_search`."""
    named = as_name(peek(raw, "name", "toolName"))
    return named or (as_name(peek(raw, "type")) or "").removesuffix("_call") or as_name(peek(item, "title"))
