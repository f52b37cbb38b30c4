"""The esbuild executable: fetched once for each user and version, from the npm registry, pinned by hash.

`sandbox_host/esbuild/deno.lock` names the version and its hashes. Deno is the npm client; it runs no install scripts.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from trunchray.adapters.sandbox.deno import HOSTS, binary, install_environment
from trunchray.adapters.scratch import scratch
from trunchray.adapters.user_cache import cache_directory
from trunchray.errors import UsageError

ESBUILD_VERSION = "0.28.2"

_TIME_LIMIT = 300  # seconds


def esbuild_binary() -> Path:
    """The executable, from the cache if it is there.

    Raises:
        UsageError: it is not, and cannot be fetched.
    """
    cache = cache_directory()
    target = cache / f"esbuild-{ESBUILD_VERSION}-{platform.system()}-{platform.machine()}".lower()
    if target.is_file():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with scratch(cache) as folder:
            # A rename is atomic: of two processes that fetch at once, one replaces the other's equal file.
            _fetched(folder).replace(target)
    except OSError as e:
        raise UsageError(f"cannot write to the cache {cache} ({e}); set TRUNCHRAY_CACHE to another directory") from e
    return target


def _fetched(folder: Path) -> Path:
    for name in ("package.json", "deno.lock"):
        shutil.copyfile(HOSTS / "esbuild" / name, folder / name)
    try:
        done = subprocess.run(
            [binary(), "install", "--quiet", "--frozen", "--node-modules-dir=auto"],
            cwd=folder,
            env=install_environment(folder / "deno"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise UsageError(_advice(f"no answer within {_TIME_LIMIT} s")) from e
    if done.returncode != 0:
        raise UsageError(_advice(done.stderr.strip()[-1000:]))
    found = list(folder.glob("node_modules/.deno/@esbuild+*/node_modules/@esbuild/*/bin/esbuild"))
    if not found:
        raise UsageError(f"esbuild {ESBUILD_VERSION} does not exist for {platform.system()} {platform.machine()}")
    return found[0]


def _advice(reason: str) -> str:
    return (
        f"esbuild {ESBUILD_VERSION}, which bundles benchmark code, could not be fetched: network access to the npm "
        f"registry is needed once (a registry of your own: set NPM_CONFIG_REGISTRY). {reason}"
    )
