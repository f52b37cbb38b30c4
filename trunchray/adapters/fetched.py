"""Files that are fetched once for each user, and kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trunchray.adapters.scratch import scratch
from trunchray.adapters.user_cache import cache_directory
from trunchray.errors import UsageError

_SHOWN = 1000  # characters of what a command said


def fetched_once(name: str, fetch: Callable[[Path], Path], is_right: Callable[[Path], bool] = Path.is_file) -> Path:
    """The file of that name in the user's cache; `fetch` makes it in an empty folder when the right one is not there.

    Raises:
        UsageError: the cache cannot be written to, or what `fetch` raises.
    """
    cache = cache_directory()
    target = cache / name
    if is_right(target):
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with scratch(cache) as folder:
            # A rename is atomic: of two processes that fetch at once, one replaces the other's equal file.
            fetch(folder).replace(target)
    except OSError as e:
        raise UsageError(f"cannot write to the cache {cache} ({e}); set TRUNCHRAY_CACHE to another directory") from e
    return target


def why_failed(
    argv: Sequence[str], *, seconds: int, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str | None:
    """Run a command that fetches something; None when it did, else what it said."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds} s"
    if done.returncode == 0:
        return None
    return done.stderr.strip()[-_SHOWN:] or f"it ended with {done.returncode}, and said nothing"
