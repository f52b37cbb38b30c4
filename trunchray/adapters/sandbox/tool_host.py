"""A process with tool modules in it, which answers any number of calls at once."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any, Self, cast

from pydantic import JsonValue

from trunchray.adapters.sandbox.host import parsed, started
from trunchray.adapters.sandbox.process import Bounds, CallTimeout, ProcessFailure, ProtocolBroken, SandboxProcess

_HOST = "tools_host.mjs"
_MAX_REPLY = 10_000_000  # bytes; the host bounds each of three values to 1,000,000 characters
_MAX_CPU = 3600  # seconds, over a whole trial
_START = 30.0  # seconds


class Stopped(ProcessFailure):
    """Another call of the same process did not end in time, so all were stopped."""


class BadModule(ProcessFailure):
    """A module cannot be loaded; the message says why."""


class ToolHost:
    """One sandboxed process, made by `start`. It belongs to one event loop."""

    def __init__(self, process: SandboxProcess) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked: set[int] = set()
        """Calls without a reply yet, also those whose caller is gone."""
        self._turn = asyncio.Lock()
        self._end: ProcessFailure | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, codes: Sequence[bytes], *, heap_mb: int) -> Self:
        """A process that has loaded the modules with these codes.

        Raises:
            BadModule: one of them throws, or is not a module.
            ProcessFailure: the process hung or ended while they were loaded.
            SandboxError: it did not start.
        """
        process, _ = await loaded(codes, heap_mb=heap_mb, deadline=_START, examine=False)
        return cls(process)

    @property
    def ended(self) -> bool:
        """Whether it answers no more."""
        return self._end is not None

    @property
    def pid(self) -> int:
        """Also the id of its process group."""
        return self._process.pid

    async def call(self, head: dict[str, JsonValue], body: bytes, deadline: float) -> dict[str, Any]:
        """One request and its reply, within `deadline` seconds.

        Raises:
            CallTimeout: there is none; all calls of the process are stopped.
            Stopped: another call's end was this call's, too.
            ProcessFailure: the process died, or broke its protocol.
        """
        if self._end is not None:
            raise self._end
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._asked.add(number)
        frame = json.dumps({"id": number, **head}).encode() + b"\n" + body
        sending = asyncio.create_task(self._send(frame))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)
        try:
            await asyncio.wait({reply}, timeout=deadline)
            if not reply.done():
                await self._stop(deadline)
                raise CallTimeout(f"no answer within {deadline:g} s", log=self._process.log)
            return reply.result()
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Kill the process and everything it started; calls under way end with `Stopped`."""
        self._fail(Stopped("the tools were closed"))
        tasks = [*self._sending, self._listener]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._process.close()

    async def _stop(self, deadline: float) -> None:
        self._fail(Stopped(f"another call did not end within {deadline:g} s"))
        await self.close()

    async def _send(self, frame: bytes) -> None:
        """A frame that was begun is finished even when its caller is gone."""
        async with self._turn:
            try:
                await self._process.send(frame)
            except ProcessFailure as e:
                self._fail(e)

    async def _listen(self) -> None:
        try:
            while True:
                number, reply = _taken_apart(await self._process.receive())
                if number not in self._asked:
                    raise ProcessFailure("the process answered what nobody asked")
                self._asked.remove(number)
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except ProcessFailure as e:
            self._fail(e)
            await self._process.close()

    def _fail(self, failure: ProcessFailure) -> None:
        """Every call under way ends like this; only the first reason counts."""
        self._end = self._end or failure
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._end)
                waiting.exception()  # a caller that was cancelled does not look at it


async def loaded(
    codes: Sequence[bytes], *, heap_mb: int, deadline: float, examine: bool
) -> tuple[SandboxProcess, list[dict[str, Any]]]:
    """A process with modules in it and, when they shall be examined, what was found in each.

    `deadline` is in seconds, for the authors' code.

    Raises:
        BadModule: a module throws, or is not a module.
        ProcessFailure: the process hung or ended while they were loaded.
        SandboxError: it did not start.
    """
    bounds = Bounds(heap_mb=heap_mb, cpu_seconds=_MAX_CPU, max_reply=_MAX_REPLY, pipe_bytes=1 << 20)
    process = await started(_HOST, bounds, what="the tools' process")
    try:
        head = json.dumps({"modules": [len(code) for code in codes], "examine": examine}).encode()
        answer = parsed(await process.call(b"\n".join((head, b"".join(codes))), deadline), parse_int=_number)
        if failure := answer.get("failure"):
            raise BadModule(str(failure))
    except BaseException:
        await process.close()
        raise
    return process, answer.get("reports", [])


def _taken_apart(reply: bytes) -> tuple[int, dict[str, Any]]:
    answer = parsed(reply, parse_int=_number)
    number, content = answer.get("id"), answer.get("reply")
    if not isinstance(number, int) or not isinstance(content, dict):
        raise ProtocolBroken("the process broke its protocol")
    return number, cast("dict[str, Any]", content)


def _number(text: str) -> int | float:
    """JavaScript writes large floats like whole numbers; as such they would be others, and no canonical JSON."""
    number = int(text) if len(text) < 20 else float(text)
    return number if abs(number) < 1 << 53 else float(text)
