"""Which files are lockfiles, and who reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trunchray.frontends.benchmark.dependencies.berry_lock import is_berry, read_berry_lock
from trunchray.frontends.benchmark.dependencies.bun_lock import read_bun_lock
from trunchray.frontends.benchmark.dependencies.deno_lock import read_deno_lock
from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused
from trunchray.frontends.benchmark.dependencies.npm_lock import read_npm_lock
from trunchray.frontends.benchmark.dependencies.pnpm_lock import read_pnpm_lock
from trunchray.frontends.benchmark.dependencies.yarn_lock import read_yarn_lock


def _read_any_yarn_lock(content: bytes) -> Lock:
    return read_berry_lock(content) if is_berry(content) else read_yarn_lock(content)


def _binary(_: bytes) -> Lock:
    raise LockRefused("is a binary lockfile; run `bun install --save-text-lockfile` and commit bun.lock instead")


_READERS: dict[str, Callable[[bytes], Lock]] = {
    "package-lock.json": read_npm_lock,
    "npm-shrinkwrap.json": read_npm_lock,
    "pnpm-lock.yaml": read_pnpm_lock,
    "yarn.lock": _read_any_yarn_lock,
    "bun.lock": read_bun_lock,
    "bun.lockb": _binary,
    "deno.lock": read_deno_lock,
}


def lockfile_in(folder: Path) -> str | None:
    """The name of the lockfile in a folder; None without one. Deno's own counts only when it is the only one.

    Raises:
        LockRefused: there are several.
    """
    found = [name for name in _READERS if (folder / name).is_file()]
    if len(found) > 1:
        found = [name for name in found if name != "deno.lock"]
    if len(found) > 1:
        raise LockRefused(f"stands beside {' and '.join(found[1:])}; keep the lockfile you use and remove the others")
    return found[0] if found else None


def read_lock(name: str, content: bytes) -> Lock:
    """The lock in a file of this name.

    Raises:
        LockRefused: it is not honoured, or cannot be read.
    """
    try:
        return _READERS[name](content)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
        detail = (
            str(e) if isinstance(e, ValueError) and str(e).startswith("is not") else "has not the form of a lockfile"
        )
        raise LockRefused(f"{detail}; write it anew with its package manager, and commit it") from e
