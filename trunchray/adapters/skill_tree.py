"""A folder as one file, the same bytes for the same content: how skills travel to workers."""

from __future__ import annotations

import io
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from trunchray.errors import UsageError

LARGEST = 200_000_000
"""Bytes of all files together."""
_LEFT_OUT = frozenset({"__pycache__", ".git"})


def pack(folder: Path) -> bytes:
    """An uncompressed tar of the folder's files and folders, without `__pycache__` and `.git`.

    Links are followed as long as they stay inside the folder. Of what the file system knows of a file, only whether
    its owner may run it is kept.

    Raises:
        UsageError: the folder holds what cannot be packed, or too much.
    """
    root, packed, size = folder.resolve(), io.BytesIO(), 0
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in _below(folder, root):
            entry = _entry(file, folder)
            size += entry.size
            if size > LARGEST:
                raise UsageError(f"{str(folder)!r} holds more than {LARGEST // 1_000_000} MB; a skill is copied whole")
            try:
                tar.addfile(entry, None if entry.isdir() else io.BytesIO(file.read_bytes()))
            except OSError as e:
                raise UsageError(f"cannot read {str(file)!r}: {e.strerror}") from e
    return packed.getvalue()


def _below(folder: Path, root: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """All that is below a folder, folders before what is in them, sorted by name."""
    above |= {folder.resolve()}
    try:
        children = sorted(folder.iterdir())
    except OSError as e:
        raise UsageError(f"cannot read {str(folder)!r}: {e.strerror}") from e
    for child in children:
        if child.name in _LEFT_OUT:
            continue
        meant = child.resolve()
        if not meant.is_relative_to(root) or not meant.exists():
            raise UsageError(f"{str(child)!r} is a link that leads out of the skill, or nowhere; put a copy there")
        if meant in above:
            raise UsageError(f"{str(child)!r} is a link to a folder that it is in; remove it")
        yield child
        if meant.is_dir():
            yield from _below(child, root, above)


def _entry(file: Path, folder: Path) -> tarfile.TarInfo:
    about = file.stat()
    entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
    if stat.S_ISDIR(about.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISREG(about.st_mode):
        entry.size, entry.mode = about.st_size, 0o755 if about.st_mode & stat.S_IXUSR else 0o644
    else:
        raise UsageError(f"{str(file)!r} is neither a file nor a folder; remove it")
    return entry
