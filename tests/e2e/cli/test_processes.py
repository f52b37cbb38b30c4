"""What only a process can show: signals, pipes, two commands at once, and how fast help comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from support.commands import CommandLine
from support.processes import descendants
from support.provider import CountingProvider
from support.releases import make_release
from trunchray.adapters.releases import StoredRelease
from trunchray.cli.main import app

TRUNCHRAY = [sys.executable, "-m", "trunchray.cli.main"]
CASES = 60


def start(*argv: object, env: dict[str, str] | None = None, through: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    command = [*through, *TRUNCHRAY, *map(str, argv)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def wait(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def test_the_version():
    """`--version` is for bug reports."""
    out = subprocess.run([*TRUNCHRAY, "--version"], capture_output=True, check=True).stdout
    assert out == f"trunchray {version('trunchray')}\n".encode()


def test_help_loads_little():
    """Help comes at once: none of what commands need is loaded before one is given."""
    code = (
        "import sys; from trunchray.cli.main import run_command; run_command(['run', '--help']);"
        "heavy = {'ray', 'pyarrow', 'fsspec', 'aiohttp', 'numpy', 'rich', 'yaml', 'trunchray.core.case'};"
        "print(*sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"Example: trunchray run " in done.stdout
    assert done.stderr.split() == []


def commands() -> Iterator[str]:
    """All there are, as they are given."""
    group: Any = get_command(app)
    for name, command in group.commands.items():
        below = getattr(command, "commands", None)
        yield from [f"{name} {one}" for one in below] if below else [name]


@pytest.mark.parametrize("command", [*commands()])
def test_every_command_has_an_example(command: str, trunchray: CommandLine):
    """Help shows how the command is given, and that it can speak JSON."""
    outcome = trunchray(*command.split(), "--help")
    assert outcome.code == 0
    assert f"Example: trunchray {command} " in outcome.out
    assert "--json" in outcome.out


def test_help_without_a_command(trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """Somebody who knows nothing yet gets the overview, which is not cut where a terminal is narrow."""
    monkeypatch.setenv("COLUMNS", "80")
    assert trunchray().out == trunchray("--help").out
    assert "mock-server" in trunchray().out
    assert "..." not in trunchray().out.partition("Commands:")[2]


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_reader_that_leaves_early(json: list[str], here: Path):
    """`trunchray inspect … --cases | head -1` ends quietly and well."""
    stored = make_release(here, 3000)
    with start("inspect", stored.uri, "--cases", *json) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_full_disk(release: StoredRelease):
    """Output that could not be written is an error, said once."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*TRUNCHRAY, "inspect", release.uri], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3
    assert done.stderr == b"error: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("argv", [[], ["--help"], ["run", "-h"], ["--version"]])
