"""`bun.lock`, versions 1 and 2: JSON with trailing commas.

Its `packages` are by the path of dependencies that leads to them: "zod", or "parent/zod" where the parent has its own.
https://bun.com/docs/pm/lockfile
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import (
    FOREIGN,
    Lock,
    LockRefused,
    Package,
    PackageId,
    Pin,
    edges,
    hashes,
    machines,
    refuse_patches,
    refuse_unpinned,
    split_id,
)
from trunchray.frontends.benchmark.dependencies.manifest import SECTIONS

_string_or_comma = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')


def read_bun_lock(content: bytes) -> Lock:
    """The lock in `bun.lock`.

    Raises:
        LockRefused: it is of another version, or holds something that does not come from the registry.
    """
    text = _string_or_comma.sub(lambda found: "" if found[0] == "," else found[0], content.decode())
    data: Any = json.loads(text)
    version = data.get("lockfileVersion")
    if version not in (1, 2):
        raise LockRefused(f"has lockfileVersion {version!r}, and only 1 and 2 are honoured; run `bun install` again")
    refuse_patches(data)
    entries = {key: _pin(key, entry[0]) for key, entry in data["packages"].items()}
    packages: dict[PackageId, Package] = {}
    for key, pin in entries.items():
        if not pin.link:
            packages.setdefault((pin.name, pin.version), _package(key, data["packages"][key], entries))
    refuse_unpinned(packages, "bun")
    members: dict[str, Any] = data["workspaces"]
    pins = {folder: dict(_pins(member, entries)) for folder, member in members.items()}
    return Lock(f"bun/{version}", packages, pins)


def _pin(key: str, resolved: str) -> Pin:
    name, version = split_id(resolved)
    if ":" not in resolved:
        return Pin(name, version)
    if "@workspace:" in resolved or "@file:" in resolved or "@link:" in resolved:
        return Pin(key, link=True)
    raise LockRefused(f"{resolved!r} {FOREIGN}")


def _pins(member: Mapping[str, Any], entries: Mapping[str, Pin]) -> Iterator[tuple[str, Pin]]:
    for section in SECTIONS:
        for dependency, asked in member.get(section, {}).items():
            if pin := _resolved(str(member.get("name")), dependency, entries):
                yield dependency, Pin(pin.name, pin.version, asked, pin.link)


def _package(key: str, entry: list[Any], entries: Mapping[str, Pin]) -> Package:
    about: dict[str, Any] = entry[2] if len(entry) > 2 and isinstance(entry[2], dict) else {}
    optional = about.get("optionalDependencies", {})
    wanted = {**about.get("peerDependencies", {}), **optional, **about.get("dependencies", {})}
    found = {name: _resolved(key, name, entries) for name in wanted}
    return Package(
        hashes(entry[-1]), edges(found), frozenset(optional), machines(about.get("os")), machines(about.get("cpu"))
    )


def _resolved(key: str, dependency: str, entries: Mapping[str, Pin]) -> Pin | None:
    """The nearest entry on the path that leads to a package, from its own dependencies up to the root's."""
    path = re.findall(r"@[^/]+/[^/]+|[^/]+", key)
    for length in range(len(path), -1, -1):
        if pin := entries.get("/".join([*path[:length], dependency])):
            return pin
    return None
