"""The scripted coding tool, as tests run it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trunchray.agents.harness import scripted
from trunchray.core.harness import Harness

COMMAND = (sys.executable, "-S", str(scripted.__file__), "{prompt}")


def scripted_harness(**given: Any) -> Harness:
    """It as a harness."""
    return Harness(command=COMMAND, **given)


def steps(*does: dict[str, Any]) -> str:
    """The prompt that makes it do these."""
    return json.dumps(does)


def running(pid: str | int) -> bool:
    """Whether there is such a process."""
    with suppress(ProcessLookupError):
        os.kill(int(pid), 0)
        return True
    return False


def left_in(rooms: Path) -> list[str]:
    """What there is in the folder of clean rooms: rooms and their locks."""
    return sorted(path.name for path in rooms.iterdir())


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    while not holds():  # noqa: ASYNC110 - there is nothing of another process to wait on
        await asyncio.sleep(0.01)


def open_files() -> int:
    """Of this process; 0 where nobody can tell."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0
