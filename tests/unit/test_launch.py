"""What is refused before a run has left anything behind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from support.made_runs import NOW, make_run
from support.releases import make_release
from support.runs import drive, question
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.engine.launch import is_finished, report_again
from trunchray.engine.progress import Snapshot
from trunchray.engine.progress import question as asked
from trunchray.errors import UsageError


def test_an_address_that_the_local_pool_would_not_use(tmp_path: Path):
    """Two settings that exclude each other are named, and no folder of a run is begun."""
    release = make_release(tmp_path / "releases", 1)
    spec = question(release, [ModelAgent(name="echo", model="mock/echo")])
    with pytest.raises(UsageError, match=r"address 'head:6379' names a Ray cluster, .* leave one out"):
        drive(spec, release, tmp_path / "runs", pool="local", address="head:6379")
    assert not (tmp_path / "runs").exists()


def test_a_run_is_finished_once_its_report_counts_all_its_rows(tmp_path: Path):
    """One that has lost a part since, or whose last report could not read one, is not, though its commits are whole."""
    release = make_release(tmp_path / "releases", 2)
    folder = RunFolder(make_run(tmp_path / "runs" / "r", release, {"m": "pf"}))
    spec = folder.spec()
    assert spec
    told = Snapshot(run_id="r", question=asked(spec), agents=(), at=NOW, final=True)
    folder.write_progress(told.model_dump(mode="json"))
    finished = partial(is_finished, spec, release, str(tmp_path / "runs"))
    assert not finished()
    warned: list[str] = []
    report_again(folder.uri, warned.append)
    assert finished()
    part = tmp_path / "runs" / "r" / folder.store.find("parts")[0]
    content = part.read_bytes()
    part.unlink()
    assert not finished()
    part.write_bytes(content[:-1])
    report_again(folder.uri, warned.append)
    assert (len(warned), finished()) == (1, False)
    part.write_bytes(content)
    report_again(folder.uri, warned.append)
    assert finished()
