"""A private copy of a repository, so that what is compiled cannot change meanwhile and holds no credentials.

Only files are copied, and links between them. Left behind: dot folders (`.git`), `node_modules`, files that steer
package managers or hold secrets, and links that lead out of the repository. Large files are copied when they are asked
for, because most of them are not part of the benchmark.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from trunchray.adapters.scratch import scratch
from trunchray.frontends.benchmark.site import Site

LARGE_FILE = 50_000_000
"""Bytes; larger files wait until somebody asks for them."""

CLOSED = "cannot be entered"
"""How the reason begins why a folder was left behind that nobody could look into."""

_LEFT_BEHIND = (".git", ".npmrc", "deno.json*", ".yarnrc*", ".env*")


@dataclass(frozen=True)
class Stage:
    """A staged repository: `directory` and `root` are the copies of the benchmark directory and the repository root.

    `reasons` says of files that were left behind, by their path from `root`, why. `waiting` are the large files of the
    repository, by the path that they shall have.
    """

    directory: Path
    root: Path
    reasons: dict[str, str]
    waiting: dict[Path, Path] = field(default_factory=dict)

    def bring(self, path: str) -> None:
        """Copy the file at `path`, relative to the benchmark directory, if it is a large one that still waits."""
        copy = Path(os.path.realpath(self.directory / path))
        source = self.waiting.pop(copy, None)
        if source and (reason := _copied(source, copy)):
            self.reasons[str(copy.relative_to(self.root))] = reason

    def missing(self, path: str) -> str:
        """Why the file at `path`, relative to the benchmark directory and normalised, is not in the stage."""
        if reason := self.left_out(path):
            return reason
        return "is not a file" if (self.directory / path).exists() else "does not exist"

    def left_out(self, path: str) -> str | None:
        """Why the repository's file at `path`, relative to the benchmark directory, or a folder of it was left behind.

        None when neither was, or there is no such file.
        """
        inside = Path(os.path.normpath(self.directory.relative_to(self.root) / path))
        return next(
            (self.reasons[key] for each in (inside, *inside.parents) if (key := str(each)) in self.reasons), None
        )

    def waits(self, path: str) -> bool:
        """Whether the file at `path`, relative to the benchmark directory, is a large one that was not asked for."""
        return Path(os.path.realpath(self.directory / path)) in self.waiting


@contextmanager
def staged(site: Site) -> Generator[Stage]:
    """The stage of a benchmark; it is removed at the end of the block."""
    with scratch() as folder:
        target = folder.resolve() / "repository"
        stage = Stage(target / site.directory.relative_to(site.root), target, {})
        _copy(site, stage)
        yield stage


def _copy(site: Site, stage: Stage) -> None:
    """Copy what belongs in a stage, and note why other files do not."""
    root, target, keep = site.root, stage.root, site.directory
    stage.directory.mkdir(parents=True)
    links: list[Path] = []
    for source in _files(root, {keep, *keep.parents}, stage.reasons):
        relative = source.relative_to(root)
        if source.is_symlink():
            links.append(relative)
        elif reason := _reason(source):
            stage.reasons[str(relative)] = reason
        elif _is_large(source):
            stage.waiting[target / relative] = source
        elif reason := _copied(source, target / relative):
            stage.reasons[str(relative)] = reason
    for relative in links:
        if reason := _link(root, stage, relative):
            stage.reasons[str(relative)] = reason


def _files(root: Path, keep: set[Path], reasons: dict[str, str]) -> Iterator[Path]:
    """Every file and link below `root`; folders that are left behind are entered only on the way to `keep`.

    `reasons` gets the folders that cannot be entered.
    """

    def skip(error: OSError) -> None:
        reasons[os.path.relpath(error.filename, root)] = f"{CLOSED} ({error.strerror})"

    for folder, folders, files in os.walk(root, onerror=skip):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink() and name != "node_modules"]
        folders[:] = sorted(
            name
            for name in folders
            if not (here / name).is_symlink()
            and ((here / name) in keep or not (name.startswith(".") or name == "node_modules"))
        )
        yield from (here / name for name in sorted([*files, *links]))


def _is_large(file: Path) -> bool:
    with contextlib.suppress(OSError):  # just removed, as the copy will tell
        return file.stat().st_size > LARGE_FILE
    return False


def _copied(source: Path, copy: Path) -> str | None:
    """Copy a file of the repository; why not, when it may not be read or has just been removed."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, copy, follow_symlinks=False)
    except (PermissionError, FileNotFoundError) as e:
        copy.unlink(missing_ok=True)
        return f"cannot be read ({e.strerror})"
    return None


def _reason(file: Path) -> str | None:
    """Why a file is left behind; None when it is not."""
    if any(fnmatchcase(file.name, pattern) for pattern in _LEFT_BEHIND):
        return "is left out, because files of this name may hold credentials or steer a package manager"
    if not file.is_file():
        return "is not a regular file"
    return None


def _link(root: Path, stage: Stage, relative: Path) -> str | None:
    """Repeat a link in the stage, pointing to the copy of what it points to; why not, when that is not there."""
    if any(fnmatchcase(relative.name, pattern) for pattern in _LEFT_BEHIND):
        return _reason(root / relative)
    real = Path(os.path.realpath(root / relative))
    if not real.is_relative_to(root):
        return "is a link that leaves the repository"
    target = stage.root
    copy = target / real.relative_to(root)
    if not copy.exists() and copy not in stage.waiting:
        return "is a link to something that is not part of the benchmark"
    (target / relative).parent.mkdir(parents=True, exist_ok=True)
    (target / relative).symlink_to(os.path.relpath(copy, (target / relative).parent))
    return None
