"""The processes below this one, orphans included: whoever loses its parent becomes a child of ours. Linux only."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from support.processes import descendants

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on no process that we start, directly or not, can leave this tree."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become the parent of orphans")


def reap(mine: set[int]) -> None:
    """Bury adopted children that have ended; those in `mine` are somebody else's to wait for."""
    for pid in descendants(os.getpid()) - mine:
        if parent(pid) == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def named(*beginnings: str) -> list[int]:
    """The living processes below this one whose command begins with one of these."""
    return [pid for pid, name in below() if name.startswith(beginnings)]


def below() -> Iterator[tuple[int, str]]:
    """The living processes below this one, with their commands."""
    for pid in sorted(descendants(os.getpid())):
        with suppress(OSError):  # it has ended
            if command := Path(f"/proc/{pid}/cmdline").read_bytes():  # empty once it has ended
                yield pid, command.replace(b"\0", b" ").decode(errors="replace").strip()


def kill(pids: list[int]) -> int:
    """SIGKILL those that are still there; how many that were."""
    killed = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def parent(pid: int) -> int | None:
    """The process that it is a child of; None when it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None
