"""retry and regrade, as people and programs meet them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import CommandLine
from support.made_runs import make_run
from support.provider import CountingProvider
from support.releases import make_release
from support.runs import rows
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.launcher import sandbox_level
from trunchray.engine.progress import Snapshot

HOSTILE = "[red]no[/red] \x1b[2J :smile:"


@pytest.fixture
def strict(here: Path) -> StoredRelease:
    """The release that grades only answers about an even number as right."""
    return make_release(here / "strict", 8, check=lambda n: {"kind": "contains", "expected": f"{n % 2 or n}"})


@pytest.fixture
def run(here: Path, release: StoredRelease, trunchray: CommandLine) -> str:
    """Eight answers of a model that echoes, all of them right."""
    assert trunchray("run", release.uri, "--model", "mock/echo", "--run-id", "r").code == 0
    return "runs/r"


def test_flips_for_people(run: str, strict: StoredRelease, trunchray: CommandLine):
    """How many verdicts changed, by model and eval, each with its case, and where all of them are."""
    outcome = trunchray("regrade", run, "--release", strict.uri)
    assert outcome.code == 0, outcome.err
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "3 of 8 verdicts have changed" in lines
    head = lines.index("model / eval passed → failed")
    assert lines[head + 1] == "mock/echo / odd 3"
    assert sum(line.startswith("c") and "passed → failed" in line for line in lines) == 3
    assert lines[-1].endswith("/report/report.html")
    assert any(line.startswith("flips ") and line.endswith("/report/flips.jsonl") for line in lines)
    again = trunchray("regrade", run)
    assert "no verdict of 8 has changed" in again.out


def test_flips_for_programs(run: str, strict: StoredRelease, trunchray: CommandLine):
    """`regrade --json` gives the report, where it is, the flips and what was left out; the rest of the tools take the
    regrade as a run."""
    value = trunchray("regrade", run, "--release", strict.uri, "--name", "strict", "--json").json
    assert {"run", "models", "complete", "uri", "flips", "left_out"} <= value.keys()
    assert (value["run"], value["passed"], value["failed"]) == ("strict", 5, 3)
    flips = value["flips"]
    assert (flips["compared"], flips["flipped"], len(flips["flips"])) == (8, 3, 3)
    assert flips["counts"] == [{"model": "mock/echo", "eval_id": "odd", "old": "passed", "new": "failed", "count": 3}]
    assert flips["flips"][0].keys() == {"model", "eval_id", "case_id", "attempt", "old", "new"}
    assert value["left_out"]["changed"] == {"count": 0, "cases": []}
    uri = value["uri"]
    compared = trunchray("compare", run, uri, "--json")
    assert compared.code == 0, compared.err
    assert "strict: complete" in trunchray("status", uri).out
    assert trunchray("report", uri, "--json").json["models"] == value["models"]
    assert trunchray("gate", uri, "--allow", "each=8").code == 0
    assert len(trunchray("export", uri, "--to", "jsonl").out.splitlines()) == 8
    assert len(Path(uri, "report", "flips.jsonl").read_text().splitlines()) == 3


FLIPPED = ["c3", "c5", "c7"]
"""Of the run that `strict` regrades."""


@pytest.mark.parametrize("way", ["source first", "regrade first", "two regrades", "both moved"])
def test_a_regrade_is_compared_case_by_case(
    way: str, here: Path, run: str, strict: StoredRelease, trunchray: CommandLine
):
    """With the run and with other regrades of it: what was asked is the same, and what the graders changed is named."""
    assert trunchray("regrade", run, "--release", strict.uri, "--name", "strict").code == 0
    assert trunchray("regrade", run, "--name", "same").code == 0
    if way == "both moved":
        Path(run).rename(here / "moved")
        run = "moved"
    before, after = (f"{run}/regrades/same" if way == "two regrades" else run), f"{run}/regrades/strict"
    pair, flips = ((after, before), "fixed") if way == "regrade first" else ((before, after), "broke")
    (found,) = trunchray("compare", *pair, "--json").json["comparisons"]
    assert (found["pass_rate"]["cases"], found["changed"]["count"], found["added"]["count"]) == (8, 0, 0)
    assert found[flips] == {"count": 3, "cases": FLIPPED}
    (note,) = (note for note in found["notes"] if "graders differ" in note)
    assert "the answers are the same: compared are the 8 cases that ask the same, 8 of them graded by a changed" in note
    told = trunchray("compare", *pair).out
    assert f"{flips} (3): c3, c5, c7" in told
    (line,) = (line for line in told.splitlines() if line.startswith("all "))
    assert line.split()[-2:] == ["–", "–"]  # what answers took that both have


def test_a_gate_counts_drops_of_a_regrade(run: str, strict: StoredRelease, trunchray: CommandLine):
    """Against the run that it regrades: the flips are drops, and a note says that the answers are the same."""
    uri = trunchray("regrade", run, "--release", strict.uri, "--json").json["uri"]
    allow = ("--compare", run, "--allow", "overall=drop:3", "--json")
    allowed = trunchray("gate", uri, *allow)
    assert (allowed.code, any("the answers are the same" in note for note in allowed.json["notes"])) == (0, True)
    assert trunchray("gate", uri, "--compare", run, "--allow", "overall=drop:2").code == 1


def test_the_same_release_grades_alike(run: str, trunchray: CommandLine):
    """A regrade by the run's own release is compared with it, and the note says that the graders are the same."""
    uri = trunchray("regrade", run, "--json").json["uri"]
    (found,) = trunchray("compare", run, uri, "--json").json["comparisons"]
    assert (found["pass_rate"]["cases"], found["broke"]["count"]) == (8, 0)
    assert any("one release graded both" in note for note in found["notes"])


