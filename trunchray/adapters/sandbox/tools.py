"""Executing the tools of authors for one trial, as the AI SDK would.

Arguments are parsed and validated, and the validated value is what `execute` gets. Calls run concurrently in one
process, whose memory lives as long as the trial; no two trials share a process, and no two modules share memory.

What a tool does wrong is for the model to see: bad arguments, an exception, a result that is too large or is no JSON,
a call that does not end. The last costs the process, and the result says so. A process that dies in any other way is a
`ToolError`, because nobody can tell a tool that exhausted its memory from a machine that did.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models import json_text
from trunchray.adapters.sandbox.host import out_of_memory
from trunchray.adapters.sandbox.process import CallTimeout, ProcessDied, ProcessFailure
from trunchray.adapters.sandbox.tool_host import BadModule, Stopped, ToolHost
from trunchray.errors import ToolError

DEADLINE = 30.0
"""Seconds that one call may take."""

_GRACE = 1.0  # seconds between the tool's own abort signal and the end of its process


@dataclass(frozen=True)
class ToolModule:
    """A bundled module of a release; `sha256` identifies its code."""

    sha256: str
    code: bytes


@dataclass(frozen=True)
class ToolOutcome:
    """What came of one call.

    `input` is the validated value, or what the model sent when that was refused: JSON, or the text when it was none.
    `shown` is what the model gets to see, `{"type", "value"}` with the type "text", "json", "content" or "error-text"
    (or another that the tool's `toModelOutput` chose). Exactly one of `output` and `error` says how it went; `output`
    may be None for a tool that returned nothing.
    """

    input: JsonValue
    shown: dict[str, JsonValue]
    output: JsonValue = None
    error: str | None = None
    invalid: bool = False
    """Whether the call was refused before the tool ran."""


class ToolsProcess:
    """The tools that one trial may use, by name, in the order in which the case lists them.

    The process starts at the first call. `deadline` is for one call, in seconds; the JavaScript heap has `heap_mb`.
    It belongs to one event loop, and `close` has to be called at the end of the trial.
    """

    def __init__(self, tools: Mapping[str, ToolModule], *, deadline: float = DEADLINE, heap_mb: int = 256) -> None:
        self._tools = dict(tools)
        self._modules = list({module.sha256: module for module in tools.values()}.values())
        self._deadline = deadline
        self._heap_mb = heap_mb
        self._host: ToolHost | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    async def call(
        self, name: str, raw_arguments: str, *, tool_call_id: str, messages: Sequence[Mapping[str, Any]] = ()
    ) -> ToolOutcome:
        """Execute one call as the model wrote it; `messages` is the conversation before it, as JSON.

        Raises:
            ToolError: the process died; `type` is "out_of_memory", "killed", "crashed", "bad_module" or "closed".
            SandboxError: "start_failed", when no process could be started.
        """
        if name not in self._tools:
            return _failed(raw_arguments, _unknown(name, list(self._tools)), invalid=True)
        module = self._modules.index(self._tools[name])
        head: dict[str, JsonValue] = {
            "module": module,
            "name": name,
            "toolCallId": tool_call_id,
            "ms": round(self._deadline * 1000),
        }
        body = json.dumps(messages).encode() + b"\n" + json_text.well_formed(raw_arguments).encode()
        host = await self._running()
        try:
            return _outcome(await host.call(head, body, self._deadline + _GRACE))
        except CallTimeout:
            return _failed(raw_arguments, f"Tool {name!r} did not finish within {self._deadline:g} s. {_RESTARTED}")
        except Stopped:
            if self._closed:
                raise ToolError(
                    f"the call of tool {name!r} was cut off by the end of its trial", type="closed"
                ) from None
            return _failed(raw_arguments, f"Tool {name!r} was stopped, because another call hung. {_RESTARTED}")
        except ProcessFailure as e:
            raise _dead(name, e) from e

    @property
    def pid(self) -> int | None:
        """The process, and its group; None while there is none."""
        return None if self._host is None or self._host.ended else self._host.pid

    async def close(self) -> None:
        """Kill the process and everything it started; may be called again."""
        self._closed = True
        async with self._starting:
            host, self._host = self._host, None
        if host is not None:
            await host.close()

    async def _running(self) -> ToolHost:
        async with self._starting:
            if self._closed:
                raise ToolError("the trial's tools are closed", type="closed")
            if self._host is not None and self._host.ended:
                await self._host.close()
                self._host = None
            if self._host is None:
                self._host = await self._started()
            return self._host

    async def _started(self) -> ToolHost:
        try:
            return await ToolHost.start([module.code for module in self._modules], heap_mb=self._heap_mb)
        except BadModule as e:
            raise ToolError(f"a tool module cannot be loaded: {e}", type="bad_module") from e
        except ProcessFailure as e:
            raise ToolError(f"the tools could not be loaded: {e}; {e.log[-300:]}", type="crashed") from e


_RESTARTED = "All tools were restarted: what earlier calls left in their memory is lost."


def _unknown(name: str, offered: Sequence[str]) -> str:
    """In the words of the AI SDK."""
    available = f"Available tools: {', '.join(offered)}." if offered else "No tools are available."
    return f"Model tried to call unavailable tool '{name}'. {available}"


def _failed(raw_arguments: str, error: str, *, invalid: bool = False) -> ToolOutcome:
    """A call that the tool did not answer."""
    return ToolOutcome(
        json_text.parse_arguments(raw_arguments), {"type": "error-text", "value": error}, error=error, invalid=invalid
    )


def _outcome(reply: dict[str, Any]) -> ToolOutcome:
    if "error" in reply:
        error = str(reply["error"])
        shown: dict[str, JsonValue] = {"type": "error-text", "value": error}
        return ToolOutcome(reply.get("input"), shown, error=error, invalid=reply.get("invalid") is True)
    output = reply.get("output")
    shown = reply.get("shown") or {"type": "text" if isinstance(output, str) else "json", "value": output}
    return ToolOutcome(reply.get("input"), shown, output)


def _dead(name: str, failure: ProcessFailure) -> ToolError:
    what = f"the tools' process died during a call of {name!r}"
    match failure:
        case ProcessDied() if out_of_memory(failure):
            return ToolError(f"{what}: it used more memory than it may", type="out_of_memory")
        case ProcessDied(code=-9):
            return ToolError(f"{what}: somebody killed it", type="killed", retryable=True)
        case _:
            return ToolError(f"{what}: {failure}; {failure.log[-300:]}", type="crashed")
