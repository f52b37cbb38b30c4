"""The process between us and a coding tool: nothing that the tool starts lives longer than the run.

Run by itself, with the standard library alone. Its arguments name two descriptors: of a file with the request, which is
JSON, and of a pipe that takes the one answer. Its standard input is a channel: `t` asks everything to end, and when it
closes because whoever asked is gone, all is killed at once. The answer is JSON as well: `{"error": <errno or 0>,
"message": …}` when the command could not be started, otherwise `{"code": …, "left": …}`: how the command ended, as
`subprocess` tells it, and how many processes could not be ended. What the command prints goes where this process
prints.

On Linux, descendants whose parents have ended become children of this process, so it finds those, too, that have left
their session; elsewhere it knows the command's process group. There it is also two processes. The first one
does nothing but look after the second, which does all of this: when a command stops that, it is made to go on, and when
a command kills it, the first one ends all that is left of the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LINUX = sys.platform == "linux"
_PATIENCE = 10.0
"""Seconds for killed processes to go; some wait for a disk, and some are not ours to kill."""


def main() -> None:
    """Serve one request."""
    asked, answer = map(int, sys.argv[1:])
    libc = _libc()
    if libc:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if second := os.fork():
            os.close(asked)
            _look_after(second)
            return
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _serve(asked, answer, libc)


def _look_after(second: int) -> None:
    while os.WIFSTOPPED(os.waitpid(second, os.WUNTRACED)[1]):
        os.kill(second, signal.SIGCONT)
    _Family(second).end()


def _serve(asked: int, answer: int, libc: Any) -> None:
    os.set_inheritable(answer, False)  # noqa: FBT003 - it takes no keyword
    with open(asked, "rb") as file:
        request = json.load(file)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, _notice)
    signal.set_wakeup_fd(wake)
    try:
        command = _started(request, libc)
    except (OSError, ValueError) as e:
        _answer(answer, {"error": getattr(e, "errno", None) or 0, "message": getattr(e, "strerror", None) or str(e)})
        return
    family = _Family(command.pid)
    family.attend(woken, float(request["grace"]))
    left = family.end()
    command.returncode = -signal.SIGKILL if family.code is None else family.code
    _answer(answer, {"code": command.returncode, "left": left})


def _started(request: dict[str, Any], libc: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        request["argv"],
        cwd=request["cwd"],
        env=request["env"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        # When we are killed, so is the command. There is only one thread here.
        preexec_fn=(lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)) if libc else None,  # noqa: PLW1509
    )


class _Family:
    """A command and all that it has started. Nobody else waits for children here."""

    def __init__(self, command: int) -> None:
        self._command = command
        self.code: int | None = None
        """How the command ended; None while it runs."""

    def attend(self, woken: int, grace: float) -> None:
        """Return when the command has ended, or has to; `grace` is how many seconds it has once it was asked to."""
        deadline: float | None = None
        self._reap()
        while self.code is None:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([0, woken], [], [], wait)
            if 0 in ready:
                if os.read(0, 1) != b"t":
                    return
                deadline = time.monotonic() + grace
                self._signal(signal.SIGTERM)
            if woken in ready:
                os.read(woken, 1 << 16)
            self._reap()
            if deadline is not None and time.monotonic() >= deadline:
                return

    def end(self) -> int:
        """Kill whatever is left, again and again, as it may be starting more; how many could not be ended."""
        deadline = time.monotonic() + _PATIENCE
        while left := self._members():
            if time.monotonic() > deadline:
                return len(left)
            self._signal(signal.SIGKILL)
            time.sleep(0.005)
            self._reap()
        return 0

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._command:
                    self.code = os.waitstatus_to_exitcode(ended[1])

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number) if pid > 0 else os.killpg(-pid, number)

    def _members(self) -> list[int]:
        """All descendants of ours; where they cannot be told, minus the number of the command's group."""
        if _LINUX:
            return _descendants(os.getpid())
        try:
            os.killpg(self._command, 0)
        except (ProcessLookupError, PermissionError):  # macOS has no permission for what has ended already
            return []
        return [-self._command]


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - this file does without what takes long to import
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                children.setdefault(_parent(name), []).append(int(name))
    found: list[int] = []
    new = children.get(root, [])
    while new:
        found += new
        new = [child for pid in new for child in children.get(pid, [])]
    return found


def _parent(pid: str) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - as above
        return int(stat.read().rpartition(b")")[2].split()[1])


def _libc() -> Any:
    if not _LINUX:
        return None
    import ctypes  # noqa: PLC0415 - Linux alone needs it

    return ctypes.CDLL(None, use_errno=True)


def _notice(*_: object) -> None:
    """A signal without a handler would not wake us."""


def _answer(file: int, told: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(file, json.dumps(told).encode())


if __name__ == "__main__":
    main()
