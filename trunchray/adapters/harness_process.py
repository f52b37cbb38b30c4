"""Running a coding tool's command once, to its end or to ours."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

from trunchray.adapters import harness_supervisor
from trunchray.adapters.calling import in_thread
from trunchray.adapters.capped_file import CappedFile
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.excerpt import excerpt

LONGEST_ARGUMENT = 131_071
"""Bytes of one argument on Linux, the prompt included."""
_SUPERVISOR = harness_supervisor.__file__
_CHUNK = 1 << 16
_LOST = 20.0
"""Seconds, from the end of the time that a command has to end by itself, after which its supervisor is given up."""
_DRAIN = 5.0
"""Seconds that we go on reading when all is over: what has left its group where groups are all we know may go on."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many bytes are kept of what a command prints, and of these how many of its end."""

    stdout: int = 64 << 20
    stderr: int = 8 << 20
    tail: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    status: Literal["ended", "timeout", "missing", "refused", "lost"]
    """By itself; by us; there is none that could be executed; the system refused its arguments; nobody knows."""
    code: int = -1
    """The exit code, or minus the number of the signal that ended it; -1 where there is none."""
    seconds: float = 0.0
    """That it ran."""
    reason: str | None = None
    """For people; None when it ended by itself."""
    truncated: tuple[str, ...] = ()
    """The names of files that do not have everything."""


async def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    limit: float,
    watch: Callable[[bytes], object] = lambda _: None,
    caps: Caps = Caps(),
    warnings: bytes = b"",
    grace: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Run it without input, and end all it started: when it ends, after `limit` seconds, and when we are cancelled.

    Whatever it prints goes to two files, of which `stderr` begins with `warnings`; all of its standard output goes to
    `watch` as well. Too late, it is asked to
    end, and killed `grace` seconds later. `clock` counts seconds from anywhere.

    Raises:
        OSError: a file cannot be written.
    """
    out, err = CappedFile(stdout, caps.stdout, caps.tail), CappedFile(stderr, caps.stderr, caps.tail)
    request = {"argv": list(argv), "cwd": str(cwd), "env": dict(env), "grace": grace}
    err.write(warnings)
    last = b""

    def take(chunk: bytes) -> None:
        out.write(chunk)
        watch(chunk)

    try:
        began = clock()
        run = _Run(request, take, err.write)
        try:
            in_time = await run.over(limit, grace)
            seconds = clock() - began
            await run.drain()
        finally:
            await run.close()
        told = run.told()
        if not in_time:
            last = f"\nTIMEOUT after {limit:g}s".encode()
    finally:
        out.close()
        err.close(last)
    truncated = tuple(path.name for path, file in ((stdout, out), (stderr, err)) if file.truncated)
    return replace(_ending(argv, told, timeout=None if in_time else limit), seconds=seconds, truncated=truncated)


class _Run:
    """A supervisor at work, and what comes from it."""

    def __init__(self, request: dict[str, Any], out: Callable[[bytes], object], err: Callable[[bytes], object]) -> None:
        pipes = [os.pipe() for _ in range(4)]
        (stdin, self._channel), (stdout, stdout_end), (stderr, stderr_end), (answer, answer_end) = pipes
        try:
            with _anonymous_file(json.dumps(request).encode()) as asked:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-X", "utf8", _SUPERVISOR, str(asked.fileno()), str(answer_end)],
                    stdin=stdin,
                    stdout=stdout_end,
                    stderr=stderr_end,
                    pass_fds=(asked.fileno(), answer_end),
                    # Whatever the tool finds out about its parents, our keys are not there.
                    env={name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ},
                    start_new_session=True,
                )
        except BaseException:
            for ours in (self._channel, stdout, stderr, answer):
                os.close(ours)
            raise
        finally:
            for theirs in (stdin, stdout_end, stderr_end, answer_end):
                os.close(theirs)
        self._told = bytearray()
        self._printed = (_Pipe(stdout, out), _Pipe(stderr, err))
        self._answer = _Pipe(answer, self._told.extend)

    async def over(self, limit: float, grace: float) -> bool:
        """Wait until all is over; whether it was by itself, within `limit` seconds."""
        if await self._answer.closes(limit):
            return True
        with contextlib.suppress(BrokenPipeError):
            os.write(self._channel, b"t")
        if not await self._answer.closes(grace + _LOST):
            self._process.kill()
        return False

    async def drain(self) -> None:
        """Read what is still in the pipes."""
        for pipe in self._printed:
            await pipe.closes(_DRAIN)

    async def close(self) -> None:
        """End whatever is not over."""
        os.close(self._channel)
        try:
            await uninterrupted(in_thread(self._process.wait))
        finally:
            for pipe in (*self._printed, self._answer):
                pipe.close()

    def told(self) -> dict[str, Any]:
        """The answer; {} when the supervisor has ended without one.

        Raises:
            OSError: what was printed could not be written.
        """
        for pipe in self._printed:
            if pipe.error:
                raise pipe.error
        return json.loads(self._told) if self._told else {}


class _Pipe:
    """Our end of a pipe, read as something comes, until it closes."""

    def __init__(self, file: int, take: Callable[[bytes], object]) -> None:
        self._file, self._take = file, take
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.error: Exception | None = None
        """Why nothing more is taken; it is still read, so that nobody waits for us."""
        os.set_blocking(file, False)
        self._loop.add_reader(file, self._read)

    async def closes(self, seconds: float) -> bool:
        """Whether it does, within this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        return self._closed.is_set()

    def close(self) -> None:
        """Read no more; may be called again."""
        if not self._closed.is_set():
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._closed.set()

    def _read(self) -> None:
        chunk = os.read(self._file, _CHUNK)
        if not chunk:
            self.close()
        elif self.error is None:
            try:
                self._take(chunk)
            except Exception as e:
                self.error = e


def _anonymous_file(content: bytes) -> BinaryIO:
    """A file without a name, at its beginning; in memory where the system has such."""
    in_memory = hasattr(os, "memfd_create")
    file = os.fdopen(os.memfd_create("request"), "r+b") if in_memory else tempfile.TemporaryFile()  # noqa: SIM115 - returned
    file.write(content)
    file.flush()
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    return file


def _ending(argv: Sequence[str], told: dict[str, Any], *, timeout: float | None) -> Ending:
    if "error" in told:
        return _not_started(argv, told["error"], told["message"])
    if timeout is not None:
        return Ending("timeout", reason=f"still running after {timeout:g} s")
    if "code" not in told:
        return Ending("lost", reason="the process that watches over the command was killed")
    left = told["left"]
    return Ending("ended", told["code"], reason=f"{left} of its processes could not be ended" if left else None)


def _not_started(argv: Sequence[str], number: int, message: str) -> Ending:
    command = excerpt(argv[0], 200)
    if number in (errno.ENOENT, errno.ENOTDIR):
        relative = "/" in command and not command.startswith("/")
        remedy = "give its whole path, as it runs in a workspace" if relative else "install it, or give its path"
        return Ending("missing", reason=f"there is no command {command!r} on this machine; {remedy}")
    if number in (errno.EACCES, errno.EPERM):
        return Ending("missing", reason=f"{command!r} may not be executed here: {message}")
    if number == errno.E2BIG:
        longest = max(len(os.fsencode(token)) for token in argv)
        most = f"of which one may have {LONGEST_ARGUMENT:,}"
        return Ending(
            "refused", reason=f"the prompt is too long for an argument: {longest:,} bytes, {most}; shorten it"
        )
    return Ending("refused", reason=f"{command!r} could not be started: {message}")
