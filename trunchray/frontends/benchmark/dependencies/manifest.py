"""`package.json`, as far as dependencies go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from trunchray.frontends.benchmark.dependencies.specifier import is_package_name
from trunchray.frontends.benchmark.position import shown

SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
"""The maps of dependencies, in package.json and in lockfiles that repeat them."""


class ManifestRefused(Exception):
    """A package.json that cannot be read; the message says why."""


@dataclass(frozen=True)
class Manifest:
    """One package.json. `name` is None where it has none that npm would take.

    `sections` are its four maps of dependencies, empty ones left out.
    """

    name: str | None
    sections: Mapping[str, Mapping[str, str]]
    workspaces: tuple[str, ...] = ()
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    overrides: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def dependencies(self) -> dict[str, tuple[str, str]]:
        """Section and specifier by dependency. A name in several sections counts once, peers last."""
        found: dict[str, tuple[str, str]] = {}
        for section in ("optionalDependencies", "dependencies", "devDependencies", "peerDependencies"):
            for name, specifier in self.sections.get(section, {}).items():
                found.setdefault(name, (section, specifier))
        return found


def read_manifest(file: Path) -> Manifest:
    """The package.json at `file`.

    Raises:
        ManifestRefused: it is not JSON, or a part of it has not the form it should have.
    """
    try:
        data: Any = json.loads(file.read_bytes())
    except (ValueError, RecursionError, OSError) as e:
        raise ManifestRefused(f"is not valid JSON ({e}); correct it") from e
    if not isinstance(data, dict):
        raise ManifestRefused("must hold one JSON object")
    fields = cast("dict[str, Any]", data)
    sections = {name: _dependencies(fields[name], name) for name in SECTIONS if fields.get(name)}
    workspaces: Any = fields.get("workspaces") or []
    packages: Any = workspaces.get("packages", []) if isinstance(workspaces, dict) else workspaces
    if not isinstance(packages, list) or not all(isinstance(entry, str) for entry in cast("list[Any]", packages)):
        raise ManifestRefused("field 'workspaces' must be an array of patterns")
    name = fields.get("name")
    return Manifest(
        name if isinstance(name, str) and is_package_name(name) else None,
        sections,
        tuple(cast("list[str]", packages)),
        _catalogs(workspaces if isinstance(workspaces, dict) else {}) | _catalogs(fields),
        {key: fields[key] for key in ("overrides", "resolutions") if key in fields},
    )


def _dependencies(value: Any, section: str) -> Mapping[str, str]:
    found = _strings(value, section)
    for name in found:
        if not is_package_name(name):
            raise ManifestRefused(f"field {section!r} names {shown(name)}, which cannot be a package; correct the name")
    return found


def _catalogs(holder: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    found = {name: _strings(entries, f"catalogs.{name}") for name, entries in (holder.get("catalogs") or {}).items()}
    return found | ({"default": _strings(holder["catalog"], "catalog")} if "catalog" in holder else {})


def catalogs_of(holder: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """The catalogs in a package.json or pnpm-workspace.yaml, by name.

    Raises:
        ManifestRefused: one is not a map of strings.
    """
    return _catalogs(holder)


def _strings(value: Any, name: str) -> Mapping[str, str]:
    entries = cast("dict[Any, Any]", value) if isinstance(value, dict) else {None: None}
    if not all(isinstance(text, str) for entry in entries.items() for text in entry):
        raise ManifestRefused(f"field {name!r} must map names to version ranges")
    return cast("dict[str, str]", entries)
