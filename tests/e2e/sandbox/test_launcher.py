"""Starting processes through the zygote: nothing is left behind, whoever dies, and memory is watched where need be."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trunchray.adapters.sandbox import zygote, zygote_child
from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT, binary, sandbox_walls
from trunchray.adapters.sandbox.launcher import Completed, run, sandbox_level
from trunchray.adapters.sandbox.walls import Walls
from trunchray.adapters.sandbox.watchdog import Watchdog

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no zygote")
WALLS = sandbox_walls(data_bytes=914 << 20, resident_bytes=400 << 20, cpu_seconds=60)


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def deno(*arguments: str, timeout: float = 30) -> Completed:
    return run([binary(), *arguments], cwd="/", env=SANDBOX_ENVIRONMENT, walls=WALLS, timeout=timeout)


def test_a_program_runs_to_its_own_end() -> None:
    """Its exit code is its own, its output is kept; one that cannot be executed says so."""
    assert deno("eval", "console.log(1); Deno.exit(7)") == Completed(7, b"1\n")
    missing = run(["/nowhere"], cwd="/", env={}, walls=Walls(execute=()), timeout=10)
    assert (missing.code, b"/nowhere was not started: " in missing.output) == (127, True)


def test_a_program_that_does_not_end_is_killed() -> None:
    """The deadline is an error, and leaves no descriptor open."""
    sandbox_level()
    before = open_files()
    with pytest.raises(TimeoutError):
        deno("eval", "for (;;);", timeout=0.5)
    assert open_files() == before


def test_a_zygote_that_dies_is_replaced() -> None:
    """The next process is started as if nothing had happened."""
    deno("--version")
    process = zygote_child._current[0]._process
    process.kill()
    process.wait()
    assert deno("eval", "Deno.exit(3)").code == 3


def test_a_zygote_whose_owner_is_gone_at_once_ends_quietly() -> None:
    """An owner that is killed while its zygote starts leaves nothing on the terminal."""
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.close()
    program = f"from {zygote.__name__} import serve; serve({other.fileno()})"
    with other:
        ended = subprocess.run(
            [sys.executable, "-c", program], pass_fds=[other.fileno()], capture_output=True, timeout=60, check=False
        )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_busy_process_ends_when_its_owner_is_killed() -> None:
    """A loop that notices no closed pipe does not outlive whoever started it."""
    script = """
import asyncio, os, signal
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
async def main():
    sandbox = EvaluatorSandbox(slots=1, deadline=60)
    code = b"export default { evaluate: ({ loop }) => { while (loop); return true; } };"
    module = SandboxModule("k", code, "default")
    await sandbox.evaluate(module, {})
    print(sandbox._idle[0].process.pid, flush=True)
    await sandbox.evaluate(module, {"loop": True})
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        orphan = os.pidfd_open(int(owner.stdout.readline()))
        assert not select.select([orphan], [], [], 0.5)[0]
        owner.kill()
    assert select.select([orphan], [], [], 10)[0]
    os.close(orphan)


def test_the_watchdog_kills_what_grows_too_large() -> None:
    """For systems that count no memory; a process within its limit is left alone."""
    watchdog = Watchdog()
    script = "const all = []; for (;;) all.push(new Uint8Array(8 << 20).fill(1));"
    large = subprocess.Popen([binary(), "eval", script], start_new_session=True)
    small = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    watchdog.watch(large.pid, 300 << 20)
    watchdog.watch(small.pid, 300 << 20)
    ended = os.waitid(os.P_PID, large.pid, os.WEXITED | os.WNOWAIT)
    watchdog.release(large.pid)
    watchdog.release(small.pid)
    assert ended is not None
    assert ended.si_status == signal.SIGKILL
    assert small.poll() is None
    small.kill()
    small.wait()
    large.wait()
