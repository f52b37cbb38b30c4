"""Temporary folders, also those that a killed process could not remove.

Beside each folder stands a lock file, and whoever uses the folder keeps it locked. The kernel unlocks it when that
process ends, however it ends. So what nobody has locked is left over, and the next process removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trunchray.adapters.held_folder import HeldFolder
from trunchray.errors import UsageError

_LOCK = ".lock"
_STARTED = 600
"""Seconds after which no sandboxed process can still be starting in its empty folder."""

_swept: set[Path] = set()


@contextmanager
def scratch(place: Path | None = None) -> Generator[Path]:
    """An empty folder in `place`, which exists, for the time of the block.

    None is for the folder of this user among temporary files.

    Raises:
        UsageError: that one is not the user's own, or cannot be had.
        OSError: the folder cannot be made.
    """
    place = _own() if place is None else place
    if place not in _swept:
        _swept.add(place)
        sweep(place)
    lock, file = _locked(place)
    folder = lock.with_suffix("")
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        _remove(folder, lock)
        os.close(file)


def sweep(place: Path) -> None:
    """Remove the folders in `place` that nobody uses."""
    for lock in place.glob(f"*{_LOCK}"):
        with contextlib.suppress(OSError):  # somebody else is just removing it, or may not lock it
            file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _taken(file, lock):
                    _remove(lock.with_suffix(""), lock)
            finally:
                os.close(file)


def _own() -> Path:
    """The folder that all of this user's processes share."""
    try:
        everybodys = Path(tempfile.gettempdir())
        place = everybodys / f"trunchray-{os.getuid()}"
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError as e:
        raise UsageError(f"there is no place for temporary files ({e}); set TMPDIR to a folder of your own") from e
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UsageError(f"{place} is not yours alone; remove it, or set TMPDIR to a folder of your own")
    if place not in _swept:
        _sweep_starts(everybodys)
    return place


def _sweep_starts(everybodys: Path) -> None:
    """Empty folders of sandboxed processes whose owner was killed while it started them."""
    for folder in everybodys.glob("trunchray-sandbox-*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if found.st_uid == os.getuid() and found.st_mtime < time.time() - _STARTED:
                folder.rmdir()


def _locked(place: Path) -> tuple[Path, int]:
    """A new lock file, and its descriptor, by which it is locked."""
    while True:
        lock = place / f"{secrets.token_hex(8)}{_LOCK}"
        file = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            if _taken(file, lock):
                return lock, file
        except BlockingIOError:
            pass
        except OSError:  # nothing can be locked in this file system, so nobody will take it for left over
            return lock, file
        os.close(file)  # a process that swept came in between


def _taken(file: int, lock: Path) -> bool:
    """Lock a file; whether it still is the one of that name.

    Raises:
        BlockingIOError: somebody else has locked it.
        OSError: the file system has no locks.
    """
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.path.lexists(lock) and os.path.samestat(os.fstat(file), lock.lstat())


def _remove(folder: Path, lock: Path) -> None:
    """What cannot be removed now keeps its lock file, and so is tried again by the next process."""
    with contextlib.suppress(OSError):
        if folder.is_symlink() or not folder.is_dir():  # somebody has put it there, or it is not there
            folder.unlink()
        else:
            with contextlib.closing(HeldFolder(folder)) as held:
                held.remove()
    if not os.path.lexists(folder):
        lock.unlink(missing_ok=True)
