"""What a lockfile says, whichever package manager wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


class LockRefused(Exception):
    """A lockfile, or one thing in it, that is not honoured; the message says why and what to do instead."""


FOREIGN = "does not come from the registry; depend on a published version, or copy the code into the repository"


PackageId = tuple[str, str]
"""Name and version of a package."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The package that one dependency of a member was locked to.

    `name` is its name in the registry, which an alias hides. `asked` is the range that the lock was made for, None when
    the lock does not say. A `link` is another folder of the repository and has no version.
    """

    name: str
    version: str = ""
    asked: str | None = None
    link: bool = False

    def exact(self, dependency: str) -> str:
        """What to write for `dependency` in package.json, so that it means this package and no other."""
        if self.link:
            return "workspace:*"
        return self.version if self.name == dependency else f"npm:{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Package:
    """One locked package. `hashes` are of its tarball, none where the lockfile has none that can be verified.

    `edges` are the packages that its imports lead to, by the name it imports; those in `optional` may be absent. `os`
    and `cpu` are the machines that can use it, empty for all.
    """

    hashes: frozenset[str] = frozenset()
    edges: Mapping[str, PackageId] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    os: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """A lockfile in one form.

    `kind` is for example "package-lock/3". `pins` are by member, a folder relative to the lockfile ("" for its own),
    and by dependency; a lockfile that does not know members has `ranges` instead, by `<dependency>@<range>`. `hashed`
    tells whether it pins what is in packages, and not their versions alone. `own` is the text of Deno's own lockfile,
    which Deno enforces itself.
    """

    kind: str
    packages: Mapping[PackageId, Package]
    pins: Mapping[str, Mapping[str, Pin]] = field(default_factory=dict)
    ranges: Mapping[str, Pin] = field(default_factory=dict)
    hashed: bool = True
    own: bytes | None = None

    def pin(self, member: str, dependency: str, asked: str) -> Pin | None:
        """What a dependency was locked to; None when the lockfile was made for another package.json."""
        if not self.pins:
            return self.ranges.get(f"{dependency}@{asked}")
        pin = self.pins.get(member, {}).get(dependency)
        return pin if pin and pin.asked in (None, asked) else None


def split_id(text: str) -> PackageId:
    """`@scope/name@1.0.0` as name and version.

    Raises:
        LockRefused: it is not of that form.
    """
    name, at, version = text.rpartition("@")
    if not at or not name or not version:
        raise LockRefused(f"{text!r} is not a package and its version; run the package manager again")
    return name, version


def hashes(text: object) -> frozenset[str]:
    """The hashes of an `integrity` field that Deno can verify; there may be several, or none."""
    found = text.split() if isinstance(text, str) else []
    return frozenset(each for each in found if each.startswith(("sha512-", "sha1-")))


def edges(pins: Mapping[str, Pin | None]) -> dict[str, PackageId]:
    """What the imports of a package lead to: of its pins those that were found, and are no folders."""
    return {name: (pin.name, pin.version) for name, pin in pins.items() if pin and not pin.link}


def refuse_patches(data: Mapping[str, Any]) -> None:
    """Raises `LockRefused` when a lockfile's `patchedDependencies` change what the registry has."""
    if data.get("patchedDependencies"):
        raise LockRefused(
            f"patches {', '.join(sorted(data['patchedDependencies']))}, which is not supported; depend on published "
            "versions, or copy the code into the repository"
        )


def refuse_unpinned(packages: Mapping[PackageId, Package], manager: str) -> None:
    """Raises `LockRefused` unless every package has a hash: without one, what is installed may change in silence."""
    for (name, _), package in packages.items():
        if not package.hashes:
            raise unpinned(name, "integrity of SHA-512 or SHA-1", manager)


def unpinned(name: str, what: str, manager: str) -> LockRefused:
    return LockRefused(
        f"does not pin the content of {name!r}, which has no {what}; remove the lockfile and `node_modules`, and make "
        f"it again with {manager}"
    )


def machines(value: object) -> tuple[str, ...]:
    """An `os` or `cpu` field: a list, or one entry."""
    if isinstance(value, str):
        return () if value == "none" else (value,)
    return tuple(str(entry) for entry in cast("list[object]", value)) if isinstance(value, list) else ()
