"""view, as people and programs start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support.commands import CommandLine
from support.made_runs import make_run
from trunchray.adapters.releases import StoredRelease

pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'trunchray[view]'`")


@pytest.fixture
def run(here: Path, release: StoredRelease) -> str:
    return make_run(here / "run", release, {"x": list("pppfpefp")})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(run: str, here: Path, number: signal.Signals):
    """It says where it is, answers there, changes nothing in the run, and ends with 0."""
    before = sorted(path for path in Path(run).rglob("*"))
    command = [sys.executable, "-m", "trunchray.cli.main", "view", run, "--port", "0", "--case", "c3", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=here) as process:
        assert process.stdout
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        url = json.loads(said)["url"]
        assert url.endswith("/case?id=c3")
        address = url.removesuffix("/case?id=c3")
        with urllib.request.urlopen(f"{address}/api/trials?outcome=failed") as response:
            assert json.load(response)["total"] == 2
        process.send_signal(number)
        assert process.wait(timeout=60) == 0
    assert sorted(path for path in Path(run).rglob("*")) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_before_it_serves(run: str, here: Path, number: signal.Signals):
    """Whoever ends it while it still reads the runs has lost nothing, which is no error."""
    Path(run, "run.json").unlink()
    os.mkfifo(Path(run, "run.json"))
    command = [sys.executable, "-m", "trunchray.cli.main", "view", run, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=here) as process:
        with Path(run, "run.json").open("w", encoding="utf-8"):  # as soon as it reads there
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


def test_without_duckdb_it_says_what_to_install(run: str, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """The extra that brings it, before anything else."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "pip install 'trunchray[view]'" in trunchray.refused("view", run)


def test_what_cannot_be_viewed_is_refused(run: str, trunchray: CommandLine):
    """No run, no such case, no such address."""
    assert "holds no run.json" in trunchray.refused("view", "nowhere")
    assert "no case 'c9'" in trunchray.refused("view", run, "--case", "c9")
    assert "cannot listen on 203.0.113.7:0" in trunchray.refused("view", run, "--host", "203.0.113.7", "--port", "0")
