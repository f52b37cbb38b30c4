"""Which files are lockfiles, and who reads them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from trunchray.frontends.benchmark.dependencies.berry_lock import is_berry, read_berry_lock
from trunchray.frontends.benchmark.dependencies.bun_lock import read_bun_lock
from trunchray.frontends.benchmark.dependencies.deno_lock import read_deno_lock
from trunchray.frontends.benchmark.dependencies.lock import FOREIGN, Lock, LockRefused, refuse_unpinned
from trunchray.frontends.benchmark.dependencies.npm_lock import read_npm_lock
from trunchray.frontends.benchmark.dependencies.pnpm_lock import read_pnpm_lock
from trunchray.frontends.benchmark.dependencies.specifier import is_package_name
from trunchray.frontends.benchmark.dependencies.yarn_lock import read_yarn_lock
from trunchray.frontends.benchmark.position import shown


def _read_any_yarn_lock(content: bytes) -> Lock:
    return read_berry_lock(content) if is_berry(content) else read_yarn_lock(content)


def _read_own_deno_lock(content: bytes) -> Lock:
    lock = read_deno_lock(content)
    for key, entry in json.loads(content).get("npm", {}).items():
        if "tarball" in entry:
            raise LockRefused(f"{key!r} {FOREIGN}")
    refuse_unpinned(lock.packages, "deno")
    return lock


def _binary(_: bytes) -> Lock:
    raise LockRefused("is a binary lockfile; run `bun install --save-text-lockfile` and commit bun.lock instead")


_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,255}")
_BROKEN = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff]")
READERS: dict[str, Callable[[bytes], Lock]] = {
    "package-lock.json": read_npm_lock,
    "npm-shrinkwrap.json": read_npm_lock,
    "pnpm-lock.yaml": read_pnpm_lock,
    "yarn.lock": _read_any_yarn_lock,
    "bun.lock": read_bun_lock,
    "bun.lockb": _binary,
    "deno.lock": _read_own_deno_lock,
}


def lockfile_in(folder: Path) -> str | None:
    """The name of the lockfile in a folder; None without one. Deno's own counts only when it is the only one.

    Raises:
        LockRefused: there are several.
    """
    found = [name for name in READERS if (folder / name).is_file()]
    if len(found) > 1:
        found = [name for name in found if name != "deno.lock"]
    if len(found) > 1:
        raise LockRefused(f"stands beside {' and '.join(found[1:])}; keep the lockfile you use and remove the others")
    return found[0] if found else None


def read_lock(name: str, content: bytes) -> Lock:
    """The lock in a file of this name, as its authors committed it.

    Raises:
        LockRefused: it is not honoured, or cannot be read.
    """
    try:
        lock = READERS[name](content)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
        detail = (
            str(e) if isinstance(e, ValueError) and str(e).startswith("is not") else "has not the form of a lockfile"
        )
        raise LockRefused(f"{detail}; write it anew with its package manager, and commit it") from e
    _refuse_strange(lock)
    _refuse_outside(lock.pins)
    return lock


def _refuse_strange(lock: Lock) -> None:
    """Names and versions become part of paths and of what the installer reads."""
    pins = [pin for own in (*lock.pins.values(), lock.ranges) for pin in own.values() if not pin.link]
    for name, version in (*lock.packages, *((pin.name, pin.version) for pin in pins)):
        if not (_is_text(name) and is_package_name(name)):
            raise LockRefused(
                f"holds {shown(str(name))}, which cannot be a package; write it anew with its package manager"
            )
        if not (_is_text(version) and _VERSION.fullmatch(version)):
            raise LockRefused(
                f"has {name!r} in version {shown(str(version))}, which cannot be one; write it anew with its package "
                "manager"
            )


def _refuse_outside(members: Iterable[str]) -> None:
    for member in members:
        if not _is_text(member) or _BROKEN.search(member):
            raise LockRefused(f"has a member {shown(str(member))}, which cannot be a folder; write it anew")
        if posixpath.isabs(member) or posixpath.normpath(member).split("/")[0] == "..":
            raise LockRefused(f"has a member {shown(member)}, which lies outside of its folder; move the two together")


def _is_text(value: object) -> bool:
    """YAML and JSON have numbers and dates, too, where a file was not written by a package manager."""
    return isinstance(value, str)
