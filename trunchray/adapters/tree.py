"""Folders as a whole: packed, copied and told apart."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

_NO_SKILL = frozenset({".git", "__pycache__"})
_NEITHER = "neither a file nor a folder"


class TreeError(Exception):
    """A folder is not what it has to be; the message says where."""


def tree_digest(folder: Path, only: Collection[str] | None = None) -> str:
    """64 hex digits of all names below a folder, what files hold and where links lead; modes and times do not count.

    `only`: what counts of the names directly in the folder; None: all.

    Raises:
        OSError: something cannot be read.
    """
    found = hashlib.sha256()
    for entry in sorted(_parts(folder, only)):
        found.update(b"".join(len(part).to_bytes(8, "big") + part for part in entry))
    return found.hexdigest()


def _parts(folder: Path, only: Collection[str] | None) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Path, kind and content of each."""
    for root, folders, files in os.walk(folder, onerror=_refuse):
        names = [*folders, *files]
        if only is not None and Path(root) == folder:
            names = [name for name in names if name in only]
            folders[:] = [name for name in folders if name in only]
        for name in names:
            path = Path(root, name)
            yield os.fsencode(path.relative_to(folder)), *_content(path)


def _content(path: Path) -> tuple[bytes, bytes]:
    if path.is_symlink():
        return b"link", os.fsencode(path.readlink())
    if path.is_dir():
        return b"folder", b""
    if not path.is_file():
        return b"special", b""
    with path.open("rb") as file:
        return b"file", hashlib.file_digest(file, "sha256").digest()


def _refuse(error: OSError) -> None:
    raise error


def copy_file(source: Path, target: Path) -> None:
    """A copy that its owner may read and write, and execute if the source may be executed; made anew."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644)


def pack(folder: Path, *, leave_out: Collection[Path] = (), most: int = 256 << 20) -> bytes:
    """A skill as a tar file: the same bytes for the same content. Links inside are followed; `most` is in bytes.

    The files of `leave_out` are not in it, under whatever name they are found in the folder.

    Raises:
        TreeError: it is too large, or has in it what is neither file nor folder, or leads out of it.
    """
    packed, left_out = io.BytesIO(), {path.resolve() for path in leave_out}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, source in followed(folder):
            if source.resolve() in left_out:
                continue
            if not source.resolve().is_relative_to(folder.resolve()):
                raise TreeError(f"{source} is a link that leads out of the skill; put a copy there")
            entry = _entry(path, source)
            if packed.tell() + entry.size > most:
                raise TreeError(f"{folder} has more than {most >> 20} MiB; a skill is copied for each attempt")
            _add(tar, entry, source)
    return packed.getvalue()


def _entry(path: str, source: Path) -> tarfile.TarInfo:
    """Without times and owners, which say nothing of the content."""
    entry, status = tarfile.TarInfo(path), source.stat()
    if source.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    return entry


def _add(tar: tarfile.TarFile, entry: tarfile.TarInfo, source: Path) -> None:
    if entry.isdir():
        tar.addfile(entry)
        return
    with source.open("rb") as file:
        tar.addfile(entry, file)


def unpack(content: bytes, folder: Path) -> None:
    """Make a folder of what `pack` has made.

    Raises:
        TreeError: it is no such thing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            tar.extractall(folder, filter="data")
    except tarfile.TarError as e:
        raise TreeError(f"the skill {folder.name!r} is damaged in the run's inputs: {e}; begin a new run") from e


def followed(folder: Path, ignore: frozenset[str] = _NO_SKILL, *, strict: bool = True) -> Iterator[tuple[str, Path]]:
    """All files and folders below, by their relative paths, in order; links are followed, but not in circles.

    What is neither, links that lead nowhere or back, what has just gone and what may not be looked at are passed over
    unless it is `strict`.

    Raises:
        TreeError: there is such a thing.
        OSError: something cannot be looked at.
    """
    pending: list[tuple[str, Path, tuple[Path, ...]]] = [("", folder, (folder.resolve(),))]
    while pending:
        path, here, above = pending.pop()
        for entry, kind in _kinds(here, () if strict else (OSError,)):
            name = f"{path}/{entry.name}" if path else entry.name
            if entry.name in ignore:
                continue
            circle = kind == "folder" and entry.resolve() in above
            if not circle and kind:
                yield name, entry
                if kind == "folder":
                    pending.append((name, entry, (*above, entry.resolve())))
            elif strict:
                raise TreeError(f"{entry} is {'a link to a folder that it is in' if circle else _NEITHER}")


def _kinds(folder: Path, passed_over: tuple[type[OSError], ...]) -> list[tuple[Path, Literal["folder", "file"] | None]]:
    """What is in a folder, in order, and what each is, links followed; None: neither, or not known."""
    found: list[tuple[Path, Literal["folder", "file"] | None]] = []
    with contextlib.suppress(*passed_over):
        for entry in sorted(folder.iterdir(), key=lambda one: one.name):
            kind = None
            with contextlib.suppress(*passed_over):
                kind = "folder" if entry.is_dir() else "file" if entry.is_file() else None
            found.append((entry, kind))
    return found
