"""The esbuild executable: fetched once for each user and version, from the npm registry, pinned by hash.

`sandbox_host/esbuild/deno.lock` names the version and its hashes. Deno is the npm client; it runs no install scripts.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from trunchray.adapters.fetched import fetched_once, why_failed
from trunchray.adapters.sandbox.deno import HOSTS, binary, install_environment
from trunchray.errors import UsageError

ESBUILD_VERSION = "0.28.2"

_TIME_LIMIT = 300  # seconds


def esbuild_binary() -> Path:
    """The executable, from the cache if it is there.

    Raises:
        UsageError: it is not, and cannot be fetched.
    """
    name = f"esbuild-{ESBUILD_VERSION}-{platform.system()}-{platform.machine()}".lower()
    return fetched_once(name, _fetched)


def _fetched(folder: Path) -> Path:
    for name in ("package.json", "deno.lock"):
        shutil.copyfile(HOSTS / "esbuild" / name, folder / name)
    reason = why_failed(
        [binary(), "install", "--quiet", "--frozen", "--node-modules-dir=auto"],
        seconds=_TIME_LIMIT,
        cwd=folder,
        env=install_environment(folder / "deno"),
    )
    if reason:
        raise UsageError(_advice(reason))
    found = list(folder.glob("node_modules/.deno/@esbuild+*/node_modules/@esbuild/*/bin/esbuild"))
    if not found:
        raise UsageError(f"esbuild {ESBUILD_VERSION} does not exist for {platform.system()} {platform.machine()}")
    return found[0]


def _advice(reason: str) -> str:
    return (
        f"esbuild {ESBUILD_VERSION}, which bundles benchmark code, could not be fetched: network access to the npm "
        f"registry is needed once (a registry of your own: set NPM_CONFIG_REGISTRY). {reason}"
    )
