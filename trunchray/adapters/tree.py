"""Folders as a whole: packed, copied, and looked through when nobody knows what is in them."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NO_SKILL = frozenset({".git", "__pycache__"})
LONGEST_PATH = 800
"""Bytes of a relative path that is kept; object stores have room for 1,024 with what goes before it."""
_NEITHER = "neither a file nor a folder"
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TreeError(Exception):
    """A folder is not what it has to be; the message says where."""


@dataclass(frozen=True, slots=True)
class TreeCaps:
    """How much of a folder is kept. Sizes are in bytes."""

    file: int = 64 << 20
    total: int = 512 << 20
    entries: int = 50_000


@dataclass(slots=True)
class Survey:
    """What there is in a folder that somebody else has filled. Paths are relative to it, with forward slashes."""

    files: list[str] = field(default_factory=list[str])
    folders: list[str] = field(default_factory=list[str])
    links: dict[str, str] = field(default_factory=dict[str, str])
    """Symbolic links that stay inside, and where they lead, as they say it."""
    too_large: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    """`<path>: <why>`: what is neither file, folder nor such a link, and what cannot be read."""

    @classmethod
    def of(cls, root: Path, caps: TreeCaps = TreeCaps(), *, ignore: frozenset[str] = frozenset({".git"})) -> Survey:
        """Look through a folder without following a link; names in `ignore` are passed over wherever they stand."""
        found = cls()
        surveyor = _Surveyor(root, caps, ignore, found)
        pending = [""]
        while pending and surveyor.go_on:
            pending += reversed(surveyor.look(pending.pop()))
        return found

    def copy(self, root: Path, target: Path) -> None:
        """Copy what was found in `root` into the folder `target`, which is made.

        Raises:
            OSError: something cannot be written.
        """
        target.mkdir(parents=True, exist_ok=True)
        for folder in self.folders:
            (target / folder).mkdir(exist_ok=True)
        for path in self.files:
            copy_file(root / path, target / path)
        for path, to in self.links.items():
            (target / path).symlink_to(to)


@dataclass(slots=True)
class _Surveyor:
    root: Path
    caps: TreeCaps
    ignore: frozenset[str]
    found: Survey
    bytes_seen: int = 0
    entries_seen: int = 0
    go_on: bool = True

    def look(self, folder: str) -> list[str]:
        """Note what is in one folder; the folders there."""
        before = len(self.found.folders)
        for entry in self._entries(folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            self.entries_seen += 1
            if self.entries_seen > self.caps.entries:
                self.go_on = False
                self.found.left_out.append(f"{path}: there are more than {self.caps.entries:,} entries; so is the rest")
                break
            try:
                if len(os.fsencode(path)) > LONGEST_PATH:
                    self.found.left_out.append(f"{path}: a path of more than {LONGEST_PATH} bytes")
                else:
                    self._note(entry, path)
            except OSError as e:
                self.found.left_out.append(f"{path}: {e.strerror}")
        return self.found.folders[before:]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        path = self.root / folder
        try:
            with os.scandir(path) as entries:
                return sorted((entry for entry in entries if entry.name not in self.ignore), key=lambda one: one.name)
        except OSError as e:
            self.found.left_out.append(f"{folder or '.'}: {e.strerror}")
            return []

    def _note(self, entry: os.DirEntry[str], path: str) -> None:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self._note_link(path)
        elif stat.S_ISDIR(status.st_mode):
            self.found.folders.append(path)
        elif not stat.S_ISREG(status.st_mode):
            self.found.left_out.append(f"{path}: {_KINDS.get(stat.S_IFMT(status.st_mode), 'no file')}")
        elif status.st_size > min(self.caps.file, self.caps.total - self.bytes_seen):
            self.found.too_large.append(path)
        elif not os.access(self.root / path, os.R_OK):
            self.found.left_out.append(f"{path}: may not be read")
        else:
            self.bytes_seen += status.st_size
            self.found.files.append(path)

    def _note_link(self, path: str) -> None:
        link = self.root / path
        to = str(link.readlink())
        if not to.startswith("/") and Path(os.path.realpath(link)).is_relative_to(os.path.realpath(self.root)):
            self.found.links[path] = to
        else:
            self.found.left_out.append(f"{path}: a link that leads out, to {to!r}")


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
            entry = tarfile.TarInfo(path)
            if source.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
                continue
            status = source.stat()
            entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            if packed.tell() + entry.size > most:
                raise TreeError(f"{folder} has more than {most >> 20} MiB; a skill is copied for each attempt")
            with source.open("rb") as file:
                tar.addfile(entry, file)
    return packed.getvalue()


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
        raise TreeError(f"a skill is damaged: {e}") from e


def followed(folder: Path, ignore: frozenset[str] = _NO_SKILL, *, strict: bool = True) -> Iterator[tuple[str, Path]]:
    """All files and folders below, by their relative paths, in order; links are followed, but not in circles.

    What is neither, and links that lead nowhere or back, are passed over unless it is `strict`.

    Raises:
        TreeError: there is such a thing.
    """
    pending: list[tuple[str, Path, tuple[Path, ...]]] = [("", folder, (folder.resolve(),))]
    while pending:
        path, here, above = pending.pop()
        for entry in sorted(here.iterdir(), key=lambda one: one.name):
            name = f"{path}/{entry.name}" if path else entry.name
            if entry.name in ignore:
                continue
            circle = entry.is_dir() and entry.resolve() in above
            if not circle and (entry.is_dir() or entry.is_file()):
                yield name, entry
                if entry.is_dir():
                    pending.append((name, entry, (*above, entry.resolve())))
            elif strict:
                raise TreeError(f"{entry} is {'a link to a folder that it is in' if circle else _NEITHER}")
