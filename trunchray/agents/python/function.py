"""Functions as tasks."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.agents.python.callee import Callee
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.steps import Steps
from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Function:
    """Calls a function with the input, or with the input and the cancel signal.

    A sync function has a thread to itself, an async one on the event loop, which it must not block.
    """

    callee: Callee

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Function:
        """The way to run it.

        Raises:
            UsageError: it takes other parameters, or is a generator.
        """
        name = getattr(function, "__qualname__", type(function).__name__)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(f"the task {name} is a generator: return one output, such as the parts joined")
        return cls(Callee.of(function, ("input",), f"the task {name}"))

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        """What it returns.

        Raises:
            RunFailed: it returned an iterator. Besides, what it raises.
        """
        found = await self.callee.call(value, signal=signal)
        if isinstance(found, Iterator | AsyncIterator):  # who reads it leaves nothing for others, and may not end
            raise RunFailed(f"returned a {type(found).__name__}: a task returns one output, not a stream of parts")
        return found
