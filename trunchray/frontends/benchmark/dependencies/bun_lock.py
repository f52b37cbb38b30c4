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
    Pin,
    Release,
    hashes,
    split_release,
)

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
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
    if data.get("patchedDependencies"):
        raise LockRefused(
            f"patches {', '.join(sorted(data['patchedDependencies']))}, which is not supported; depend on published "
            "versions, or copy the code into the repository"
        )
    entries = {key: _pin(key, entry[0]) for key, entry in data["packages"].items()}
    packages: dict[Release, frozenset[str]] = {}
    for key, pin in entries.items():
        if not pin.link:
            packages[pin.name, pin.version] = hashes(data["packages"][key][-1])
    members: dict[str, Any] = data["workspaces"]
    pins = {folder: dict(_pins(member, entries)) for folder, member in members.items()}
    return Lock(f"bun/{version}", packages, _seed(data, pins), pins)


def _pin(key: str, resolved: str) -> Pin:
    name, version = split_release(resolved)
    if ":" not in resolved:
        return Pin(name, version)
    if "@workspace:" in resolved or "@file:" in resolved or "@link:" in resolved:
        return Pin(key, link=True)
    raise LockRefused(f"{resolved!r} {FOREIGN}")


def _pins(member: Mapping[str, Any], entries: Mapping[str, Pin]) -> Iterator[tuple[str, Pin]]:
    for section in _SECTIONS:
        for dependency, asked in member.get(section, {}).items():
            if pin := entries.get(f"{member.get('name')}/{dependency}") or entries.get(dependency):
                yield dependency, Pin(pin.name, pin.version, asked, pin.link)


def _seed(data: Mapping[str, Any], pins: Mapping[str, Mapping[str, Pin]]) -> tuple[str, bytes]:
    """The lock in the version that Deno reads, made for package.json files that ask for exact versions."""
    kept = {name: value for name, value in data.items() if name not in ("configVersion", "catalog", "catalogs")}
    members: dict[str, Any] = {}
    for folder, member in data["workspaces"].items():
        exact = {name: pin.exact(name) for name, pin in pins[folder].items()}
        asked = {section: member[section] for section in _SECTIONS if section in member}
        pinned = {
            section: {name: exact.get(name, entry) for name, entry in each.items()} for section, each in asked.items()
        }
        members[folder] = member | pinned
    text = json.dumps(kept | {"lockfileVersion": 1, "workspaces": members}, ensure_ascii=False)
    return "bun.lock", text.encode()
