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
    edges,
    hashes,
    machines,
    refuse_patches,
    refuse_unpinned,
    split_id,
)
from trunchray.frontends.benchmark.dependencies.manifest import SECTIONS
from trunchray.frontends.benchmark.dependencies.yaml_document import read_yaml

_ELSEWHERE = ("git", "directory")
"""Kinds of resolutions that are not a tarball of the registry, which has none."""


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
    refuse_patches(data)
    importers: dict[str, Any] = data.get("importers") or {".": data}
    pins = {"" if folder == "." else folder: dict(_pins(importer)) for folder, importer in importers.items()}
    entries = data.get("packages") or {}
    packages = _packages(entries, data.get("snapshots") or entries)
    refuse_unpinned(packages, "pnpm")
    return Lock(f"pnpm-lock/{version[0]}", packages, pins)


def _packages(entries: Mapping[str, Any], snapshots: Mapping[str, Any]) -> dict[PackageId, Package]:
    """`snapshots` say what packages import; a package that was linked to several peers has one for each."""
    found: dict[PackageId, Package] = {}
    for key, entry in entries.items():
        resolution, text = entry["resolution"], _bare(key)
        if ":" in text or resolution.get("type") in _ELSEWHERE:
            raise LockRefused(f"{text!r} {FOREIGN}")
        found[split_id(text)] = Package(
            hashes(resolution.get("integrity")), os=machines(entry.get("os")), cpu=machines(entry.get("cpu"))
        )
    for key, entry in snapshots.items():
        package_id = split_id(_bare(key))
        optional = entry.get("optionalDependencies") or {}
        wanted = (entry.get("dependencies") or {}) | optional
        imported = edges({name: _pin(name, version, "") for name, version in wanted.items()})
        if package_id in found and not found[package_id].edges:
            found[package_id] = replace(found[package_id], edges=imported, optional=frozenset(optional))
    return found


def _bare(key: str) -> str:
    """A key without the peers that a package was linked to."""
    return key.lstrip("/").partition("(")[0]


def _pins(importer: Mapping[str, Any]) -> Iterator[tuple[str, Pin]]:
    for section in SECTIONS:
        for dependency, entry in (importer.get(section) or {}).items():
            yield dependency, _pin(dependency, entry["version"], entry["specifier"])


def _pin(dependency: str, version: str, asked: str) -> Pin:
    bare = _bare(version)
    if bare.startswith(("link:", "file:", "workspace:")):
        return Pin(dependency, asked=asked, link=True)
    name, at, number = bare.rpartition("@")  # an alias names the package as well
    return Pin(name if at else dependency, number, asked)
