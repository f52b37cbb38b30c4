"""The tools of a release: what models are told of them, and a process of its own for each trial that calls one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trunchray.adapters.models.base import RequestedCall, ToolDefinition
from trunchray.adapters.sandbox.tools import DEADLINE, ToolModule, ToolOutcome, ToolsProcess
from trunchray.core.telemetry import SILENCE, Telemetry

MAX_PROCESSES = 16
"""Tools processes that one worker keeps at a time, each of 35 to 60 MB; further trials wait for one to end."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a release."""

    definition: ToolDefinition
    module: ToolModule


class Toolbox:
    """All tools of a release by name. `deadline` is for one call, in seconds. It belongs to one event loop."""

    def __init__(
        self,
        tools: Mapping[str, Tool] | None = None,
        *,
        deadline: float = DEADLINE,
        processes: int = MAX_PROCESSES,
        telemetry: Telemetry = SILENCE,
    ) -> None:
        self._tools = dict(tools or {})
        self._deadline = deadline
        self._places = asyncio.Semaphore(processes)
        self._telemetry = telemetry

    def definitions(self, names: Sequence[str]) -> tuple[ToolDefinition, ...]:
        """What a model is told of these tools; a name that the release does not have is left out."""
        return tuple(self._tools[name].definition for name in names if name in self._tools)

    def open(self, names: Sequence[str]) -> TrialTools:
        """These tools for one trial, which has to close them."""
        modules = {name: self._tools[name].module for name in names if name in self._tools}
        return TrialTools(modules, self._deadline, self._places, self._telemetry)


class TrialTools:
    """The tools of one trial; a process, and a place for it, is taken at the first call that needs one."""

    def __init__(
        self,
        modules: Mapping[str, ToolModule],
        deadline: float,
        places: asyncio.Semaphore,
        telemetry: Telemetry,
    ) -> None:
        self._modules, self._deadline, self._places, self._telemetry = modules, deadline, places, telemetry
        self._process: ToolsProcess | None = None  # made at the first call: most trials make none
        self._taking = asyncio.Lock()
        self._taken = False

    async def call(self, call: RequestedCall, messages: Sequence[Mapping[str, Any]]) -> ToolOutcome:
        """Execute a call as the model wrote it; `messages` is the conversation before it.

        Raises:
            ToolError: the process died.
            SandboxError: it could not be started.
        """
        # A tool that there is not is called as the model pleases: that is part of its answer.
        name = call.name if call.name in self._modules else None
        with self._telemetry.span("tool", tool=name, call=call.id) as span:
            outcome = await self._call(call, messages)
            if outcome.error is not None:
                span.add(failure="tool_error")
            return outcome

    async def _call(self, call: RequestedCall, messages: Sequence[Mapping[str, Any]]) -> ToolOutcome:
        process = self._process = self._process or ToolsProcess(self._modules, deadline=self._deadline)
        if call.name in self._modules:
            async with self._taking:
                if not self._taken:
                    await self._places.acquire()
                    self._taken = True
        return await process.call(call.name, call.arguments, tool_call_id=call.id, messages=messages)

    async def close(self) -> None:
        """End the process and give its place to another trial."""
        if self._process is None:
            return
        try:
            await self._process.close()
        finally:
            if self._taken:
                self._taken = False
                self._places.release()
