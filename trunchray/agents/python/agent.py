"""A task as the agent of trials."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from pydantic import JsonValue

from trunchray.adapters.calling import let_go
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.stored import stored_output, stored_steps
from trunchray.agents.python.task import Task
from trunchray.core.case import CaseInput
from trunchray.core.record import Returned
from trunchray.core.trial import Trace


class PythonTaskAgent:
    """Runs a task once for each trial, each time with an input of its own.

    A run that fails or takes longer than `timeout` seconds, by the monotonic `clock`, is a trace with an error, not an
    exception. A function that goes on in its thread after that cannot be stopped, nor can a coroutine while it blocks
    the event loop. A coroutine that is cancelled has `grace` seconds to clean up, then it is no longer waited for.
    """

    def __init__(
        self, task: Task, *, timeout: float, clock: Callable[[], float] = time.monotonic, grace: float = 1.0
    ) -> None:
        self._task, self._timeout, self._clock, self._grace = task, timeout, clock, grace
        self._turn: asyncio.Lock | None = None
        self._given_up: set[asyncio.Task[Returned]] = set()

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """One run. Raises nothing but cancellation, which ends the run as well."""
        async with self._alone():
            returned = await self._run(case.value)
        output, form = ("", "text") if returned.error is not None else stored_output(returned.output)
        return Trace(
            output=output,
            finish_reason="stop" if returned.error is None else "error",
            steps=stored_steps(returned.steps),
            model_seconds=returned.ms / 1000,
            returned=replace(returned, form=form),
        )

    async def close(self) -> None:
        """Release what the task holds."""
        await let_go(self._task.close)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Its turn, if runs must not overlap; waiting for it does not count as part of the run."""
        if not self._task.alone:
            yield
            return
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            yield

    async def _run(self, value: JsonValue) -> Returned:
        signal, steps = CancelSignal(), Steps()
        began = self._clock()
        running = asyncio.create_task(self._task.run(value, signal, steps))
        try:
            await asyncio.wait({running}, timeout=self._timeout)
            seconds = self._clock() - began
            in_time = running.done() and seconds <= self._timeout
        finally:
            if not running.done():
                signal.abort()
                await self._give_up(running)
        if not in_time:
            return Returned(None, steps.records(), seconds * 1000, f"timed out after {self._timeout:g} s")
        if running.cancelled():
            return Returned(None, steps.records(), seconds * 1000, "CancelledError: the task cancelled itself")
        return replace(running.result(), ms=seconds * 1000)

    async def _give_up(self, running: asyncio.Task[Returned]) -> None:
        """Cancel a run, and wait for its end no longer than the grace."""
        running.cancel()
        self._given_up.add(running)
        running.add_done_callback(self._given_up.discard)
        await asyncio.wait({running}, timeout=self._grace)
