"""What an evaluation is compared with, what it leaves behind, and what it prints about that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.s3 import Bucket
from trunchray import EvalFailure, EvaluationReport, ScriptedJudge, StoreError, UsageError, evaluate
from trunchray.core.decisions import Fallback

CASES = [{"input": name, "expectedOutput": name} for name in "abc"]


def echo(value: str) -> str:
    return value


def not_b(value: str) -> str:
    return "?" if value == "b" else value


def run(folder: Path, task: Any = echo, **given: Any) -> EvaluationReport:
    settings: dict[str, Any] = {"name": "e", "task": task, "data": CASES, "quiet": True, "pool": "local"}
    return evaluate(**{**settings, "out": str(folder / "runs"), **given})


def passes(path: Path) -> dict[str, bool]:
    """What a saved file says of each case."""
    return {name: checks["matches"]["pass"] for name, checks in json.loads(path.read_bytes())["cases"].items()}


def test_what_is_compared_with_is_read_before_the_first_run(tmp_path: Path):
    """Whatever becomes of the file while the task runs."""
    path = tmp_path / "last.json"
    run(tmp_path, save=path)

    def overwrites(value: str) -> str:
        path.write_text("no JSON any more")
        return not_b(value)

    with pytest.raises(EvalFailure, match="1 drop, 0 allowed: 'b'"):
        run(tmp_path, overwrites, compare=path, allow={"matches": 1})


@pytest.mark.parametrize("before", ["no JSON", '{"format": 1}', None], ids=["garbage", "another format", "a baseline"])
def test_what_is_saved_is_never_read(tmp_path: Path, before: str | None):
    """Without `compare` the file is replaced, whatever it holds, and nothing is a drop."""
    path = tmp_path / "last.json"
    if before is None:
        run(tmp_path, save=path)
    else:
        path.write_text(before)
    report = run(tmp_path, not_b, save=path, allow={"matches": 1})
    assert (report.scorers["matches"].drops, any(report.flips.to_json().values())) == (None, False)
    assert passes(path) == {"a": True, "b": False, "c": True}


def test_an_evaluation_that_is_refused_leaves_the_file_alone(tmp_path: Path):
    """What was saved before stays, as nothing has taken its place."""
    path = tmp_path / "last.json"
    run(tmp_path, save=path)
    before = path.read_bytes()
    for wrong in ({"timeout": "soon"}, {"compare": tmp_path}, {"data": []}):
        with pytest.raises(UsageError):
            run(tmp_path, not_b, save=path, **wrong)
    assert path.read_bytes() == before


def test_what_could_not_be_saved_is_paid_for_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """All is told by then; the same call, which may name another place, goes on with what came of it."""
    path, log = tmp_path / "saved" / "last.json", tmp_path / "log"

    def task(value: str) -> str:
        path.parent.write_text("a file where a folder is to be made")
        with log.open("a") as file:
            file.write(value)
        return value

    with pytest.raises(StoreError):
        run(tmp_path, task, save=path, quiet=False)
    told = capsys.readouterr().out
    path.parent.unlink()
    report = run(tmp_path, task, save=path, quiet=False)
    assert capsys.readouterr().out == told
    assert Path(report.run, "experiment.json").read_bytes() == path.read_bytes() == report.experiment.to_bytes()
    assert sorted(log.read_text()) == [*"abc"]

    path.unlink()
    path.parent.rmdir()
    assert run(tmp_path, task).run.endswith("-002")
    assert sorted(log.read_text()) == [*"aabbcc"]


@pytest.mark.parametrize("place", ["/proc/new/e.json", "s3://no-such-bucket-anywhere/e.json"])
def test_nothing_is_run_for_a_place_that_cannot_be_written(tmp_path: Path, s3: Bucket, place: str):
    """A mistyped place is found out before anything is paid for, also by those who may write everywhere."""
    with pytest.raises(UsageError, match=r"^save: .*cannot be written: "):
        run(tmp_path, save=place)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("out", ["/proc/runs", "file", "file/runs"])
def test_nothing_is_run_where_runs_cannot_be_kept(tmp_path: Path, out: str):
    """It would be an error of the store, after which the same call could never continue."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^out: .* cannot keep runs: no file can be made in .*name another folder"):
        run(tmp_path, out=tmp_path / out)


def test_what_is_compared_with_is_never_written(tmp_path: Path):
    """Only `save` says where to."""
    path = tmp_path / "last.json"
    run(tmp_path, save=path)
    before = path.read_bytes()
    run(tmp_path, not_b, compare=path, allow={"matches": {"miss": 1, "drop": 1}})
    assert path.read_bytes() == before


def test_errors_in_what_is_saved_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """How many results are no answers, but came of errors of a task or a judge; also where the summary is hidden."""

    def task(value: str) -> str:
        return value if value != "b" else str(1 / 0)

    path, cases = tmp_path / "last.json", [{"input": value} for value in "abc"]
    for judge, said in (
        (ScriptedJudge({"nice": 0.9}), ""),
        (ScriptedJudge(Fallback("network")), " and 2 questions that the judge did not decide"),
    ):
        with pytest.raises(EvalFailure):
            run(tmp_path, task, data=cases, scorers={"nice": "Is it?"}, judge=judge, save=path)
        told = f"trunchray: {path} counts as misses 1 run that failed{said}: before you compare with it, "
        assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_file_that_is_not_there_yet_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool):
    """After the summary, or on stderr where `quiet` hides that; once there is one, nothing is said of it."""
    path = tmp_path / "last.json"
    note = f"no drops were counted: there is no file {str(path)!r} yet\n"
    for told in (note, ""):
        report = run(tmp_path, compare=path, save=path, quiet=quiet)
        printed = capsys.readouterr()
        folder = Path(report.run).relative_to(Path.cwd()) if Path(report.run).is_relative_to(Path.cwd()) else report.run
        assert printed.out == ("" if quiet else f"{report.text()}{told}run {folder}\n")
        assert printed.err == (told if quiet else printed.err)
        assert report.scorers["matches"].drops == (None if told else 0)
