"""`yarn.lock` of Yarn 1: entries by `<dependency>@<range>`, several of them on one line, members nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused, Pin, Release, hashes
from trunchray.frontends.benchmark.dependencies.specifier import local_folder, refusal

_field = re.compile(r'  "?([\w-]+)"? "?([^"]*)"?$')


def read_yarn_lock(content: bytes) -> Lock:
    """The lock in a `yarn.lock` of version 1.

    Raises:
        LockRefused: it holds something that does not come from the registry.
    """
    ranges: dict[str, Pin] = {}
    packages: dict[Release, frozenset[str]] = {}
    for keys, fields in _entries(content.decode()):
        for key in keys:
            ranges[key] = _pin(key, fields)
        pin = ranges[keys[0]]
        if not pin.link:
            release = (pin.name, pin.version)
            packages[release] = packages.get(release, frozenset()) | hashes(fields.get("integrity"))
    return Lock("yarn/1", packages, ("yarn.lock", content), ranges=ranges)


def _entries(text: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The keys and the plain fields of every entry."""
    for block in re.split(r"\n(?=\S)", text):
        head, *lines = block.rstrip().split("\n")
        if head.endswith(":") and not head.startswith("#"):
            keys = [key.strip().strip('"') for key in head[:-1].split(", ")]
            yield keys, {found[1]: found[2] for line in lines if (found := _field.match(line))}


def _pin(key: str, fields: dict[str, str]) -> Pin:
    dependency, _, asked = key[1:].partition("@")
    dependency = key[0] + dependency
    if reason := refusal(asked):
        raise LockRefused(f"{dependency!r} {reason}")
    if local_folder(asked) is not None:
        return Pin(dependency, asked=asked, link=True)
    name = asked.removeprefix("npm:").rpartition("@")[0] if asked.startswith("npm:") else ""
    return Pin(name or dependency, fields["version"], asked)
