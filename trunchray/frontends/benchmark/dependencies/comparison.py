"""Whether what was installed is what the lockfile says: names, versions, and hashes where both have them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import Lock, Pin, Release


def differences(lock: Lock, resolved: Mapping[Release, str]) -> Iterator[str]:
    """What of the resolved packages, each with its hash, the lock does not have."""
    for (name, version), digest in sorted(resolved.items()):
        locked = lock.packages.get((name, version))
        if locked is None:
            others = sorted(other for known, other in lock.packages if known == name)
            yield f"has {name} {' and '.join(others) or 'not at all'}, but {version} would be installed"
        elif not _agree(locked, digest):
            yield f"has another hash for {name} {version} than the npm registry"


def _agree(locked: frozenset[str], digest: str) -> bool:
    """Whether a hash is a locked one. Locks may hold none, or only hashes of another algorithm."""
    algorithm = digest.partition("-")[0]
    comparable = {each for each in locked if each.partition("-")[0] == algorithm}
    return not comparable or digest in comparable


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


def installed(folder: Path, dependency: str) -> Release | None:
    """Name and version of what a folder's `node_modules` has for a dependency; None without it."""
    try:
        data: Any = json.loads((folder / "node_modules" / dependency / "package.json").read_bytes())
    except (OSError, ValueError):
        return None
    return str(data.get("name")), str(data.get("version"))