def test_help_on_a_full_disk(argv: list[str]):
    """It is no bug that help cannot be written, either; where nobody listens, nothing is wrong."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*TRUNCHRAY, *argv], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (3, b"error: cannot write to stdout: No space left on device\n")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *TRUNCHRAY, *argv], stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_a_compilation(number: signal.Signals, here: Path):
    """Nothing is left behind: no release, no process, and of temporary files no more than the empty folder for them.

    That is so for what a script put into the background, too, whose shell has it ignore SIGINT.
    """
    (here / "b" / "evals").mkdir(parents=True)
    (here / "b" / "evals" / "a.ts").write_text("await new Promise(() => setInterval(() => {}, 1000));")
    temporary = here / "tmp"
    temporary.mkdir()
    background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    process = start("compile", "b", "--json", env=os.environ | {"TMPDIR": str(temporary)}, through=background)
    wait(lambda: descendants(process.pid) and any(temporary.iterdir()), process)
    below = descendants(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (3, b"error: interrupted\n")
    assert b'"type": "Interrupted"' in out
    assert list(temporary.glob("*/*")) == []
    assert not (here / "releases").exists()
    deadline = time.monotonic() + 60
    while any(map(executes, below)):
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def test_stopping_a_run_before_it_has_begun(here: Path):
    """It says that nothing has, so that nobody looks for what is stored."""
    (here / "b" / "evals").mkdir(parents=True)
    (here / "b" / "evals" / "a.ts").write_text("await new Promise(() => setInterval(() => {}, 1000));")
    process = start("run", "b", "--model", "mock/echo")
    wait(lambda: descendants(process.pid), process)
    process.terminate()
    _, err = process.communicate(timeout=60)
    said = b"error: interrupted before anything had begun; the same command starts it\n"
    assert (process.returncode, err) == (3, said)
    assert not (here / "runs").exists()


def executes(pid: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    return False


@pytest.fixture
def slow_run(here: Path) -> Path:
    """The config of a run that takes a while; the provider is started by the test."""
    make_release(here / "releases", CASES)
    return here / "run.yaml"


def write(path: Path, provider: CountingProvider) -> None:
    release = next((path.parent / "releases").iterdir())
    pacing = {"max_in_flight": 2, "max_retries": 0}
    models = [{"id": "local/m", "name": "m", "base_url": provider.base_url, "pacing": pacing}]
    config = {"release": str(release), "run_id": "r", "pool": "local", "shard_size": 10, "models": models}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_looking_on_while_a_run_is_driven(slow_run: Path, trunchray: CommandLine):
    """Status and report of a run that another process drives disturb it in nothing; a second driver is sent away."""
    with CountingProvider(latency=0.1) as provider:
        provider.reach = CASES // 2
        write(slow_run, provider)
        driver = start("run", slow_run, "--json")
        wait(provider.reached.is_set, driver)
        watch = start("status", "runs/r", "--watch", "--json")
        status = trunchray("status", "runs/r", "--json").json
        report = trunchray("report", "runs/r", "--json")
        said = trunchray.refused_while_others_write("run", slow_run)
        out, err = driver.communicate(timeout=60)
        assert driver.returncode == 0, err
    seen = [json.loads(line) for line in watch.communicate(timeout=60)[0].splitlines()]
    assert watch.returncode == 0
    assert [line["state"] for line in seen if line["state"] != "running"] == ["complete"]
    assert seen[-1]["committed"]["agents"][0]["counts"]["passed"] == CASES
    assert status["state"] == "running"
    assert f":{driver.pid}:" in status["driver"]
    assert status["latest"]["agents"][0]["planned"] == CASES
    assert report.code == 0
    assert not report.json["complete"]
    assert "another process drives this run: " in said
    assert "--takeover take it over" in said
    assert provider.asked.total() == CASES
    assert b'"complete": true' in out
    assert "r: complete" in trunchray("status", "runs/r").out


def test_a_run_whose_driver_was_killed(slow_run: Path, trunchray: CommandLine):
    """Status says that nobody drives and how to go on, report counts what there is, and going on loses nothing."""
    with CountingProvider(latency=0.1) as provider:
        provider.reach = CASES // 2
        write(slow_run, provider)
        driver = start("run", slow_run)
        wait(provider.reached.is_set, driver)
        driver.kill()
        driver.communicate()
        status = trunchray("status", "runs/r")
        report = trunchray("report", "runs/r", "--json").json
        assert "r: incomplete\n" in status.out
        assert "continues it" in status.out
        assert 0 < report["passed"] < CASES
        assert trunchray("run", slow_run, "--json").json["passed"] == CASES


def test_a_run_that_nobody_reads(slow_run: Path):
    """A run whose terminal has gone goes on to its end."""
    with CountingProvider(latency=0.02) as provider:
        write(slow_run, provider)
        driver = start("run", slow_run)
        assert driver.stdout
        assert driver.stderr
        driver.stdout.close()
        driver.stderr.close()
        assert driver.wait(60) == 0
    assert (slow_run.parent / "runs" / "r" / "report" / "summary.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_mock_server_ends_when_told(number: signal.Signals):
    """It says where it listens, and its end is no error."""
    process = start("mock-server", "--port", 0, "--json")
    assert process.stdout
    lines = iter(process.stdout.readline, b"")
    assert any(b'"base_url": "http://127.0.0.1:' in line for line in lines)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
