"""One sandboxed process that answers requests, one at a time, until it is killed.

Frames in both directions are a 32-bit big-endian length, a 32-bit number and as many bytes: requests on stdin, replies
on a pipe of their own. A reply has the number of its request, chosen by chance: one with another number, or one that
nobody asked for, ends the process. Whatever the process prints is a log, of which the end is kept. Nobody but this
module enforces a deadline, and the only means is SIGKILL of the whole process group.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import struct
import tempfile
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from trunchray.adapters.sandbox.child import Child
from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT, sandbox_command, sandbox_walls
from trunchray.adapters.sandbox.launcher import start

T = TypeVar("T")

_SIZES = struct.Struct(">II")
_HEADER = _SIZES.size
_UNASKED = 0  # the number of what is no reply to one request
_REPLY_PIPE = 3
"""The number that the reply pipe has in the process."""
_LOG_KEPT = 4096
_LAST_BREATH = 1.0  # seconds, from closing the reply pipe to the end


class ProcessFailure(Exception):
    """The process did not answer; it is dead now. `log` is the end of what it printed."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class CallTimeout(ProcessFailure):
    """No reply before the deadline."""


class ReplyTooLarge(ProcessFailure):
    """A reply announced more bytes than are allowed."""


class ProtocolBroken(ProcessFailure):
    """A reply was for another request, or for none."""


class ProcessDied(ProcessFailure):
    """The process ended. `code` is its exit code, or minus the number of the signal that ended it."""

    def __init__(self, message: str, *, log: str, code: int) -> None:
        super().__init__(message, log=log)
        self.code = code


@dataclass(frozen=True)
class Bounds:
    """What one process may use."""

    heap_mb: int
    """JavaScript heap."""
    cpu_seconds: int
    """Over its life, all threads together: the end of a process that we did not live to kill."""
    max_reply: int
    """Bytes."""
    pipe_bytes: int = 1 << 16
    """Of each pipe; more is worth its memory where frames have megabytes."""
    young_mb: int | None = None
    """New objects between two collections of the whole heap; None leaves both kinds of collection to V8.

    What a realm that is done with holds is partly old, and keeps the rest of it from being collected as young: where
    realms come and go, V8's own ways copy it again and again, until the heap is full.
    """
    extra_mb: int = 290
    """Memory besides the heap: array buffers, and what Deno itself needs."""
    readable: tuple[str, ...] = ()
    """Absolute paths that the operating system lets it read besides its own program; Deno's permissions stay."""

    @property
    def data_bytes(self) -> int:
        """Anonymous memory: heap, what comes beside it, and the 560 MB that V8 reserves for code without using it."""
        return (self.heap_mb + self.extra_mb + 560) << 20

    @property
    def resident_bytes(self) -> int:
        """Physical memory, where only that can be watched."""
        return (self.heap_mb + self.extra_mb) << 20


