"""Starting sandboxed processes: through the zygote and behind every wall that Linux has, or plainly elsewhere."""

from __future__ import annotations

import os
import platform
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from trunchray.adapters.sandbox.child import Child
from trunchray.adapters.sandbox.hardening import NO_POWERS, Powers
from trunchray.adapters.sandbox.plain_child import PlainChild
from trunchray.adapters.sandbox.walls import Walls
from trunchray.adapters.sandbox.zygote_child import ZygoteChild, zygote_powers
from trunchray.errors import UsageError

Requirement = Literal["none", "landlock"]
"""What `require` may ask for."""

_LINUX = platform.system() == "Linux"
_PATIENCE = 30.0  # seconds
_OUTPUT_KEPT = 4 << 20  # bytes


def start(command: Sequence[str], files: Sequence[int], *, cwd: str, env: Mapping[str, str], walls: Walls) -> Child:
    """Run a program inside its walls. `files` become its descriptors 0, 1, 2, and on; they stay open here.

    Raises:
        OSError: it could not be started. A program that could not be executed ends with code 127 and says why.
    """
    kind = ZygoteChild if _LINUX else PlainChild
    return kind(command, files, cwd=cwd, env=env, walls=walls)


def powers() -> Powers:
    """Which walls this machine has."""
    return zygote_powers() if _LINUX else NO_POWERS


def sandbox_level() -> str:
    """The walls around sandboxed processes besides Deno's: "landlock+seccomp", "seccomp", "landlock" or "none"."""
    return powers().level


def require(wanted: Requirement) -> None:
    """Check that this machine keeps sandboxed code from files and network even if Deno should not.

    Raises:
        UsageError: it does not; the message names what is missing.
    """
    if wanted != "none":
        check_powers(powers())


def check_powers(have: Powers) -> None:
    """Raises `UsageError` unless there are both Landlock and seccomp."""
    walls = {"Landlock (Linux 5.13 or later, and not switched off)": have.landlock, "seccomp": have.seccomp}
    missing = [name for name, there in walls.items() if not there]
    if missing:
        raise UsageError(
            f"sandbox.require: 'landlock' cannot be met on {platform.node()} ({platform.system()} "
            f"{platform.release()}), whose kernel lacks {' and '.join(missing)}; run on another machine, or use "
            "'none' to rely on Deno's own sandbox"
        )


@dataclass(frozen=True)
class Completed:
    """How a program ended: `code` as of `Child.wait`, and the last 4 MB of what it printed."""

    code: int
    output: bytes


def run(command: Sequence[str], *, cwd: str, env: Mapping[str, str], walls: Walls, timeout: float) -> Completed:
    """Run a program inside its walls to its end, without input.

    Raises:
        TimeoutError: it had not ended within `timeout` seconds, and was killed.
        OSError: it could not be started.
    """
    read, write = os.pipe()
    deadline = time.monotonic() + timeout
    with open(read, "rb", buffering=0) as output, open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor
        try:
            child = start(command, [nothing.fileno(), write, write], cwd=cwd, env=env, walls=walls)
        finally:
            os.close(write)
        try:
            printed = _read_all(output.fileno(), deadline)
            code = child.wait(max(0.001, deadline - time.monotonic()))
        except BaseException:
            child.kill()
            child.wait()
            raise
    return Completed(code, printed)


@cache
def libraries(program: str) -> tuple[str, ...]:
    """The shared libraries and the loader of a dynamically linked program, as its loader finds them here."""
    traced = subprocess.run(
        [program], env={"LD_TRACE_LOADED_OBJECTS": "1"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=_PATIENCE,
    )  # fmt: skip
    return tuple(word for word in traced.stdout.split() if word.startswith("/"))


def _read_all(output: int, deadline: float) -> bytes:
    """Until it is closed; `deadline` is in the time of `time.monotonic`."""
    printed = b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while selector.select(max(0, deadline - time.monotonic())):
            chunk = os.read(output, 1 << 16)
            if not chunk:
                return printed
            printed = (printed + chunk)[-_OUTPUT_KEPT:]
    raise TimeoutError("it did not end in time")
