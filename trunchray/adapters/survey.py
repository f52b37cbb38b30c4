"""What there is in a folder that somebody else has filled: looked through, and brought elsewhere."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from trunchray.adapters.transfers import each
from trunchray.adapters.tree import copy_file

LONGEST_PATH = 768
"""Bytes of a relative path that is kept; object stores have room for 1,024 with what goes before it."""
_SYNCED = 32
"""Files that are brought to the disk at a time: it takes many together about as fast as one."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


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

    def copy(self, root: Path, target: Path, *, durable: bool = False) -> None:
        """Copy what was found in `root` into the folder `target`, which is made; `durable` files outlive a power cut.

        Raises:
            OSError: something cannot be written.
        """
        target.mkdir(parents=True, exist_ok=True)
        for folder in self.folders:
            (target / folder).mkdir(exist_ok=True)
        for path in self.files:
            copy_file(root / path, target / path)
        if durable:
            each(lambda path: _sync(target / path), self.files, at_a_time=_SYNCED)
        for path, to in self.links.items():
            (target / path).symlink_to(to)

    def without_links(self, root: Path, caps: TreeCaps) -> dict[str, Path]:
        """By path, the files to read where no links can be kept; links that cannot be kept are noted.

        A link to a file that was found stands for a copy of it, as long as there is room for that.

        Raises:
            OSError: a file that was found has gone.
        """
        sources = {path: root / path for path in self.files}
        left = caps.total - sum(source.stat().st_size for source in sources.values())
        for path, to in self.links.items():
            source = sources.get(os.path.relpath(os.path.realpath(root / path), os.path.realpath(root)))
            if source is None:
                self.left_out.append(f"{path}: a link to {to!r}, which is no file that is kept")
            elif (size := source.stat().st_size) > left:
                self.too_large.append(path)
            else:
                sources[path], left = source, left - size
        return sources


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
        """As text, too, it has to stay inside: a copy of the folder stands elsewhere."""
        link = self.root / path
        to = str(link.readlink())
        leads = Path(os.path.realpath(link)).is_relative_to(os.path.realpath(self.root))
        if leads and not to.startswith("/") and not _climbs(path, to):
            self.found.links[path] = to
        else:
            self.found.left_out.append(f"{path}: a link that leads out, to {to!r}")


def _climbs(path: str, to: str) -> bool:
    """Whether the link at `path` goes above the folder that `path` is relative to, on its way or in the end."""
    depth = path.count("/")
    for part in to.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
