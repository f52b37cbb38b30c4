"""The npm packages of a benchmark, in its stage: exactly those of the lockfile, or none of them."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from trunchray.adapters.sandbox.deno import deno_version
from trunchray.adapters.sandbox.npm import install_packages
from trunchray.adapters.scratch import scratch
from trunchray.adapters.user_cache import cache_directory
from trunchray.core.digest import canonical, sha256
from trunchray.core.release import Dependencies
from trunchray.errors import AuthoringError, UsageError
from trunchray.frontends.benchmark.dependencies.comparison import differences, installed, misplaced
from trunchray.frontends.benchmark.dependencies.deno_lock import read_deno_lock
from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused
from trunchray.frontends.benchmark.dependencies.package_cache import PackageCache, Record
from trunchray.frontends.benchmark.dependencies.project import Project, find_project, place_of
from trunchray.frontends.benchmark.dependencies.request import Request, request
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.staging import Stage

_ANEW = "write the lockfile anew with its package manager, and commit it"
_checksum = re.compile(r"[Cc]hecksum did not match.* for (@?[^@\s]+)@(\S+?)\.?(?:\s|$)")
_LAYOUT = 1
"""Raised when entries of the cache change their form or content."""


@dataclass(frozen=True)
class Installed:
    """What the release says of its packages, and what is doubtful about them."""

    dependencies: Dependencies = field(default_factory=Dependencies)
    warnings: tuple[str, ...] = ()


def install(stage: Stage) -> Installed:
    """Put the packages that a benchmark may import into its stage.

    Raises:
        AuthoringError: a dependency or the lockfile is refused, or is not what would be installed.
        UsageError: the cache cannot be written.
    """
    project = find_project(stage)
    if project is None:
        return Installed()
    wanted = request(project)
    try:
        record = _locked(project, wanted) if project.lock else _newest(project, wanted)
    except OSError as e:
        raise UsageError(
            f"cannot install packages in the cache {cache_directory()} ({e}); set TRUNCHRAY_CACHE to another directory"
        ) from e
    return Installed(_described(project, record), tuple(_doubts(project)))


def _locked(project: Project, wanted: Request) -> Record:
    cache = PackageCache(cache_directory() / "dependencies")
    key = _key(wanted)
    record = cache.take(key, project.folder)
    if record is None:
        with scratch() as folder:
            cache.put(key, folder, _install(project, wanted, folder))
        record = cache.take(key, project.folder)
    if record is None:
        raise UsageError(f"the cache {cache_directory()} does not keep what is written to it; is its disk damaged?")
    return record


def _newest(project: Project, wanted: Request) -> Record:
    """Without a lockfile every compilation resolves anew, so nothing is kept."""
    with scratch() as folder, scratch() as once:
        cache = PackageCache(once)
        cache.put("newest", folder, _install(project, wanted, folder))
        return cache.take("newest", project.folder) or Record(())


def _key(wanted: Request) -> str:
    """What decides which files are installed, and nothing of where and by whom."""
    files: dict[str, JsonValue] = {name: sha256(content) for name, content in wanted.files.items()}
    machine = f"{platform.system()}-{platform.machine()}"  # some packages differ by platform
    return sha256(canonical({"layout": _LAYOUT, "deno": deno_version(), "machine": machine, "files": files}))


def _install(project: Project, wanted: Request, folder: Path) -> Record:
    for name, content in wanted.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    outcome = install_packages(folder, frozen=wanted.frozen)
    where = _lockfile_place(project) if project.lock else project.place(project.package)
    if not outcome.done:
        raise AuthoringError([where.problem(_failed(outcome.said))])
    lockfile = folder / "deno.lock"
    try:
        resolved = read_deno_lock(lockfile.read_bytes()) if lockfile.is_file() else Lock("none", {})
    except LockRefused as e:
        raise AuthoringError([where.problem(str(e))]) from e
    if project.lock:
        _check(project, project.lock, wanted, folder, resolved)
    packages = [(name, version, "".join(each.hashes)) for (name, version), each in resolved.packages.items()]
    return Record(tuple(sorted(packages)))


def _check(project: Project, lock: Lock, wanted: Request, folder: Path, resolved: Lock) -> None:
    """Deno resolves anew, without an error, what it does not find in a lockfile.

    Raises:
        AuthoringError: what was installed is not what the lockfile says.
    """
    where = _lockfile_place(project)
    optional = frozenset(
        name
        for manifest in project.manifests.values()
        for name, (section, _) in manifest.dependencies.items()
        if section == "optionalDependencies"
    )
    found = list(differences(lock, resolved)) or list(misplaced(folder, wanted.pins, optional))
    if found:
        raise AuthoringError([where.problem(f"{each}; {_ANEW}") for each in found])


def _lockfile_place(project: Project) -> Position:
    return place_of(project.stage, project.folder / (project.lockfile or ""))


def _failed(said: str) -> str:
    if tampered := _checksum.search(said):
        return f"has another hash for {tampered[1]} {tampered[2]} than the npm registry; {_ANEW}"
    return (
        f"its packages cannot be installed: {said}; correct names and versions, or see that the npm registry can be "
        "reached (a registry of your own: set NPM_CONFIG_REGISTRY)"
    )


def _doubts(project: Project) -> Iterator[str]:
    """What about the packages another day, or another registry, could change in silence."""
    if project.lock is None:
        message = (
            "has dependencies but no lockfile, so compiling it another day may give another release; run "
            "`npm install --package-lock-only` and commit package-lock.json"
        )
        yield str(project.place(project.package).problem(message))
    elif not project.lock.hashed:
        message = (
            "pins versions, but not what is in them: its checksums are of archives that only Yarn makes, so what the "
            "npm registry has under these versions is taken as it is; commit a package-lock.json in its place to pin "
            "the content, too"
        )
        yield str(_lockfile_place(project).problem(message))


def _described(project: Project, record: Record) -> Dependencies:
    return Dependencies(
        state="locked" if project.lock else "unlocked",
        lockfile=project.lock.kind if project.lock else None,
        ai=_version(project, record, "ai"),
        zod=_version(project, record, "zod"),
        packages=sha256(canonical([list(package) for package in record.packages])),
    )


def _version(project: Project, record: Record, name: str) -> str | None:
    """The version that the benchmark's own imports get; else the only one there is."""
    for member in dict.fromkeys((project.package, "")):
        if found := installed(project.folder / member, name):
            return found[1]
    versions = {version for known, version, _ in record.packages if known == name}
    return versions.pop() if len(versions) == 1 else None
