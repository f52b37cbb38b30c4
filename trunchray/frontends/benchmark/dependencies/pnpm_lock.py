"""`pnpm-lock.yaml`, versions 6.0 and 9.0: `importers` are the members, `packages` what they were locked to.

https://github.com/pnpm/spec/tree/main/lockfile
"""

from __future__ import annotations

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
from trunchray.frontends.benchmark.dependencies.yaml_document import read_yaml, write_yaml

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
    return Lock(f"pnpm-lock/{version[0]}", _packages(data.get("packages") or {}), _seed(data, importers), pins)


def _packages(entries: Mapping[str, Any]) -> dict[Release, frozenset[str]]:
    found: dict[Release, frozenset[str]] = {}
    for key, entry in entries.items():
        integrity = entry["resolution"].get("integrity")
        release = key.lstrip("/").partition("(")[0]
        if integrity is None or ":" in release:
            raise LockRefused(f"{release!r} {FOREIGN}")
        found[split_release(release)] = hashes(integrity)
    return found


def _pins(importer: Mapping[str, Any]) -> Iterator[tuple[str, Pin]]:
    for section in _SECTIONS:
        for dependency, entry in (importer.get(section) or {}).items():
            yield dependency, _pin(dependency, entry["version"], entry["specifier"])


def _pin(dependency: str, version: str, asked: str) -> Pin:
    bare = version.partition("(")[0].lstrip("/")
    if bare.startswith(("link:", "file:", "workspace:")):
        return Pin(dependency, asked=asked, link=True)
    name, at, number = bare.rpartition("@")  # an alias names the package as well
    return Pin(name if at else dependency, number, asked)


def _seed(data: dict[str, Any], importers: Mapping[str, Any]) -> tuple[str, bytes]:
    """The lock with exact versions in place of ranges.

    Deno would resolve one range alike for all members, although they may be locked to different versions.
    """
    for importer in importers.values():
        for section in _SECTIONS:
            for dependency, entry in (importer.get(section) or {}).items():
                entry["specifier"] = _pin(dependency, entry["version"], entry["specifier"]).exact(dependency)
    return "pnpm-lock.yaml", write_yaml(data)
