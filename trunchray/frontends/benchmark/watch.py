"""Noticing that a repository has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

INTERVAL = 0.5
"""Seconds between two looks."""

Fingerprint = dict[str, tuple[int, int]]
"""Time of change in nanoseconds and size in bytes of each file, by its path."""


class Watch:
    """Looks at every file below `root` from now on; dot folders and `node_modules` do not count.

    `sleep` passes the time between two looks.
    """

    def __init__(self, root: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._root = root
        self._sleep = sleep
        self._seen = fingerprint(root)

    def wait(self) -> None:
        """Returns once a file was added, changed or removed since the watch began or last returned."""
        while (now := fingerprint(self._root)) == self._seen:
            self._sleep(INTERVAL)
        self._seen = now


def fingerprint(root: Path) -> Fingerprint:
    """What is there now; a file that vanishes meanwhile is left out."""
    found: Fingerprint = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        for path in (Path(folder) / name for name in files):
            try:
                status = path.stat()
            except OSError:
                continue
            found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found
