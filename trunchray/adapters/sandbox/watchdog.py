"""Killing process groups that use more physical memory than they may, where the kernel has no limit to set."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading

_INTERVAL = 0.25  # seconds


class Watchdog:
    """Looks at every watched process in turn, from a thread of its own that runs while there is something to watch."""

    def __init__(self) -> None:
        self._limits: dict[int, int] = {}
        self._changed = threading.Condition()
        self._running = False

    def watch(self, pid: int, limit: int) -> None:
        """Kill the group `pid` when its leader has more than `limit` bytes; the caller must not reap it before."""
        with self._changed:
            self._limits[pid] = limit
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="trunchray-watchdog", daemon=True).start()

    def release(self, pid: int) -> None:
        """Watch it no more; may be called again."""
        with self._changed:
            self._limits.pop(pid, None)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(_INTERVAL)
                if not self._limits:
                    self._running = False
                    return
                pids = list(self._limits)
            for pid, resident in resident_bytes(pids).items():
                self._judge(pid, resident)

    def _judge(self, pid: int, resident: int) -> None:
        with self._changed:  # whoever reaps it releases it first
            if resident > self._limits.get(pid, resident):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)


WATCHDOG = Watchdog()


def resident_bytes(pids: list[int]) -> dict[int, int]:
    """The physical memory of each process that there is, as `ps` tells on every Unix."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,rss=", "-p", ",".join(map(str, pids))], capture_output=True, text=True, check=False
    )
    pairs = (line.split() for line in listed.stdout.splitlines())
    return {int(pid): int(kilobytes) << 10 for pid, kilobytes in pairs}
