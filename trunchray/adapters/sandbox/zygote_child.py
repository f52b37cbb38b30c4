"""A sandboxed process on Linux: forked, locked in and reaped by this process's zygote."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trunchray.adapters.sandbox import zygote
from trunchray.adapters.sandbox.hardening import Powers
from trunchray.adapters.sandbox.walls import Walls
from trunchray.adapters.sandbox.watchdog import WATCHDOG

_PATIENCE = 30.0  # seconds, for a zygote to start or to fork
_PACKAGES = str(Path(__file__).parents[3])
_PROGRAM = f"import sys; sys.path.append({_PACKAGES!r}); import {zygote.__name__} as z; z.serve(int(sys.argv[1]))"


class ZygoteChild:
    """Its arguments are those of `launcher.start`."""

    def __init__(
        self, command: Sequence[str], files: Sequence[int], *, cwd: str, env: Mapping[str, str], walls: Walls
    ) -> None:
        request = {"command": [*command], "cwd": cwd, "env": {**env}, "walls": asdict(walls)}
        self._channel, self._pid = _forked(json.dumps(request).encode(), files)
        self._owned = True
        """Whether its id is sure to be its own: the zygote reaps it only after it was asked for its end."""
        if walls.resident_bytes is not None and not zygote_powers().memory:
            WATCHDOG.watch(self._pid, walls.resident_bytes)

    @property
    def pid(self) -> int:
        return self._pid

    def kill(self) -> None:
        if self._owned:  # the zygote would do, but might be busy
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
        self._ask(zygote.KILL)

    def wait(self, timeout: float | None = None) -> int:
        self._ask(zygote.AWAIT)
        self._channel.settimeout(timeout)
        code = _heard(self._channel).get("code", -signal.SIGKILL)  # a zygote that is gone took its children along
        self._channel.close()
        return code

    def _ask(self, wish: bytes) -> None:
        self._owned = False
        WATCHDOG.release(self._pid)
        with contextlib.suppress(OSError):  # it has ended, or the zygote has
            self._channel.send(wish)


class _Zygote:
    """The running zygote of this process."""

    def __init__(self) -> None:
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-I", "-c", _PROGRAM, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt from the keyboard is not for it
                cwd="/",
            )
        self.owner = os.getpid()
        self.control.settimeout(_PATIENCE)
        hello = _heard(self.control)
        if not hello:
            self.close()
            raise OSError("the process that starts sandboxes did not start")
        self.powers = Powers(**hello)

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        self.control.close()
        if self.owner == os.getpid():
            self._process.wait()


_lock = threading.Lock()
_current: list[_Zygote] = []


def zygote_powers() -> Powers:
    """The walls that this machine has; found out once.

    Raises:
        OSError: no zygote could be started.
    """
    return _zygote().powers


def _zygote() -> _Zygote:
    with _lock:
        if _current and not _current[0].alive:
            _current.pop().close()
        if not _current:
            _current.append(_Zygote())
        return _current[0]


@atexit.register
def _close() -> None:
    while _current:
        _current.pop().close()


def _forked(request: bytes, files: Sequence[int]) -> tuple[socket.socket, int]:
    """The channel and the id of a new process. A zygote that has died is replaced, once."""
    for _ in range(2):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(_zygote().control, [request], [*files, theirs.fileno()])
        ours.settimeout(_PATIENCE)
        news = _heard(ours)
        if "pid" in news:
            ours.settimeout(None)
            return ours, news["pid"]
        ours.close()
        if "error" in news:
            raise OSError(news["error"])
    raise OSError("the process that starts sandboxes died")


def _heard(channel: socket.socket) -> dict[str, Any]:
    """The next message, or nothing when the other end is closed."""
    try:
        message = channel.recv(4096)
    except ConnectionError:
        message = b""
    return json.loads(message) if message else {}
