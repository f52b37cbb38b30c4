"""`pnpm-lock.yaml`, versions 6.0 and 9.0: `importers` are the members, `packages` what they were locked to.

https://github.com/pnpm/spec/tree/main/lockfile
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import (
    FOREIGN,
    Lock,
    LockRefused,
    Package,
    PackageId,
    Pin,
    hashes,
    machines,
    split_id,
)
from trunchray.frontends.benchmark.dependencies.yaml_document import read_yaml

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies")


def read_pnpm_lock(content: bytes) -> Lock:
    """The lock in `pnpm-lock.yaml`.

    Raises:
        LockRefused: it is of another version, or holds something that does not come from the registry.
        ValueError: it is not YAML.
    """
    data = read_yaml(content)
    version = str(data.get("lockfileVersion"))
    if version not in ("6.0", "9.0"):
        raise LockRefused(
            f"has lockfileVersion {version}, and only 6.0 and 9.0 are honoured; run `pnpm install --lockfile-only` "
            "with pnpm 8 or newer and commit it"
        )
    if data.get("patchedDependencies"):
        raise LockRefused(
            f"patches {', '.join(sorted(data['patchedDependencies']))}, which is not supported; depend on published "
            "versions, or copy the code into the repository"
        )
    importers: dict[str, Any] = data.get("importers") or {".": data}
    pins = {"" if folder == "." else folder: dict(_pins(importer)) for folder, importer in importers.items()}
    entries = data.get("packages") or {}
    return Lock(f"pnpm-lock/{version[0]}", _packages(entries, data.get("snapshots") or entries), pins)


def _packages(entries: Mapping[str, Any], snapshots: Mapping[str, Any]) -> dict[PackageId, Package]:
    """`snapshots` say what packages import; a package that was linked to several peers has one for each."""
    found: dict[PackageId, Package] = {}
    for key, entry in entries.items():
        integrity = entry["resolution"].get("integrity")
        package_id = _bare(key)
        if integrity is None or ":" in package_id:
            raise LockRefused(f"{package_id!r} {FOREIGN}")
        found[split_id(package_id)] = Package(
            hashes(integrity), os=machines(entry.get("os")), cpu=machines(entry.get("cpu"))
        )
    for key, entry in snapshots.items():
        package_id = split_id(_bare(key))
        optional = entry.get("optionalDependencies") or {}
        edges = {
            name: (pin.name, pin.version)
            for name, version in ((entry.get("dependencies") or {}) | optional).items()
            if not (pin := _pin(name, version, "")).link
        }
        if package_id in found and not found[package_id].edges:
            found[package_id] = replace(found[package_id], edges=edges, optional=frozenset(optional))
    return found


def _bare(key: str) -> str:
    """A key without the peers that a package was linked to."""
    return key.lstrip("/").partition("(")[0]


def _pins(importer: Mapping[str, Any]) -> Iterator[tuple[str, Pin]]:
    for section in _SECTIONS:
        for dependency, entry in (importer.get(section) or {}).items():
            yield dependency, _pin(dependency, entry["version"], entry["specifier"])


def _pin(dependency: str, version: str, asked: str) -> Pin:
    bare = _bare(version)
    if bare.startswith(("link:", "file:", "workspace:")):
        return Pin(dependency, asked=asked, link=True)
    name, at, number = bare.rpartition("@")  # an alias names the package as well
    return Pin(name if at else dependency, number, asked)
