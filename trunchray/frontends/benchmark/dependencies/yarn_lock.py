"""`yarn.lock` of Yarn 1: entries by `<dependency>@<range>`, several of them on one line, members nowhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trunchray.frontends.benchmark.dependencies.lock import (
    Lock,
    LockRefused,
    Package,
    PackageId,
    Pin,
    edges,
    hashes,
    refuse_unpinned,
)
from trunchray.frontends.benchmark.dependencies.specifier import local_folder, refusal

_line = re.compile(r'(?P<indent> +)"?(?P<name>[^"\s]+?)"?(?P<section>:)?(?: "?(?P<value>[^"]*)"?)?')

_sha1 = re.compile(r"#([0-9a-f]{40})$")


@dataclass
class _Entry:
    """What stands below a line of keys: plain fields, and ranges by section and dependency."""

    keys: list[str]
    fields: dict[str, str] = field(default_factory=dict)
    sections: dict[str, dict[str, str]] = field(default_factory=dict)


def read_yarn_lock(content: bytes) -> Lock:
    """The lock in a `yarn.lock` of version 1.

    Raises:
        LockRefused: it holds something that does not come from the registry.
    """
    entries = list(_entries(content.decode()))
    ranges = {key: _pin(key, entry.fields) for entry in entries for key in entry.keys}
    packages: dict[PackageId, Package] = {}
    for entry in entries:
        pin = ranges[entry.keys[0]]
        if not pin.link:
            packages[pin.name, pin.version] = _package(entry, ranges)
    refuse_unpinned(packages, "yarn")
    return Lock("yarn/1", packages, ranges=ranges)


def _entries(text: str) -> Iterator[_Entry]:
    for block in re.split(r"\n(?=\S)", text.replace("\r\n", "\n")):
        head, *lines = block.rstrip().split("\n")
        if head.endswith(":") and not head.startswith("#"):
            entry = _Entry([key.strip().strip('"') for key in head[:-1].split(", ")])
            _fill(entry, lines)
            yield entry


def _fill(entry: _Entry, lines: list[str]) -> None:
    section: dict[str, str] = {}
    for line in lines:
        found = _line.fullmatch(line)
        if found is None:
            continue
        if found["section"]:
            section = entry.sections.setdefault(found["name"], {})
        elif len(found["indent"]) == 2:
            entry.fields[found["name"]] = found["value"] or ""
        else:
            section[found["name"]] = found["value"] or ""


def _package(entry: _Entry, ranges: Mapping[str, Pin]) -> Package:
    optional = entry.sections.get("optionalDependencies", {})
    wanted = entry.sections.get("dependencies", {}) | optional
    found = {name: ranges.get(f"{name}@{asked}") for name, asked in wanted.items()}
    return Package(_hashes(entry.fields), edges(found), frozenset(optional))


def _hashes(fields: Mapping[str, str]) -> frozenset[str]:
    """Before Yarn 1.10 there was no `integrity`, but the SHA-1 of the tarball stood behind its address."""
    found = hashes(fields.get("integrity"))
    behind = _sha1.search(fields.get("resolved", ""))
    if found or behind is None:
        return found
    return frozenset({f"sha1-{base64.b64encode(bytes.fromhex(behind[1])).decode()}"})


def _pin(key: str, fields: dict[str, str]) -> Pin:
    dependency, _, asked = key[1:].partition("@")
    dependency = key[0] + dependency
    if reason := refusal(asked):
        raise LockRefused(f"{dependency!r} {reason}")
    if local_folder(asked) is not None:
        return Pin(dependency, asked=asked, link=True)
    name = asked.removeprefix("npm:").rpartition("@")[0] if asked.startswith("npm:") else ""
    return Pin(name or dependency, fields["version"], asked)
