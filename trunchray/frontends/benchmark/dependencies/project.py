"""Which packages a benchmark may import: the package.json that counts, its members, and its lockfile."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused
from trunchray.frontends.benchmark.dependencies.lockfiles import READERS, lockfile_in, read_lock
from trunchray.frontends.benchmark.dependencies.manifest import Manifest, ManifestRefused, read_manifest
from trunchray.frontends.benchmark.dependencies.specifier import local_folder
from trunchray.frontends.benchmark.dependencies.workspace import PNPM_WORKSPACE, is_member, members, workspace
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.staging import LARGE_FILE, Stage

PACKAGE_JSON = "package.json"


@dataclass(frozen=True)
class Project:
    """What is installed together. `folder` is where, in the stage; `package` is the benchmark's own member.

    `manifests` are by member, a folder relative to `folder`; `lockfile` is the name of the lock's file.
    """

    stage: Stage
    folder: Path
    package: str
    manifests: Mapping[str, Manifest]
    catalogs: Mapping[str, Mapping[str, str]]
    lockfile: str | None
    lock: Lock | None

    def place(self, member: str = "") -> Position:
        """A member's package.json, for problems."""
        return place_of(self.stage, self.folder / member / PACKAGE_JSON)


def place_of(stage: Stage, file: Path) -> Position:
    return Position(Path(os.path.relpath(file, stage.directory)).as_posix())


def find_project(stage: Stage) -> Project | None:
    """The project of a benchmark; None when there is no package.json with dependencies at or above it.

    Raises:
        AuthoringError: a package.json or the lockfile is refused.
    """
    for folder in _upwards(stage, stage.directory):
        if (folder / PACKAGE_JSON).is_file() and _manifest(stage, folder).sections:
            return _project(stage, folder)
    return None


def _upwards(stage: Stage, folder: Path) -> Iterator[Path]:
    """A folder and those above it, up to the root of the repository.

    Raises:
        AuthoringError: one holds a file that says what to install, and it is not in the stage.
    """
    yield _whole(stage, folder)
    while folder != stage.root:
        folder = folder.parent
        yield _whole(stage, folder)


def _whole(stage: Stage, folder: Path) -> Path:
    """The folder; a lockfile that was left behind must not be taken for none at all."""
    for name in (PACKAGE_JSON, PNPM_WORKSPACE, *READERS):
        place = place_of(stage, folder / name)
        reason = stage.left_out(place.path)
        if stage.waits(place.path):
            reason = f"has more than {LARGE_FILE // 10**6} MB"
        if reason:
            raise AuthoringError([place.problem(f"{reason}; make it a plain file of this repository, or remove it")])
    return folder


def _manifest(stage: Stage, folder: Path) -> Manifest:
    try:
        return read_manifest(folder / PACKAGE_JSON)
    except ManifestRefused as e:
        raise AuthoringError([place_of(stage, folder / PACKAGE_JSON).problem(str(e))]) from e


def _project(stage: Stage, package: Path) -> Project:
    for folder in _upwards(stage, package):
        own = package.relative_to(folder).as_posix() if package != folder else ""
        manifest = _manifest(stage, folder) if (folder / PACKAGE_JSON).is_file() else Manifest(None, {})
        patterns, catalogs = _workspace(stage, folder, manifest)
        lockfile, lock = _lock(stage, folder)
        belongs = not own or is_member(own, patterns) or bool(lock and own in lock.pins)
        if not belongs or not (lock or patterns or own):
            continue
        chosen = set(lock.pins if lock else ()) or set(members(folder, patterns))
        manifests = _manifests(stage, folder, {"", own, *chosen})
        return Project(stage, folder, own, manifests, catalogs, lockfile, lock)
    return Project(stage, package, "", _manifests(stage, package, {""}), {}, None, None)


def _workspace(
    stage: Stage, folder: Path, manifest: Manifest
) -> tuple[tuple[str, ...], Mapping[str, Mapping[str, str]]]:
    try:
        return workspace(folder, manifest)
    except ManifestRefused as e:
        raise AuthoringError([place_of(stage, folder / PACKAGE_JSON).problem(str(e))]) from e


def _lock(stage: Stage, folder: Path) -> tuple[str | None, Lock | None]:
    name = None
    try:
        name = lockfile_in(folder)
        return name, read_lock(name, (folder / name).read_bytes()) if name else None
    except LockRefused as e:
        raise AuthoringError([place_of(stage, folder / (name or _first_named(folder))).problem(str(e))]) from e


def _first_named(folder: Path) -> str:
    """The lockfile that the complaint about several ones begins with."""
    return next(
        name
        for name in ("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock")
        if (folder / name).is_file()
    )


def _manifests(stage: Stage, folder: Path, wanted: set[str]) -> dict[str, Manifest]:
    """The package.json of each member that has one, and of the folders that `file:` dependencies name."""
    found: dict[str, Manifest] = {}
    queue = sorted(wanted)
    for member in queue:
        if member in found or not (folder / member / PACKAGE_JSON).is_file():
            continue
        found[member] = _manifest(stage, folder / member)
        for name, (_, specifier) in found[member].dependencies.items():
            local = local_folder(specifier)
            if local is not None:
                queue.append(_inside(stage, folder, member, name, local))
    return found


def _inside(stage: Stage, folder: Path, member: str, name: str, local: str) -> str:
    """The folder of a `file:` dependency, relative to the project; it has to be there, with a package.json."""
    path = posixpath.normpath(posixpath.join(member, local.removeprefix("//")))
    target = folder / path
    inside = not path.startswith(("..", "/")) and target.resolve().is_relative_to(folder)
    if not inside or not (target / PACKAGE_JSON).is_file():
        what = "is not a folder with a package.json" if inside else f"lies outside {_named(folder, stage)}"
        message = f"{shown(local)} {what}; depend on a published version, or copy the package into the repository"
        place = place_of(stage, folder / member / PACKAGE_JSON)
        raise AuthoringError([place.at(f"dependencies.{name}").problem(message)])
    return "" if path == "." else path


def _named(folder: Path, stage: Stage) -> str:
    return "the repository" if folder == stage.root else "the folder of its lockfile"
