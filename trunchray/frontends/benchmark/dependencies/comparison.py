"""Whether what was installed is what the lockfile says: names, versions, and hashes where both have them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import Lock, Package, PackageId, Pin


def differences(lock: Lock, resolved: Lock) -> Iterator[str]:
    """What of the packages that were installed is not as the lock has it."""
    for (name, version), package in sorted(resolved.packages.items(), key=lambda entry: entry[0]):
        locked = lock.packages.get((name, version))
        if locked is None:
            others = sorted(other for known, other in lock.packages if known == name)
            yield f"has {name} {' and '.join(others) or 'not at all'}, but {version} would be installed"
        elif not _agree(locked.hashes, package.hashes):
            yield f"has another hash for {name} {version} than the npm registry"
        else:
            yield from _edges(f"{name} {version}", locked, package)


def _edges(what: str, locked: Package, package: Package) -> Iterator[str]:
    for name, wanted in sorted(locked.edges.items()):
        found = package.edges.get(name)
        if found != wanted and not (found is None and name in locked.optional):
            got = " ".join(found) if found else "nothing"
            yield f"gives {what} the package {' '.join(wanted)}, but {got} would be installed for it"


def _agree(locked: frozenset[str], installed: frozenset[str]) -> bool:
    """Whether no algorithm gives another hash. Locks may hold none, or only hashes of another algorithm."""
    for digest in installed:
        algorithm = digest.partition("-")[0]
        comparable = {each for each in locked if each.partition("-")[0] == algorithm}
        if comparable and digest not in comparable:
            return False
    return True


def misplaced(folder: Path, pins: Mapping[str, Mapping[str, Pin]], optional: frozenset[str]) -> Iterator[str]:
    """Which direct dependencies are installed in another version than the one they are pinned to.

    `optional` are those that may be absent, because not every machine can have them.
    """
    for member, own in sorted(pins.items()):
        for name, pin in sorted(own.items()):
            if pin.link:
                continue
            found = installed(folder / member, name)
            if found is None and name in optional:
                continue
            if found != (pin.name, pin.version):
                got = "nothing" if found is None else " ".join(found)
                yield f"pins {name} to {pin.version}, but {got} would be installed"


def installed(folder: Path, dependency: str) -> PackageId | None:
    """Name and version of what a folder's `node_modules` has for a dependency; None without it."""
    try:
        data: Any = json.loads((folder / "node_modules" / dependency / "package.json").read_bytes())
    except (OSError, ValueError):
        return None
    return str(data.get("name")), str(data.get("version"))
