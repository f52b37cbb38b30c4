"""Files that appear whole or not at all, whenever the process or the machine dies."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from trunchray.adapters.scratch import scratch as locked_scratch
from trunchray.errors import StoreError, UsageError


def replace(path: Path, content: bytes) -> None:
    """Put a file in place of whatever is there; readers see the old one or the new one."""
    temporary = _temporary(path, content)
    try:
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_with(path: Path, source: Path) -> None:
    """As `replace`, with a copy of another file."""
    temporary = _temporary(path)
    try:
        shutil.copyfile(source, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def unwritable(folder: Path) -> str | None:
    """Why no file can be made in a folder, which may have to be made first; None when one can be."""
    try:
        folder = folder.resolve()  # a link may lead to where nothing is yet
        there = next(place for place in (folder, *folder.parents) if place.exists())
    except (OSError, RuntimeError) as e:  # links that lead to each other are a RuntimeError
        return e.strerror if isinstance(e, OSError) else str(e)
    try:
        with tempfile.TemporaryFile(dir=there):  # permissions tell too little: root has all, and /proc takes no files
            return None
    except OSError as e:
        return f"no file can be made in {str(there)!r} ({e.strerror})"


def create(path: Path, content: bytes) -> None:
    """Put a file only where there is none: its name appears with the whole content, or somebody else's stays.

    On Linux it has no name before, so that a process that is killed leaves nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    nameless = _nameless(path.parent)
    if nameless is None:
        _create_by_name(path, content)
        return
    with open(nameless, "wb") as file:  # noqa: PTH123 - it has no path
        file.write(content)
        file.flush()
        os.fsync(nameless)
        with suppress(FileExistsError):
            # A source folder has to be given for Python to follow the link of /proc; it is not looked at.
            os.link(f"/proc/self/fd/{nameless}", path, src_dir_fd=nameless, follow_symlinks=True)


def _nameless(folder: Path) -> int | None:
    """A new file for writing in no folder, on the disk of this one; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.access("/proc/self/fd", os.X_OK):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError as e:
        if e.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def _create_by_name(path: Path, content: bytes) -> None:
    temporary = _temporary(path, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def scratch() -> Generator[Path]:
    """A folder for as long as the block runs; what a killed process has left of one, the next removes.

    Raises:
        StoreError: in place of an error of the disk, wherever in the block.
    """
    with ExitStack() as held:
        try:
            folder = held.enter_context(locked_scratch())
        except UsageError as e:  # by now a run may have gone on for hours
            raise StoreError(str(e)) from e
        except OSError as e:
            raise _no_room(e) from e
        try:
            yield folder
        except OSError as e:
            raise _no_room(e) from e


def _no_room(error: OSError) -> StoreError:
    place = tempfile.tempdir or "no folder for temporary files"
    return StoreError(f"{place}: {error.strerror or error}; set TMPDIR to a folder with room, and try again")


def _temporary(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    if content is not None:
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return temporary
