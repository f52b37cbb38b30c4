"""`deno.lock`: what Deno installed, and the lockfile of authors who use Deno."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused, Package, PackageId, Pin, hashes

_key = re.compile(r"(?P<name>@?[^@]+)@(?P<version>[^_]+)")
"""`ai@6.0.100_zod@4.1.8`: what follows the version are the peers that it was linked to."""
_edge = re.compile(r"(?P<name>@?[^@]+)(?:@npm:(?P<real>@?[^@]+))?(?:@(?P<version>[^_]+))?")
"""`zod`, `zod@3.24.0` where there are several, `z3@npm:zod@3.24.0` where it has another name."""


def read_deno_lock(content: bytes) -> Lock:
    """The lock in a `deno.lock`: what Deno installed, or what an author committed.

    Raises:
        LockRefused: it is of another version, or holds modules from elsewhere than the npm registry.
    """
    data: Any = json.loads(content)
    version = data.get("version")
    if version not in ("4", "5"):
        raise LockRefused(f"has version {version!r}, and only 4 and 5 are honoured; run `deno install` with Deno 2")
    for section in ("jsr", "remote"):
        if data.get(section):
            raise LockRefused(f"holds modules of {section!r}; only packages of the npm registry are installed")
    entries: dict[str, Any] = data.get("npm", {})
    only = dict(map(_id, entries))
    packages = {_id(key): _package(entry, only) for key, entry in entries.items()}
    return Lock(f"deno/{version}", packages, own=content)


def _id(key: str) -> PackageId:
    match = _key.match(key)
    if match is None:
        raise LockRefused(f"{key!r} is not a package and its version; run `deno install` again")
    return match["name"], match["version"]


def _package(entry: Mapping[str, Any], only: Mapping[str, str]) -> Package:
    """`only` has the version of every package that there is in one version."""
    optional = entry.get("optionalDependencies", [])
    edges: dict[str, PackageId] = {}
    for text in [*entry.get("dependencies", []), *optional]:
        if match := _edge.match(text):
            real = match["real"] or match["name"]
            edges[match["name"]] = (real, match["version"] or only.get(real, ""))
    absent = (match["name"] for text in optional if (match := _edge.match(text)))
    return Package(hashes(entry.get("integrity")), edges, frozenset(absent))


def write_deno_lock(packages: Mapping[PackageId, Package], asked: Mapping[str, Mapping[str, Pin]]) -> bytes:
    """A `deno.lock` that means these packages and nothing else; `asked` are the pins of every member."""
    counts = Counter(name for name, _ in packages)
    several = frozenset(name for name, count in counts.items() if count > 1)
    wanted = {member: _specifiers(pins) for member, pins in asked.items()}
    workspace: dict[str, Any] = {"packageJson": {"dependencies": sorted(wanted.get("", {}))}}
    if others := {member: {"packageJson": {"dependencies": sorted(own)}} for member, own in wanted.items() if member}:
        workspace["members"] = others
    content = {
        "version": "5",
        "specifiers": {key: version for own in wanted.values() for key, version in sorted(own.items())},
        "npm": {f"{name}@{version}": _entry(packages[name, version], several) for name, version in sorted(packages)},
        "workspace": workspace,
    }
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def _specifiers(pins: Mapping[str, Pin]) -> dict[str, str]:
    return {f"npm:{pin.name}@{pin.version}": pin.version for pin in pins.values() if not pin.link}


def _entry(package: Package, several: frozenset[str]) -> dict[str, Any]:
    needed = sorted(_edge_text(name, to, several) for name, to in package.edges.items() if name not in package.optional)
    optional = sorted(_edge_text(name, to, several) for name, to in package.edges.items() if name in package.optional)
    strongest = sorted(package.hashes, key=lambda digest: not digest.startswith("sha512-"))
    fields = {
        "integrity": strongest[0] if strongest else "",
        "dependencies": needed,
        "optionalDependencies": optional,
        "os": list(package.os),
        "cpu": list(package.cpu),
    }
    return {name: value for name, value in fields.items() if value}


def _edge_text(name: str, to: PackageId, several: frozenset[str]) -> str:
    if name != to[0]:
        return f"{name}@npm:{to[0]}@{to[1]}"
    return f"{to[0]}@{to[1]}" if name in several else name
