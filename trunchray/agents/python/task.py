"""What is under test in a Python evaluation, whatever kind of thing it is."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import is_cancelled
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.definition import looks_like_definition
from trunchray.agents.python.failure import failure_text
from trunchray.agents.python.function import Function
from trunchray.agents.python.sending import Sending
from trunchray.agents.python.steps import Steps
from trunchray.core.record import Returned
from trunchray.errors import UsageError

WAYS = (
    "a function (input) or (input, signal), an agent with send(input), workflow(definition, invoke_step=…), or one of "
    "langchain(…), openai_agents(…), pydantic_ai(…), http_endpoint(…)"
)
"""All that can be a task."""


Perform = Callable[[JsonValue, CancelSignal, Steps], Awaitable[Any]]
"""Makes the output out of an input, and adds what it observes on the way to the steps.

Raises what the task raises. It can be pickled before it is first used.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that makes an output out of an input."""

    authored: tuple[object, ...]
    """All that its author wrote or chose, what it is named after first; None stands for what was left out."""
    perform: Perform
    alone: bool = False
    """Runs of it must not overlap in one process, because what is observed of one could not be told from another."""
    release: Callable[[], Awaitable[None]] | None = None
    """Gives back what it holds; None when it holds nothing. It can be run again afterwards."""

    async def run(self, value: JsonValue, signal: CancelSignal, steps: Steps | None = None) -> Returned:
        """What came of one run, with `ms` left at 0. Raises nothing but cancellation.

        `signal` is only passed on: the caller sets the time limit. A caller that wants the steps of a run which it
        gives up passes `steps`.
        """
        observed = Steps() if steps is None else steps
        try:
            output = await self.perform(value, signal, observed)
        except asyncio.CancelledError as e:
            if is_cancelled():
                raise
            error: BaseException = e
        except BaseException as e:  # SystemExit too: an event loop that it leaves would end with all other runs
            error = e
        else:
            return Returned(output=output, steps=observed.records())
        return Returned(steps=observed.records(), error=failure_text(error))

    async def close(self) -> None:
        """Give back what it holds; may be called more than once."""
        if self.release is not None:
            await self.release()


def as_task(given: object) -> Task:
    """The task that is given as one already, as an agent, or as a function.

    Raises:
        UsageError: it is something else; the message says what to give instead.
    """
    if isinstance(given, Task):
        return given
    if inspect.iscoroutine(given) or inspect.isgenerator(given) or inspect.isasyncgen(given):
        name = getattr(given, "__qualname__", "it")
        raise UsageError(f"the task is a {type(given).__name__} that has begun already: give {name} without calling it")
    if callable(getattr(given, "send", None)):
        sending = Sending.of(given)
        return Task((given,), sending, alone=sending.stream is not None)
    if callable(given):
        return Task((given,), Function.of(given))
    raise UsageError(_refusal(given))


def _refusal(given: object) -> str:
    kind = type(given).__name__
    if way := _adapter(given):
        return f"the task is of type {kind}: give {way}"
    if looks_like_definition(given):
        return (
            "the task is the definition of a workflow, which does not say how its steps are run: give "
            "workflow(definition, invoke_step=…)"
        )
    shown = f" ({given!r:.80})" if isinstance(given, str | int | float | bool | None) else ""
    return f"the task is of type {kind}{shown}, which cannot be one: give {WAYS}"


def _adapter(given: object) -> str | None:
    """The adapter that makes a task of it, by what it can do."""
    if isinstance(given, Mapping):
        return None
    if callable(getattr(given, "invoke", None)) or callable(getattr(given, "ainvoke", None)):
        return "langchain(…)"
    if callable(getattr(given, "run_sync", None)):
        return "pydantic_ai(…)"
    return "openai_agents(…)" if type(given).__module__.split(".")[0] == "agents" else None
