"""An evaluation whose process is killed goes on when the call is repeated, and runs nothing twice that was stored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trunchray.adapters import parts

CASES, FINISHED, CONCURRENCY = 1000, 300, 8

PROGRAM = f"""
import asyncio, os, sys
from trunchray import evaluate

out, pool = sys.argv[1:]

async def task(number):
    with open(os.environ["LOG"], "a") as file:
        file.write(f"{{number}}\\n")
    if "HANGS" in os.environ and sum(1 for _ in open(os.environ["LOG"])) > {FINISHED}:
        await asyncio.Event().wait()
    return number

report = evaluate(
    name="killed",
    task=task,
    data=[{{"input": number, "expectedOutput": number}} for number in range({CASES})],
    concurrency={CONCURRENCY},
    pool=pool,
    out=out,
)
assert len(report.cases) == {CASES}
"""


def stored(out: Path) -> int:
    """Rows that are in parts, committed or not."""
    return sum(parts.decode(path.read_bytes()).num_rows for path in out.glob("*/parts/*/*.parquet"))


@pytest.mark.parametrize("pool", ["local", "ray"])
def test_a_killed_evaluation_goes_on(pool: str, tmp_path: Path):
    """A thousand cases: of those that were stored when the process was killed, none is run again."""
    program, log, out = tmp_path / "killed.py", tmp_path / "log", tmp_path / "runs"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(out), pool]
    environment = os.environ | {"LOG": str(log)}

    first = subprocess.Popen(command, env=environment | {"HANGS": "1"}, start_new_session=True)
    while stored(out) < FINISHED:
        assert first.poll() is None
        threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()

    before = log.read_text(encoding="utf-8").split()
    assert stored(out) == FINISHED
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert again.returncode == 0, again.stderr
    assert "killed passed" in again.stdout
    runs = log.read_text(encoding="utf-8").split()
    assert len(before) == FINISHED + CONCURRENCY
    assert len(runs) == CASES + CONCURRENCY
    assert len(set(runs)) == CASES
