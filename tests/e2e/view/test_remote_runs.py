"""Runs that are kept in an object store, looked at from this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.made_runs import make_run
from support.releases import make_release
from support.s3 import Bucket
from trunchray.engine.launch import report_again
from trunchray.frontends.viewer.viewer import Viewer

pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'trunchray[view]'`")


def test_a_run_on_s3_is_shown_as_one_on_a_disk(s3: Bucket, tmp_path: Path):
    """From its parts, which are checked as they are fetched, and from the results of its report."""
    release = make_release(f"{s3.uri}/releases", 4)
    outcomes = {"x": list("ppfe"), "y": list("pfp-")}
    here, there = (make_run(f"{place}/run", release, outcomes) for place in (str(tmp_path), f"{s3.uri}/runs"))
    shown: list[Any] = []
    for number, uri in enumerate((here, there, there)):
        if number == 2:
            report_again(there, pytest.fail)
        scratch = tmp_path / f"scratch-{number}"
        scratch.mkdir()
        with Viewer([uri], scratch, private=False) as viewer:
            answer = viewer.answer({"run": "run", "id": "c2", "model": "x", "attempt": "1"})
            shown.append((viewer.trials({}), viewer.trials({"text": "NO ANSWER"}), answer))
        fetched = {path.suffix for path in scratch.rglob("*") if path.is_file()}
        assert fetched == (set() if uri == here else {".parquet"})
    assert shown[0] == shown[1] == shown[2]
    assert shown[0][0]["total"] == 7
    assert shown[0][1]["total"] == 1