def test_walls_can_be_asked_for(run: str, trunchray: CommandLine):
    """`--require landlock` grades where the kernel has it, and nothing at all where it has not."""
    outcome = trunchray("regrade", run, "--require", "landlock")
    if sandbox_level() == "landlock+seccomp":
        assert outcome.code == 0, outcome.err
    else:
        assert (outcome.code, "'landlock' cannot be met on" in outcome.err) == (2, True)
        assert not list(Path(run, "regrades").rglob("*.parquet"))


def test_cases_that_are_left_out(run: str, here: Path, trunchray: CommandLine):
    """They are counted and named, with the reason; the others are graded."""
    other = make_release(here / "other", 10, prompt=lambda n: "another" if n == 3 else f"prompt {n}")
    said = trunchray("regrade", run, "--release", other.uri)
    assert said.code == 0
    assert "left out, because asked otherwise by the new release: 1 case (c3)" in said.err
    assert "left out, because new, so that nobody has answered: 2 cases (c8, c9)" in said.err
    assert "no verdict of 7 has changed" in said.out


def test_a_benchmark_is_compiled(here: Path, trunchray: CommandLine):
    """A grader that was mended in the repository grades what the one before had graded."""
    assert trunchray("init", "mine").code == 0
    assert trunchray("run", "mine", "--model", "mock/echo", "--run-id", "r").code in (0, 3)
    outcome = trunchray("regrade", "runs/r", "--release", "mine", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["flips"]["flipped"] == 0


def config(provider: CountingProvider, release: StoredRelease) -> dict[str, Any]:
    model = {"id": "local/m", "name": "m", "base_url": provider.base_url, "pacing": {"max_retries": 0}}
    return {"release": release.uri, "run_id": "r", "shard_size": 4, "models": [model]}


def test_a_retry(here: Path, release: StoredRelease, trunchray: CommandLine):
    """It needs no config, exits 3 while errors are left and 0 once none is, and says how many rows came of it."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 1": 503, "prompt 2": 503}
        Path("run.yaml").write_text(yaml.safe_dump(config(provider, release)), encoding="utf-8")
        assert trunchray("run", "run.yaml").code == 3
        Path("run.yaml").unlink()
        provider.failing = {"prompt 2": 503}
        first = trunchray("retry", "runs/r", "--json")
        assert first.code == 3
        assert "1 of 2 errors are left whose cause may be gone; the same command asks them again" in first.err
        assert (first.json["error"], first.json["models"][0]["retried"]) == (1, 2)
        provider.failing = {}
        last = trunchray("retry", "runs/r", "--model", "m")
        assert last.code == 0
        assert "m: 2 rows from retries" in last.out
        asked = provider.asked.total()
        nothing = trunchray("retry", "runs/r")
        assert (nothing.code, provider.asked.total()) == (0, asked)
        assert "nothing to retry" in nothing.err
        assert "m: 2 rows from retries" in nothing.out


def test_a_retry_may_cost_too_much(here: Path, release: StoredRelease, trunchray: CommandLine):
    """What it would spend is confirmed like a run's, and a budget that cannot be kept is refused."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 1": 503, "prompt 2": 503}
        asked = config(provider, release)
        asked["models"][0]["price"] = {"input": 1e6, "output": 1e6}
        Path("run.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
        assert trunchray("run", "run.yaml", "--yes").code == 3
        before = provider.asked.total()
        said = trunchray.refused("retry", "runs/r")
        assert "2 trials are expected to cost about $20.00" in said
        assert "give --yes to go on, or limit it with --budget-usd 10" in said
        assert provider.asked.total() == before
        limited = trunchray("retry", "runs/r", "--budget-usd", "0.0001")
        assert limited.code == 3
        assert "the budget is reached, a larger one goes on" in limited.err
        assert provider.asked.total() == before
        provider.failing = {}
        assert trunchray("retry", "runs/r", "--yes").code == 0


def test_a_retry_keeps_to_the_budget_of_the_run(here: Path, release: StoredRelease, trunchray: CommandLine):
    """What the run may cost holds for retries of it too, all commands together, unless they are told otherwise."""
    with CountingProvider() as provider:
        provider.failing = {f"prompt {n}": 503 for n in (1, 2, 3)}
        asked = config(provider, release)
        asked["models"][0]["price"] = {"input": 1e6, "output": 1e6}
        Path("run.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
        assert trunchray("run", "run.yaml", "--yes").code == 3
        assert trunchray("run", "run.yaml", "--yes", "--budget-usd", "75").code == 3
        provider.failing = {}
        limited = trunchray("retry", "runs/r", "--yes")
        assert (limited.code, "the budget is reached" in limited.err) == (3, True), limited.err
        assert sum(row["cost_usd"] or 0 for row in rows(Path("runs", "r"))) <= 75
        assert trunchray("retry", "runs/r", "--yes", "--budget-usd", "200").code == 0
        told = Snapshot.read(RunFolder("runs/r").progress())
        assert told is not None
        assert told.budget.usd == 75


def test_nothing_to_grade_again(run: str, trunchray: CommandLine):
    """Without an error of grading, `--only errors` says so and shows the report."""
    outcome = trunchray("regrade", run, "--only", "errors")
    assert outcome.code == 0
    assert "nothing to grade again" in outcome.err
    assert trunchray("regrade", run, "--only", "errors", "--json").json["passed"] == 8


def test_an_evaluator_that_fails(here: Path, run: str, trunchray: CommandLine):
    """What could not be graded is an error, counted among the flips; the command exits 3 and can be given again."""
    broken = make_release(
        here / "broken",
        8,
        check=lambda n: {"kind": "custom", "evaluatorKey": "e#default"} if n < 2 else {"kind": "non_empty"},
        evaluator=b'export default { evaluate: () => { throw new Error("'
        + HOSTILE.replace("\x1b", "").encode()
        + b'") } }',
    )
    outcome = trunchray("regrade", run, "--release", broken.uri)
    assert outcome.code == 3
    assert "2 answers could not be graded" in outcome.err
    assert "[red]no[/red]" in outcome.out
    assert "passed → error" in outcome.out
    uri = f"{run}/regrades/regrade-{broken.release.digest[:12]}"
    again = trunchray("regrade", uri, "--only", "errors", "--json")
    assert again.code == 3
    assert (again.json["flips"]["flipped"], again.json["flips"]["ungraded"]) == (0, 2)
    assert trunchray("retry", uri).code == 0


def test_the_way_on_from_an_evaluator_that_fails(here: Path, release: StoredRelease, trunchray: CommandLine):
    """Asking again mends nothing: run, retry and the refusal of the mended release all name the regrade that does."""
    throws = make_release(
        here / "throws",
        8,
        check=lambda n: {"kind": "custom", "evaluatorKey": "e#default"} if n < 2 else {"kind": "non_empty"},
        evaluator=b"export default { evaluate: () => { throw new Error('no') } }",
    )
    asked = ("--model", "mock/echo", "--run-id", "r")
    for _ in range(2):
        ended = trunchray("run", throws.uri, *asked)
        said = " ".join(ended.err.split())
        assert (ended.code, "the same command asks again" in said) == (3, False)
        assert "2 answers could not be graded, which asking again does not mend" in said
        assert f"`trunchray regrade {here}/runs/r --release PATH` grades them" in said
    retried = trunchray("retry", "runs/r")
    assert retried.code == 0
    assert "`trunchray regrade runs/r --release PATH` grades them" in " ".join(retried.err.split())
    refusal = trunchray.refused("run", release.uri, *asked)
    assert f"`trunchray regrade {here}/runs/r --release {release.uri}` grades the stored answers" in refusal
    assert trunchray("regrade", "runs/r", "--release", release.uri, "--json").json["passed"] == 8


def test_old_runs_have_no_new_columns(here: Path, release: StoredRelease, trunchray: CommandLine):
    """Errors that providers made stay errors in a regrade, and are no failure of grading."""
    made = make_run(here / "made", release, {"a": ["p", "f", "e", "p", "p", "p", "-", "p"]})
    outcome = trunchray("regrade", made, "--json")
    assert outcome.code == 0, outcome.err
    assert "7 of 8 trials have rows that count" in outcome.err
    (model,) = outcome.json["models"]
    assert (model["passed"], model["error"], model["not_run"]) == (6, 1, 1)
    assert model["not_run_reason"] == "no stored answer"
    assert outcome.json["flips"]["counts"] == [
        {"model": "a", "eval_id": "odd", "old": "failed", "new": "passed", "count": 1}
    ]
    retried = trunchray("retry", outcome.json["uri"])
    assert retried.code == 3
    assert f"no model is asked for a regrade: retry {made}, then" in " ".join(retried.err.split())


def test_answers_that_are_lost(run: str, trunchray: CommandLine):
    """Answers in damaged parts of the run cannot be graded: the command says how many, and exits 3."""
    for part in Path(run).glob("parts/*/*.parquet"):
        part.write_bytes(b"torn")
    outcome = trunchray("regrade", run)
    assert outcome.code == 3
    assert "missing or damaged, the answers there are not graded" in outcome.err
    assert "8 answers are not graded" in outcome.err


@pytest.mark.parametrize("command", [["retry"], ["regrade"], ["regrade", "--only", "errors"]])
def test_bad_runs(command: list[str], run: str, trunchray: CommandLine):
    """No run there, or no such model: nothing is done, and what there is is named."""
    name, *options = command
    assert "no run at" in trunchray.refused(name, "runs/none", *options)
    assert "the runs in it are r" in trunchray.refused(name, "runs", *options)
    said = trunchray.refused(name, run, "--model", "mock/ech", *options)
    assert "run 'r' has no model 'mock/ech'" in said
    assert "mock/echo" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "errors", "--release", "x"], "leave out --release"),
        (["--only", "errors", "--name", "x"], "leave out --name"),
        (["--only", "failures"], "'failures' is not"),
        (["--name", "../x"], "--name '../x'"),
        (["--release", "nowhere"], "'nowhere' is neither"),
        (["--release", "runs/r"], "--release 'runs/r' is a run; give a release or a repository"),
    ],
)
def test_bad_options(options: list[str], message: str, run: str, trunchray: CommandLine):
    """What cannot be is refused before anything is written."""
    assert message in trunchray.refused("regrade", run, *options)
