"""Ctrl-C ends an evaluation in order: what has finished is stored, and the same call goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trunchray.engine.blocks import blocks
from trunchray.engine.status import read_status

PROGRAM = """
import signal, sys, time
from trunchray import evaluate

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where these tests themselves are not to hear of it
folder, address, hangs = sys.argv[1], sys.argv[2], "hangs" in sys.argv

def task(number):
    with open(f"{folder}/log", "a") as file:
        file.write(f"{number}\\n")
    if hangs and sum(1 for _ in open(f"{folder}/log")) == 3:
        open(f"{folder}/third", "w").close()
        time.sleep(600)
    return number

evaluate(
    name="stopped",
    task=task,
    data=[{"input": number, "expectedOutput": number} for number in range(4)],
    concurrency=1,
    timeout="20m",
    address=address or None,
    out=f"{folder}/runs",
    save=f"{folder}/last.json",
)
"""


class Program:
    """A program in another process that evaluates four cases, and hangs in the third that it begins."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        file = folder / "stopped.py"
        file.write_text(PROGRAM, encoding="utf-8")
        self.command = [sys.executable, str(file), str(folder), address]

    def interrupted(self, *, times: int = 1) -> tuple[int, str]:
        """Its exit code and stderr, when it gets so many signals at its third case."""
        with subprocess.Popen([*self.command, "hangs"], stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr
            while not (self.folder / "third").exists():
                assert running.poll() is None, running.stderr.read()
                threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
            heard = ""
            for _ in range(times):
                running.send_signal(signal.SIGINT)
                while times > 1 and "stopping" not in heard:
                    heard += running.stderr.readline()
            rest = running.communicate(timeout=100)[1]
            return running.returncode, heard + rest

    @property
    def runs(self) -> list[str]:
        """The cases that were begun."""
        return (self.folder / "log").read_text(encoding="utf-8").split()


@pytest.fixture
def program(pool: str, tmp_path: Path, request: pytest.FixtureRequest) -> Program:
    return Program(tmp_path, request.getfixturevalue("ray_cluster").address if pool == "ray" else "")


def test_what_has_finished_is_stored(program: Program):
    """One line says how much that is; nothing is saved, and the same call runs the rest."""
    code, said = program.interrupted()
    last = said.splitlines()[-1]
    assert code == 1
    assert "trunchray: stopping: storing what is finished …" in said
    assert "KeyboardInterrupt" not in said
    assert last.endswith("Interrupted: stopped: 2 of 4 runs of 'stopped' are stored; the same call continues")
    assert not (program.folder / "last.json").exists()
    (run,) = (program.folder / "runs").glob("stopped-*")
    assert blocks(read_status(str(run)))[0] == "nobody drives it; `evaluate(name='stopped', …)` continues it"
    again = subprocess.run(program.command, capture_output=True, text=True, timeout=100, check=False)
    assert again.returncode == 0, again.stderr
    assert (len(program.runs), len(set(program.runs))) == (5, 4)


TWO = """
import os, signal, sys, time
from trunchray import EvalFailure, evaluate

signal.signal(signal.SIGINT, signal.default_int_handler)

def task(number):
    open(f"begun-{number}", "w").close()
    while not os.path.exists("gate"):
        time.sleep(0.05)
    return number

for number in range(2):
    data = [{"input": number, "expectedOutput": number + int(sys.argv[1])}]
    try:
        evaluate(name=f"call {number}", task=task, data=data)
    except EvalFailure:
        print("next")
"""


@pytest.mark.parametrize(("off", "verdict"), [("0", "passed"), ("1", "failed")])
def test_a_program_ends_though_the_last_cases_had_ended(off: str, verdict: str, tmp_path: Path):
    """What was under way is told and stored; the next call is not begun, whether the gate is passed or not.

    The same program, given again, goes on from there.
    """
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    command = [sys.executable, "two.py", off]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        while not (tmp_path / "begun-0").exists():
            assert running.poll() is None, running.stderr.read()
            threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
        running.send_signal(signal.SIGINT)
        while "stopping" not in running.stderr.readline():
            assert running.poll() is None
        (tmp_path / "gate").touch()
        told, said = running.communicate(timeout=100)
    assert f"call 0 {verdict}" in told
    assert "KeyboardInterrupt: all cases of 'call 0' had been run; runs/call-0-" in said
    assert not (tmp_path / "begun-1").exists()

    (tmp_path / "begun-0").unlink()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert f"call 0 {verdict}" in again.stdout
    assert not (tmp_path / "begun-0").exists()
    assert f"call 1 {verdict}" in again.stdout


def test_the_second_time_it_ends_at_once(tmp_path: Path):
    """Whoever presses Ctrl-C twice does not want to wait."""
    code, said = Program(tmp_path, "").interrupted(times=2)
    assert code in (1, -signal.SIGINT)
    assert said.rstrip().endswith("KeyboardInterrupt")


SPEC = """
import time
from pathlib import Path

def task(number):
    if number:
        Path("begun").touch()
        time.sleep(600)
    return number

evaluation = {
    "name": "stopped",
    "task": task,
    "data": [{"input": number, "expectedOutput": number} for number in range(4)],
    "concurrency": 1,
    "timeout": "20m",
}
"""


LAST = """
import os, time
from pathlib import Path

def task(number):
    Path("begun").touch()
    while not os.path.exists("gate"):
        time.sleep(0.05)
    return number

evaluation = {"name": "last", "task": task, "data": [{"input": 1, "expectedOutput": EXPECTED}]}
"""


@pytest.mark.parametrize(("expected", "code"), [(1, 0), (2, 1)])
def test_a_command_that_is_interrupted_as_the_last_cases_end_has_a_result(expected: int, code: int, tmp_path: Path):
    """All is run and paid for: it is told as ever, and the exit code is that of the gate."""
    (tmp_path / "last.py").write_text(LAST.replace("EXPECTED", str(expected)), encoding="utf-8")
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    starts = "from trunchray.cli.main import main; main()"
    command = [sys.executable, "-c", heeds + starts, "eval", "run", "last.py", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not (tmp_path / "begun").exists():
            assert running.poll() is None, running.communicate()
            threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
        running.send_signal(signal.SIGINT)
        (tmp_path / "gate").touch()
        told, said = running.communicate(timeout=100)
    assert running.returncode == code, said
    assert json.loads(told)["scorers"]["matches"]["passes"] == 2 - expected


PLUGINS = ("-p", "trunchray.frontends.evaluation.pytest_plugin", "-p", "no:cacheprovider")


@pytest.mark.parametrize("command", [["trunchray.cli.main", "eval", "run"], ["pytest", *PLUGINS, "--trunchray-evals"]])
def test_commands_say_how_far_they_came(command: list[str], tmp_path: Path):
    """As a script does: how much is stored, of how much."""
    file = tmp_path / "stopped.py"
    file.write_text(SPEC, encoding="utf-8")
    heeds = "import signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    starts = "sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    with subprocess.Popen(
        [sys.executable, "-c", heeds + starts, *command, str(file)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        while not (tmp_path / "begun").exists():
            assert running.poll() is None, running.communicate()[0]
            threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=100)[0]
    assert running.returncode == (3 if "run" in command else pytest.ExitCode.INTERRUPTED)
    assert re.search(r"stopped: \d of 4 runs of 'stopped' are stored; the same call continues", said)
    assert "Traceback" not in said
