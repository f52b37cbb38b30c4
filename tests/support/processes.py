"""The processes below one of ours; what else runs on this machine is nobody's business here."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """The processes below this one, those that have ended and were not reaped included."""
    below: set[int] = set()
    with suppress(FileNotFoundError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                below |= {int(child) for child in (task / "children").read_text().split()}
    return below.union(*map(descendants, below))


def actors(pid: int) -> list[int]:
    """The processes of the Ray actors of a Ray that this process started."""
    found: list[int] = []
    for below in descendants(pid):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{below}/cmdline").read_bytes().startswith(b"ray::WorkerActor"):
                found.append(below)
    return found
