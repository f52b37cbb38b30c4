"""export on stored runs, as people and programs meet it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.commands import CommandLine
from support.made_runs import make_run
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder

COUNTED = {"x": list("pppfpefp"), "y": list("pp-fp-fp")}
"""By case: one of x ends in an error, two of y are not run."""


@pytest.fixture
def run(here: Path, release: StoredRelease) -> str:
    return make_run(here / "run", release, COUNTED)


def test_every_format_has_every_counted_row_once(run: str, here: Path, trunchray: CommandLine):
    """8 rows of one model and 6 of the other: in one file, or in one for each model."""
    table = list(csv.DictReader(io.StringIO(trunchray("export", run, "--to", "csv").out)))
    lines = [json.loads(line) for line in trunchray("export", run, "--to", "jsonl").out.splitlines()]
    assert trunchray("export", run, "--to", "parquet", "-o", "out/rows.parquet").code == 0
    parquet = pq.read_table(here / "out" / "rows.parquet").to_pylist()
    keys = [row["trial_key"] for row in parquet]
    assert len(set(keys)) == 14
    assert [row["trial_key"] for row in table] == [row["trial_key"] for row in lines] == keys
    assert [row["outcome"] for row in lines].count("error") == 1
    for to in ("inspect", "openai-evals"):
        files = trunchray("export", run, "--to", to, "-o", "logs", "--json").json["files"]
        assert [file["rows"] for file in files] == [8, 6]
        assert all(Path(file["file"]).is_file() for file in files)


def test_the_log_of_inspect_is_whole(run: str, here: Path, trunchray: CommandLine):
    """JSON with a status, figures that are the report's, and a sample for each trial."""
    (file,) = trunchray("export", run, "--to", "inspect", "-o", "logs", "--model", "y", "--json").json["files"]
    log = json.loads((here / file["file"]).read_text(encoding="utf-8"))
    assert (log["version"], log["status"], log["results"]["total_samples"]) == (2, "cancelled", 8)
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == pytest.approx(4 / 6)
    assert [sample["scores"]["verdict"]["value"] for sample in log["samples"]].count("C") == 4


def test_the_log_of_openai_evals_begins_and_ends_as_it_should(run: str, here: Path, trunchray: CommandLine):
    """The spec first, the final report last, numbered events between."""
    (file,) = trunchray("export", run, "--to", "openai-evals", "-o", "logs", "--model", "x", "--json").json["files"]
    first, *events, last = map(json.loads, (here / file["file"]).read_text(encoding="utf-8").splitlines())
    assert first["spec"]["run_id"] == "run/x"
    assert [event["event_id"] for event in events] == list(range(len(events)))
    assert [event["data"]["correct"] for event in events if event["type"] == "match"].count(True) == 5
    assert last["final_report"]["errors"] == 1


def test_what_cannot_be_exported_is_refused(run: str, here: Path, trunchray: CommandLine):
    """No run, no such model, no place, a folder in place of a file: said in a line, and nothing is written."""
    assert "holds no run.json" in trunchray.refused("export", "nowhere", "--to", "csv")
    assert "did you mean" in trunchray.refused("export", run, "--to", "csv", "-o", "a.csv", "--model", "xx")
    assert "--out, a file" in trunchray.refused("export", run, "--to", "parquet")
    assert "--out, a folder" in trunchray.refused("export", run, "--to", "inspect")
    assert "no expected answers" in trunchray.refused("export", run, "--to", "csv", "--show-private")
    assert "name a file in it" in trunchray.refused("export", run, "--to", "csv", "-o", str(here))


def test_rows_that_cannot_be_read_are_left_out_and_named(run: str, here: Path, trunchray: CommandLine):
    """A damaged part takes its own rows along and no others."""
    receipt = next(iter(RunFolder(run).commits().values()))
    (here / "run" / receipt.parts[0].path).write_bytes(b"torn")
    outcome = trunchray("export", run, "--to", "jsonl")
    assert (outcome.code, len(outcome.out.splitlines())) == (0, 13)
    assert receipt.parts[0].path in outcome.err
    assert "left out" in outcome.err


def test_a_model_without_rows_has_no_log(here: Path, release: StoredRelease, trunchray: CommandLine):
    """It is said; an empty log would look like a result."""
    run = make_run(here / "half", release, {"x": list("pppppppp"), "y": list("--------")})
    outcome = trunchray("export", run, "--to", "inspect", "-o", "logs")
    assert outcome.code == 0
    assert "y has no counted row" in outcome.err
    assert len(list((here / "logs").iterdir())) == 1