class SandboxProcess:
    """A Deno without permissions, in its own session and behind the walls of this machine; made by `start`."""

    def __init__(self, child: Child, pipes: tuple[int, int, int], bounds: Bounds) -> None:
        """`pipes` are our ends of its stdin, its output and its replies."""
        self._child = child
        self._requests, self._output, self._replies = pipes
        self._bounds = bounds
        self._received = bytearray()
        self._log = bytearray()
        self._ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._reaped: asyncio.Future[int] | None = None
        self._loop = asyncio.get_running_loop()
        for pipe in pipes:
            os.set_blocking(pipe, False)
        self._loop.add_reader(self._replies, self._on_reply)
        self._loop.add_reader(self._output, self._on_output)
        for pipe in (self._replies, self._requests):
            _resize(pipe, bounds.pipe_bytes)

    @classmethod
    async def start(
        cls,
        host: str,
        bounds: Bounds,
        *,
        deadline: float = 30,
        environment: Mapping[str, str] = SANDBOX_ENVIRONMENT,
    ) -> Self:
        """Run `sandbox_host/<host>`; its memory and CPU time are bounded before any untrusted code reaches it.

        Raises:
            ProcessFailure: it was not ready within `deadline` seconds.
            OSError: it could not be run.
        """
        directory = tempfile.mkdtemp(prefix="trunchray-sandbox-")
        try:
            self = cls(*_spawn(host, bounds, directory, environment), bounds)
            await self._within(deadline, self._next_reply(_UNASKED))
        finally:
            # An empty working directory is needed at the start only; removed now, it cannot be left behind later.
            shutil.rmtree(directory, ignore_errors=True)
        return self

    @property
    def usable(self) -> bool:
        """Not after its end has been noticed, nor after a reply that nobody asked for."""
        return self._reaped is None and not self._ended and not self._received

    @property
    def pid(self) -> int:
        """Also the id of its process group."""
        return self._child.pid

    async def call(self, payload: bytes, deadline: float) -> bytes:
        """One request and its reply, within `deadline` seconds.

        Raises:
            ProcessFailure: there is no reply, and the process is dead. It is killed when the call is cancelled, too.
        """
        number = 1 + secrets.randbelow((1 << 32) - 1)
        return await self._within(deadline, self._exchange(payload, number), number)

    async def send(self, payload: bytes) -> None:
        """One request, for hosts that answer several at once; no other may be sent meanwhile.

        Raises:
            ProcessFailure: the process is dead. It is killed when this is cancelled, too.
        """
        await self._alive(self._write(_frame(payload, _UNASKED)))

    async def receive(self) -> bytes:
        """The next reply, whichever request it is for.

        Raises:
            ProcessFailure: there is none, and the process is dead. It is killed when this is cancelled, too.
        """
        return await self._alive(self._next_reply(_UNASKED))

    async def close(self) -> None:
        """Kill and reap it; may be called again."""
        await asyncio.shield(self._kill())

    async def _within(self, deadline: float, work: Coroutine[Any, Any, bytes], number: int = _UNASKED) -> bytes:
        try:
            async with asyncio.timeout(deadline):
                return await work
        except TimeoutError:
            if (late := self._already_there(number)) is not None:
                return late
            await self.close()
            raise CallTimeout(f"no answer within {deadline:g} s", log=self.log) from None
        except (EOFError, BrokenPipeError):
            raise await self._death() from None
        except BaseException:
            self._kill()
            raise

    async def _alive(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except (EOFError, BrokenPipeError):
            raise await self._death() from None
        except BaseException:
            self._kill()
            raise

    async def _exchange(self, payload: bytes, number: int) -> bytes:
        if self._received:
            raise ProtocolBroken("the process sent what nobody asked for", log=self.log)
        await self._write(_frame(payload, number))
        return await self._next_reply(number)

    async def _write(self, frame: bytes) -> None:
        rest = memoryview(frame)
        while rest:
            if self._reaped is not None:  # the pipe is closed, and its number may be another file's by now
                raise BrokenPipeError
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        self._room.clear()
        self._loop.add_writer(self._requests, self._room.set)
        try:
            await self._room.wait()
        finally:
            if self._reaped is None:
                self._loop.remove_writer(self._requests)

    async def _next_reply(self, number: int) -> bytes:
        while (reply := self._take_reply(number)) is None:
            if self._ended:
                raise EOFError
            self._news.clear()
            await self._news.wait()
        return reply

    def _already_there(self, number: int) -> bytes | None:
        """A reply that came in time, to an event loop too busy to take it."""
        with contextlib.suppress(BlockingIOError):
            while not self._ended:
                self._on_reply()
        try:
            return self._take_reply(number)
        except ProcessFailure:
            self._kill()
            raise

    def _take_reply(self, number: int) -> bytes | None:
        if len(self._received) < _HEADER:
            return None
        length, answered = _SIZES.unpack_from(self._received)
        if answered != number:
            raise ProtocolBroken("the process answered what nobody asked", log=self.log)
        if length > self._bounds.max_reply:
            raise ReplyTooLarge(f"the reply has {length} bytes, more than {self._bounds.max_reply}", log=self.log)
        if len(self._received) < _HEADER + length:
            return None
        reply = bytes(memoryview(self._received)[_HEADER : _HEADER + length])
        del self._received[: _HEADER + length]
        return reply

    def _on_reply(self) -> None:
        chunk = os.read(self._replies, self._bounds.pipe_bytes)
        if chunk:
            self._received += chunk
        else:
            self._ended = True
            self._loop.remove_reader(self._replies)
        self._news.set()

    def _on_output(self) -> None:
        chunk = os.read(self._output, _LOG_KEPT)
        if not chunk:
            self._loop.remove_reader(self._output)
        self._log = (self._log + chunk)[-_LOG_KEPT:]

    @property
    def log(self) -> str:
        """The end of what the process printed, for messages."""
        return self._log.decode(errors="replace").strip()

    async def _death(self) -> ProcessDied:
        with contextlib.suppress(BlockingIOError):
            while self._reaped is None and (chunk := os.read(self._output, _LOG_KEPT)):
                self._log = (self._log + chunk)[-_LOG_KEPT:]
        code = await asyncio.shield(self._kill(grace=_LAST_BREATH))
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ProcessDied(f"the process ended with {how}", log=self.log, code=code)

    def _kill(self, *, grace: float = 0) -> asyncio.Future[int]:
        """Its end: at once, or up to `grace` seconds later, so that it is its own."""
        if self._reaped is None:
            if not grace:
                self._child.kill()
            for pipe in (self._replies, self._output):
                self._loop.remove_reader(pipe)
            self._loop.remove_writer(self._requests)
            self._room.set()
            for pipe in (self._requests, self._output, self._replies):
                os.close(pipe)
            # A thread reaps it even when whoever waits here is cancelled.
            self._reaped = self._loop.run_in_executor(None, _end_of, self._child, grace)
        return self._reaped


def _frame(payload: bytes, number: int) -> bytes:
    return _SIZES.pack(len(payload), number) + payload


def _end_of(child: Child, grace: float) -> int:
    if grace:
        with contextlib.suppress(TimeoutError):
            return child.wait(grace)
        child.kill()
    return child.wait()


def _spawn(
    host: str, bounds: Bounds, directory: str, environment: Mapping[str, str]
) -> tuple[Child, tuple[int, int, int]]:
    """The running process, and our ends of its stdin, its output and its replies."""
    pipes = [os.pipe() for _ in range(3)]
    (stdin, requests), (output, stdout), (replies, reply_pipe) = pipes
    try:
        child = start(
            sandbox_command(host, _REPLY_PIPE, heap_mb=bounds.heap_mb, young_mb=bounds.young_mb),
            [stdin, stdout, stdout, reply_pipe],
            cwd=directory,
            env=environment,
            walls=sandbox_walls(
                bounds.readable,
                data_bytes=bounds.data_bytes,
                resident_bytes=bounds.resident_bytes,
                cpu_seconds=bounds.cpu_seconds,
            ),
        )
    except BaseException:
        for pipe in (requests, output, replies):
            os.close(pipe)
        raise
    finally:
        for pipe in (stdin, stdout, reply_pipe):
            os.close(pipe)
    return child, (requests, output, replies)


def _resize(pipe: int, size: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
        with contextlib.suppress(OSError):  # the user's pipes have their share of memory already
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
