"""`package-lock.json`, versions 2 and 3.

Its `packages` are by folder: "" and members by their own, installed packages by `node_modules/…` at any depth.
https://docs.npmjs.com/cli/configuring-npm/package-lock-json
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import (
    Lock,
    LockRefused,
    Package,
    PackageId,
    Pin,
    edges,
    hashes,
    machines,
    refuse_unpinned,
)
from trunchray.frontends.benchmark.dependencies.manifest import SECTIONS
from trunchray.frontends.benchmark.dependencies.specifier import refusal

_INSTALLED = "node_modules/"
_LONGEST = 4096  # characters of a path


def read_npm_lock(content: bytes) -> Lock:
    """The lock in `package-lock.json` or `npm-shrinkwrap.json`.

    Raises:
        LockRefused: it is of another version, holds something that does not come from the registry, or does not pin the
            content of a package.
    """
    data: Any = json.loads(content)
    version = data.get("lockfileVersion")
    if version not in (2, 3):
        raise LockRefused(
            f"has lockfileVersion {version!r}, and only 2 and 3 are honoured; run "
            "`npm install --package-lock-only --lockfile-version 3` and commit it"
        )
    entries: dict[str, Any] = data["packages"]
    _refuse_foreign(entries)
    packages = _packages(entries)
    refuse_unpinned(packages, "npm")
    pins = {folder: dict(_pins(folder, entries)) for folder in entries if not _is_installed(folder)}
    return Lock(f"package-lock/{version}", packages, pins)


def _is_installed(folder: str) -> bool:
    return folder.startswith(_INSTALLED) or f"/{_INSTALLED}" in folder


def _name(folder: str, entry: Mapping[str, Any]) -> str:
    return entry.get("name") or folder.rpartition(_INSTALLED)[2]


def _packages(entries: Mapping[str, Any]) -> dict[PackageId, Package]:
    found: dict[PackageId, Package] = {}
    for folder, entry in entries.items():
        if _is_installed(folder) and not entry.get("link") and not entry.get("inBundle"):
            package_id = (_name(folder, entry), entry["version"])
            package = _package(folder, entries)
            earlier = found.get(package_id, package)
            found[package_id] = replace(earlier, hashes=earlier.hashes | package.hashes)
    return found


def _package(folder: str, entries: Mapping[str, Any]) -> Package:
    entry = entries[folder]
    sections = (section for section in SECTIONS if section != "devDependencies")
    wanted = [name for section in sections for name in entry.get(section, {})]
    found = {name: place for name in wanted if (place := _resolved(folder, name, entries))}
    pins = {name: _pin(name, *place) for name, place in found.items() if not place[1].get("inBundle")}
    optional = frozenset(entry.get("optionalDependencies", {}))
    return Package(
        hashes(entry.get("integrity")), edges(pins), optional, machines(entry.get("os")), machines(entry.get("cpu"))
    )


def _pins(folder: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, Pin]]:
    for section in SECTIONS:
        for dependency, asked in entries[folder].get(section, {}).items():
            if found := _resolved(folder, dependency, entries):
                yield dependency, _pin(dependency, *found, asked)


def _pin(dependency: str, place: str, entry: Mapping[str, Any], asked: str | None = None) -> Pin:
    if entry.get("link"):
        return Pin(dependency, asked=asked, link=True)
    return Pin(_name(place, entry), entry["version"], asked)


def _resolved(folder: str, dependency: str, entries: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Where Node finds a dependency: in the nearest `node_modules` that has it."""
    while True:
        place = posixpath.join(folder, _INSTALLED, dependency)
        if place in entries:
            return place, entries[place]
        above = posixpath.dirname(folder)
        if above == folder:
            return None
        folder = above


def _refuse_foreign(entries: Mapping[str, Any]) -> None:
    for folder, entry in entries.items():
        if len(folder) > _LONGEST:
            raise LockRefused(
                f"has a folder of {len(folder):,} characters, which no machine has; make it again with npm"
            )
        resolved = entry.get("resolved", "")
        asked = [spec for section in SECTIONS[:3] for spec in entry.get(section, {}).items()]
        if isinstance(resolved, str) and resolved.startswith("git"):
            asked.append((_name(folder, entry), resolved))
        for name, spec in asked:
            if reason := refusal(spec):
                raise LockRefused(f"{name!r} {reason}")
        if isinstance(resolved, str) and resolved.startswith("file:") and not entry.get("link"):
            raise LockRefused(
                f"{_name(folder, entry)!r} comes from a packed file; depend on a folder or a published version"
            )
