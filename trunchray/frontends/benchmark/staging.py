"""A private copy of a repository, so that what is compiled cannot change meanwhile and holds no credentials.

Only files are copied, and links between them. Left behind: dot folders (`.git`), `node_modules`, files that steer
package managers or hold secrets, files over 50 MB, and links that lead out of the repository.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from trunchray.frontends.benchmark.location import Location

MAX_FILE = 50_000_000
"""Bytes."""

_LEFT_BEHIND = (".git", ".npmrc", "deno.json*", ".yarnrc*", ".env*")


@dataclass(frozen=True)
class Stage:
    """A staged repository: `directory` and `root` are the copies of the benchmark directory and the repository root.

    `reasons` says of files that were left behind, by their path from `root`, why.
    """

    directory: Path
    root: Path
    reasons: dict[str, str]

    def missing(self, path: str) -> str:
        """Why the file at `path`, relative to the benchmark directory and normalised, is not in the stage."""
        inside = os.path.normpath(self.directory.relative_to(self.root) / path)
        return self.reasons.get(inside, "does not exist" if not (self.root / inside).exists() else "is not a file")


@contextmanager
def staged(location: Location) -> Generator[Stage]:
    """The stage of a benchmark; it is removed at the end of the block."""
    with TemporaryDirectory(prefix="trunchray-compile-") as folder:
        target = Path(folder).resolve() / "repository"
        reasons = _copy(location.root, target, location.directory)
        yield Stage(target / location.directory.relative_to(location.root), target, reasons)


def _copy(root: Path, target: Path, keep: Path) -> dict[str, str]:
    """Copy what belongs in a stage; gives back why single files do not."""
    (target / keep.relative_to(root)).mkdir(parents=True)
    reasons: dict[str, str] = {}
    links: list[Path] = []
    for source in _files(root, {keep, *keep.parents}):
        relative = source.relative_to(root)
        if source.is_symlink():
            links.append(relative)
        elif reason := _reason(source):
            reasons[str(relative)] = reason
        else:
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / relative)
    for relative in links:
        if reason := _link(root, target, relative):
            reasons[str(relative)] = reason
    return reasons


def _files(root: Path, keep: set[Path]) -> Iterator[Path]:
    """Every file and link below `root`; folders that are left behind are entered only on the way to `keep`."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if name not in links and ((here / name) in keep or not (name.startswith(".") or name == "node_modules"))
        )
        yield from (here / name for name in sorted([*files, *links]))


def _reason(file: Path) -> str | None:
    """Why a file is left behind; None when it is not."""
    if any(fnmatchcase(file.name, pattern) for pattern in _LEFT_BEHIND):
        return "is left out, because files of this name may hold credentials or steer a package manager"
    if not file.is_file():
        return "is not a regular file"
    if (size := file.stat().st_size) > MAX_FILE:
        return f"has {size / 1e6:.1f} MB; a file may have at most {MAX_FILE // 10**6} MB"
    return None


def _link(root: Path, target: Path, relative: Path) -> str | None:
    """Repeat a link in the stage, pointing to the copy of what it points to; why not, when that is not there."""
    if any(fnmatchcase(relative.name, pattern) for pattern in _LEFT_BEHIND):
        return _reason(root / relative)
    real = Path(os.path.realpath(root / relative))
    if not real.is_relative_to(root):
        return "is a link that leaves the repository"
    copy = target / real.relative_to(root)
    if not copy.exists():
        return "is a link to something that is not part of the benchmark"
    (target / relative).parent.mkdir(parents=True, exist_ok=True)
    (target / relative).symlink_to(os.path.relpath(copy, (target / relative).parent))
    return None
