"""Running a coding tool's command once, to its end or to ours."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from trunchray.adapters import harness_supervisor
from trunchray.adapters.calling import in_thread
from trunchray.adapters.capped_file import CappedFile
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.excerpt import excerpt
from trunchray.core.masking import NOTHING, Mask, MaskedStream

LONGEST_ARGUMENT = 131_071
"""Bytes of one argument on Linux, the prompt included."""
_SUPERVISOR = harness_supervisor.__file__
_CHUNK = 1 << 16
_SAID = 4096
"""Bytes at the end of what was printed as errors in which a reason is looked for."""
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


USUAL_CAPS = Caps()
Stream: TypeAlias = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Command:
    """One run of a program, without input."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    limit: float
    """Seconds after which it is asked to end."""
    grace: float = 5.0
    """Seconds after that until it is killed."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What becomes of all that a command prints. The two files are open, and stay so."""

    stdout: BinaryIO
    stderr: BinaryIO
    caps: Caps = USUAL_CAPS
    watch: Callable[[bytes], object] = lambda _: None
    """Is given all of standard output, also what is not kept."""
    mask: Mask = NOTHING
    """What is in neither file, and not given to `watch`."""
    warnings: bytes = b""
    """Of ours, with which `stderr` begins."""


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
    truncated: tuple[Stream, ...] = ()
    """Those of which the file does not have everything."""
    said: str = ""
    """The end of what the command itself printed as errors, of 4,096 bytes at most."""


async def run_command(command: Command, capture: Capture, *, clock: Callable[[], float] = time.monotonic) -> Ending:
    """Run it, and end all it has started: when it ends, when its time is up, and when we are cancelled.

    `clock` counts seconds from anywhere.

    Raises:
        OSError: a file cannot be written.
    """
    with ExitStack() as files:
        out = files.enter_context(_Kept(capture.stdout, capture.caps.stdout, capture, capture.watch))
        err = files.enter_context(_Kept(capture.stderr, capture.caps.stderr, capture))
        streams: dict[Stream, _Kept] = {"stdout": out, "stderr": err}
        err.add(capture.warnings)
        began = clock()
        run = _Run(command, out.write, err.write)
        try:
            in_time = await run.over(command.limit, command.grace)
            seconds = clock() - began
            await run.drain()
        finally:
            await run.close()
        told = run.told()
        err.close("" if in_time else f"\nTIMEOUT after {command.limit:g}s")
    truncated = tuple(name for name, kept in streams.items() if kept.truncated)
    ending = _ending(command.argv, told, timeout=None if in_time else command.limit)
    return replace(ending, seconds=seconds, truncated=truncated, said=err.end)


class _Kept:
    """A stream on its way to its file, without what is masked."""

    def __init__(
        self, file: BinaryIO, most: int, capture: Capture, watch: Callable[[bytes], object] = lambda _: None
    ) -> None:
        self._file = CappedFile(file, most, capture.caps.tail)
        self._masked = MaskedStream(capture.mask)
        self._watch = watch
        self._end = b""

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def truncated(self) -> bool:
        return self._file.truncated

    @property
    def end(self) -> str:
        """The last of what was written."""
        return self._end.decode(errors="replace")

    def add(self, content: bytes) -> None:
        """What is ours."""
        self._file.write(content)

    def write(self, chunk: bytes) -> None:
        """What the command has printed."""
        self._give_on(self._masked.feed(chunk))

    def close(self, last: str = "") -> None:
        """Write what was held back, and `last`, which is ours, after it; may be called again."""
        if not self._file.closed:
            try:
                self._give_on(self._masked.end())
            finally:
                self._file.close(last.encode())

    def _give_on(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._end = (self._end + chunk)[-_SAID:]
        self._watch(chunk)


class _Run:
    """A supervisor at work, and what comes from it."""

    def __init__(self, command: Command, out: Callable[[bytes], object], err: Callable[[bytes], object]) -> None:
        stdin, *outputs = _pipes(4)
        theirs = [stdin[0], *(write for _, write in outputs)]
        self._channel, *ours = [stdin[1], *(read for read, _ in outputs)]
        try:
            self._process = _supervisor(command, *theirs)
        except BaseException:
            _close(self._channel, *ours)
            raise
        finally:
            _close(*theirs)
        self._told = bytearray()
        self._printed = (_Pipe(ours[0], out), _Pipe(ours[1], err))
        self._answer = _Pipe(ours[2], self._told.extend)

    async def over(self, limit: float, grace: float) -> bool:
        """Wait until all is over; whether it was by itself, within `limit` seconds."""
        if await self._answer.closes(limit):
            return True
        with contextlib.suppress(BrokenPipeError):
            os.write(self._channel, b"t")
        self._signal(signal.SIGCONT)  # the command may have stopped what watches over it
        if not await self._answer.closes(grace + _LOST):
            self._signal(signal.SIGKILL)
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

    def _signal(self, number: signal.Signals) -> None:
        """To what watches over the command, which is a group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it is over
            os.killpg(self._process.pid, number)

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


def _supervisor(command: Command, stdin: int, stdout: int, stderr: int, answer: int) -> subprocess.Popen[bytes]:
    request = {
        "argv": list(command.argv), "cwd": str(command.cwd), "env": dict(command.env), "grace": command.grace
    }  # fmt: skip
    with _anonymous_file(json.dumps(request).encode()) as asked:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", _SUPERVISOR, str(asked.fileno()), str(answer)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(asked.fileno(), answer),
            # The tool can read the environment of its parent. That of this process is closed by `close_memory`.
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ},
            start_new_session=True,
        )


def _pipes(count: int) -> list[tuple[int, int]]:
    """So many pipes, as their ends for reading and for writing; none where there are too few descriptors for all.

    Raises:
        OSError: there are.
    """
    made: list[tuple[int, int]] = []
    try:
        while len(made) < count:
            made.append(os.pipe())
    except OSError:
        _close(*(end for pipe in made for end in pipe))
        raise
    return made


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


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
        return Ending("refused", reason=_too_long(argv))
    return Ending("refused", reason=f"{command!r} could not be started: {message}")


def _too_long(argv: Sequence[str]) -> str:
    """Which limit of the system the arguments are beyond, and what to do about it."""
    longest = max(len(os.fsencode(token)) for token in argv)
    if longest > LONGEST_ARGUMENT:
        return (
            f"the longest argument has {longest:,} bytes, and Linux takes {LONGEST_ARGUMENT:,} at most; "
            "shorten the prompt, or put what is long into a file of the case"
        )
    return (
        "the arguments and variables together are longer than this system takes; "
        "shorten the prompt, pass fewer variables, or raise the limit of the stack (ulimit -s)"
    )
