"""A sandboxed process where there is no Linux: without walls, but with limits, and with its memory watched."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from trunchray.adapters.sandbox.walls import Walls
from trunchray.adapters.sandbox.watchdog import WATCHDOG


class PlainChild:
    """Its arguments are those of `launcher.start`."""

    def __init__(
        self, command: Sequence[str], files: Sequence[int], *, cwd: str, env: Mapping[str, str], walls: Walls
    ) -> None:
        stdin, stdout, stderr, *more = files
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _script(more, walls), *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=more,
            cwd=cwd,
            env={**env},
            start_new_session=True,
        )
        if walls.resident_bytes is not None:
            WATCHDOG.watch(self.pid, walls.resident_bytes)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        WATCHDOG.release(self.pid)
        if self._process.returncode is not None:
            return
        # macOS has no permission to kill what has ended already.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        WATCHDOG.release(self.pid)  # once reaped, its id may become another's
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired as e:
            raise TimeoutError(f"still running after {timeout:g} s") from e


def _script(more: Sequence[int], walls: Walls) -> str:
    """Python cannot give a descriptor another number in a child without forking; a shell can, and sets limits.

    The further descriptors must be ends of pipes to write to.
    """
    limits = {"c": 0, "n": walls.open_files, "t": walls.cpu_seconds}
    steps = [f"ulimit -{name} {value}" for name, value in limits.items() if value is not None]
    moves = [f"{number}>/dev/fd/{file}" for number, file in enumerate(more, 3) if number != file]
    return "; ".join([*steps, " ".join(['exec "$0" "$@"', *moves])])
