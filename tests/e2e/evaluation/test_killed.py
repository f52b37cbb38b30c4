"""An evaluation whose process is killed goes on when the call is repeated, and runs nothing twice that was stored."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trunchray.adapters import parts

CASES, FINISHED, CONCURRENCY = 1000, 300, 8

PROGRAM = f"""
import asyncio, sys
from trunchray import evaluate

folder, address, hangs = sys.argv[1], sys.argv[2], "hangs" in sys.argv

async def task(number):
    with open(f"{{folder}}/log", "ab", buffering=0) as file:
        file.write(b"%03d\\n" % number)
        begun = file.tell() // 4  # also where workers write side by side: each knows where its own line ends
    if hangs and begun > {FINISHED}:
        await asyncio.Event().wait()
    return number

report = evaluate(
    name="killed",
    task=task,
    data=[{{"input": number, "expectedOutput": number}} for number in range({CASES})],
    concurrency={CONCURRENCY},
    address=address or None,
    out=f"{{folder}}/runs",
)
assert len(report.cases) == {CASES}
"""


def stored(out: Path) -> int:
    """Rows that are in parts, committed or not."""
    return sum(parts.decode(path.read_bytes()).num_rows for path in out.glob("*/parts/*/*.parquet"))


def test_a_killed_evaluation_goes_on(pool: str, tmp_path: Path, request: pytest.FixtureRequest):
    """A thousand cases: of those that were stored when the process was killed, none is run again."""
    address = request.getfixturevalue("ray_cluster").address if pool == "ray" else ""
    program, log, out = tmp_path / "killed.py", tmp_path / "log", tmp_path / "runs"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path), address]

    first = subprocess.Popen([*command, "hangs"])
    while stored(out) < FINISHED or len(log.read_text(encoding="utf-8").split()) < FINISHED + CONCURRENCY:
        assert first.poll() is None
        threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
    first.kill()
    first.wait()

    before = log.read_text(encoding="utf-8").split()
    assert stored(out) == FINISHED
    again = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert again.returncode == 0, again.stderr
    assert "killed passed" in again.stdout
    runs = log.read_text(encoding="utf-8").split()
    assert len(before) == FINISHED + CONCURRENCY
    assert len(runs) == CASES + CONCURRENCY
    assert len(set(runs)) == CASES
