"""`yarn.lock` of Yarn 2 and newer: YAML, with entries by `<dependency>@npm:<range>` and for every member.

Its checksums are those of Yarn's own archives, which nobody but Yarn makes, so that only names and versions can be
compared with what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused, Package, PackageId, Pin, edges, unpinned
from trunchray.frontends.benchmark.dependencies.specifier import refusal
from trunchray.frontends.benchmark.dependencies.yaml_document import read_yaml


def is_berry(content: bytes) -> bool:
    return b"\n__metadata:" in content


def read_berry_lock(content: bytes) -> Lock:
    """The lock in a `yarn.lock` with `__metadata`.

    Raises:
        LockRefused: it holds something that does not come from the registry, or that has no checksum.
        ValueError: it is not YAML.
    """
    data: dict[str, Any] = read_yaml(content)
    version = int(data.pop("__metadata")["version"])
    if not 4 <= version <= 10:
        raise LockRefused(f"has metadata version {version}, and only 4 to 10 are honoured; use Yarn 3 or 4")
    installed: dict[str, Pin] = {}
    members: dict[str, Any] = {}
    for key, entry in data.items():
        for part in key.split(", "):
            dependency, asked = _split(part)
            if asked.startswith("workspace:"):
                members[str(entry["resolution"]).partition("@workspace:")[2]] = entry
            elif not _ignored(asked):
                installed[f"{dependency}@{asked}"] = _pin(dependency, asked, entry)
    pins = {
        "" if folder == "." else folder: dict(_pins(entry, installed, names=_names(members)))
        for folder, entry in members.items()
    }
    return Lock(f"yarn-berry/{version}", _packages(data, installed, pins.get("", {})), pins, hashed=False)


def _names(members: Mapping[str, Any]) -> set[str]:
    return {str(entry["resolution"]).partition("@workspace:")[0] for entry in members.values()}


def _split(key: str) -> tuple[str, str]:
    """`zod@npm:^4` as dependency and range; the `npm:` in front of a plain range says nothing."""
    dependency, _, asked = key[1:].partition("@")
    return key[0] + dependency, _plain(asked)


def _plain(asked: str) -> str:
    bare = asked.removeprefix("npm:")
    return asked if "@" in bare else bare  # an alias keeps its prefix


def _ignored(asked: str) -> bool:
    """Yarn's own patches change how packages find files, for its Plug'n'Play; the unpatched entry is there as well."""
    return asked.startswith("patch:") and "builtin<" in asked


def _pin(dependency: str, asked: str, entry: Mapping[str, Any]) -> Pin:
    if reason := refusal(asked):
        raise LockRefused(f"{dependency!r} {reason}")
    name, resolved = _split(str(entry["resolution"]))
    if ":" in resolved:
        raise LockRefused(f"{dependency!r} resolves to {entry['resolution']!r}, which is not in the registry")
    # Yarn has no checksum for what it did not fetch, because it is for other machines.
    if not (entry.get("checksum") or entry.get("conditions")):
        raise unpinned(dependency, "checksum", "yarn")
    return Pin(name, resolved, asked)


def _pins(entry: Mapping[str, Any], installed: Mapping[str, Pin], *, names: set[str]) -> Iterator[tuple[str, Pin]]:
    for dependency, written in (entry.get("dependencies") or {}).items():
        asked = _plain(written)
        pin = _found(dependency, asked, installed)
        if asked.startswith("workspace:") or (pin is None and dependency in names):
            yield dependency, Pin(dependency, asked=asked, link=True)
        elif pin:
            yield dependency, Pin(pin.name, pin.version, asked)


def _found(dependency: str, asked: str, installed: Mapping[str, Pin]) -> Pin | None:
    """The entry for a range. A range that `resolutions` replaced has none; then it is the only one of that name."""
    if pin := installed.get(f"{dependency}@{asked}"):
        return pin
    if _ignored(asked):
        return _found(dependency, _plain(asked.removeprefix("patch:").partition("#")[0].rpartition("@")[2]), installed)
    of_name = {pin for key, pin in installed.items() if key.startswith(f"{dependency}@")}
    return of_name.pop() if len({pin.version for pin in of_name}) == 1 else None


def _packages(
    data: Mapping[str, Any], installed: Mapping[str, Pin], root: Mapping[str, Pin]
) -> dict[PackageId, Package]:
    """The packages, each with what it imports. A peer is what the root of the repository has, else the only one."""
    found = {(pin.name, pin.version): Package() for pin in installed.values()}
    for entry in data.values():
        package_id = _split(str(entry["resolution"]))
        if package_id in found:
            wanted = entry.get("dependencies") or {}
            own = {name: _found(name, _plain(str(asked)), installed) for name, asked in wanted.items()}
            peers = {
                name: root.get(name) or _found(name, "", installed) for name in entry.get("peerDependencies") or {}
            }
            meta = entry.get("dependenciesMeta") or {}
            conditions = str(entry.get("conditions") or "")
            found[package_id] = Package(
                edges=edges(peers | own),
                optional=frozenset(name for name, each in meta.items() if each.get("optional")),
                os=tuple(re.findall(r"\bos=([\w!]+)", conditions)),
                cpu=tuple(re.findall(r"\bcpu=([\w!]+)", conditions)),
            )
    return found
