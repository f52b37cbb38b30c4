"""A small process that forks, locks in and executes on behalf of a big one.

The big one has threads, and what a fork of it may do before it executes is next to nothing; this one has a single
thread, has everything imported, and forks in a millisecond. Requests come over a socket that keeps their borders:
JSON, and with it the file descriptors of the new process, from 0 up, and last a channel. Over the channel the asker
learns the new process's id, asks for its end (to await it, or to make it), and learns how it ended. Until asked, an
ended process is not reaped, so its id cannot become another's.

It ends when whoever started it does, and with it everything that it started (see `PR_SET_PDEATHSIG`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
from dataclasses import asdict, dataclass
from typing import Any

from trunchray.adapters.sandbox.hardening import Powers, lock_in, probe
from trunchray.adapters.sandbox.walls import Walls

MAX_REQUEST = 1 << 16
MAX_FILES = 16
AWAIT, KILL = b"a", b"k"
"""What may be said over a channel; closing it says `KILL`."""


def serve(control: int) -> None:
    """Answer requests that come over the socket `control` until its other end is closed."""
    os.set_inheritable(control, False)  # noqa: FBT003 - it takes no keyword
    with socket.socket(fileno=control) as asker:
        powers = probe()
        try:
            asker.send(json.dumps(asdict(powers)).encode())
        except ConnectionError:  # whoever started us is gone already
            return
        _Zygote(asker, powers).serve()


@dataclass(frozen=True)
class _Started:
    pid: int
    channel: socket.socket


class _Zygote:
    def __init__(self, asker: socket.socket, powers: Powers) -> None:
        self._asker = asker
        self._powers = powers
        self._started: dict[int, _Started] = {}
        """By the file descriptor of the channel."""
        self._awaited: dict[int, _Started] = {}
        """By process id: those whose end their askers want to be told."""
        self._parent = os.getppid()
        self._poll = select.poll()
        self._ended = _end_of_children()
        self._poll.register(self._ended, select.POLLIN)
        self._poll.register(asker.fileno(), select.POLLIN)
        self._orphaned = -1
        with contextlib.suppress(OSError):  # closing the socket tells as much, unless a fork has it, too
            self._orphaned = os.pidfd_open(self._parent)
            self._poll.register(self._orphaned, select.POLLIN)

    def serve(self) -> None:
        while os.getppid() == self._parent:
            for ready, _ in self._poll.poll():
                if ready == self._orphaned or (ready == self._asker.fileno() and not self._answer()):
                    return
                if ready == self._ended:
                    self._reap()
                elif ready in self._started:
                    self._heed(self._started[ready])

    def _answer(self) -> bool:
        """Take one request; False when there will be none."""
        try:
            request, files, _, _ = socket.recv_fds(self._asker, MAX_REQUEST, MAX_FILES, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # it was killed before it had read our last answer
            return False
        if not request:
            return False
        channel = socket.socket(fileno=files.pop())
        try:
            pid = self._fork(request, files)
        except OSError as e:
            _tell(channel, error=str(e))
            channel.close()
            return True
        finally:
            for file in files:
                os.close(file)
        _tell(channel, pid=pid)
        self._started[channel.fileno()] = _Started(pid, channel)
        self._poll.register(channel.fileno(), select.POLLIN)
        return True

    def _fork(self, request: bytes, files: list[int]) -> int:
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(json.loads(request), files, self._powers, zygote)
        return pid

    def _heed(self, child: _Started) -> None:
        """Whatever the asker says, it wants the end of the process: awaited, or made now."""
        try:
            wish = child.channel.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:  # what was ready was an older channel of the same number
            return
        except ConnectionError:
            wish = KILL
        if wish != AWAIT:
            os.kill(child.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):  # it had not begun a group of its own yet
                os.killpg(child.pid, signal.SIGKILL)
            self._poll.unregister(child.channel.fileno())
            del self._started[child.channel.fileno()]
        self._awaited[child.pid] = child
        self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._ended, 4096)
        for child in tuple(self._awaited.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: _Started, code: int) -> None:
        del self._awaited[child.pid]
        if self._started.pop(child.channel.fileno(), None):
            self._poll.unregister(child.channel.fileno())
        _tell(child.channel, code=code)
        child.channel.close()


def _end_of_children() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    readable, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(written)
    signal.signal(signal.SIGCHLD, _noted)
    return readable


def _noted(*_: object) -> None:
    """Without a handler, no wake-up is written."""


def _tell(channel: socket.socket, **news: int | str) -> None:
    with contextlib.suppress(OSError):  # the asker has closed it: nobody wants to know
        channel.send(json.dumps(news).encode())


def _become(request: dict[str, Any], files: list[int], powers: Powers, zygote: int) -> None:
    """In the child: turn into what was asked for, or say on the new process's stderr why not. Does not return."""
    try:
        os.setsid()
        _forget_signals()
        _lay_out(files)
        os.chdir(request["cwd"])
        lock_in(Walls(**request["walls"]), powers)
        if os.getppid() == zygote:  # else the signal of its death was missed
            os.execve(request["command"][0], request["command"], request["env"])  # noqa: S606 - no shell is meant
    except BaseException as e:
        os.write(2, f"{request['command'][0]} was not started: {e}\n".encode())
    os._exit(127)


def _forget_signals() -> None:
    """What Python ignores and its parent blocked is not for the new process."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _lay_out(files: list[int]) -> None:
    """Number the descriptors from 0; all others close at exec."""
    apart = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, MAX_FILES) for file in files]
    for number, file in enumerate(apart):
        os.dup2(file, number)
