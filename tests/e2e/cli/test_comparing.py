"""compare and gate on stored runs, as people and programs meet them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.commands import CommandLine
from support.made_runs import make_run
from support.releases import make_release
from support.terminal import Terminal
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.cli.comparison_tables import show_comparison
from trunchray.cli.screen import console
from trunchray.core.run import Selection
from trunchray.engine.compare import compare_models

BEFORE, AFTER = list("ppppppff"), list("pppfppfp")
"""By case: c7 is mended, c3 breaks."""


@pytest.fixture
def runs(here: Path, release: StoredRelease) -> None:
    make_run(here / "before", release, {"m": BEFORE})
    make_run(here / "after", release, {"m": AFTER})
    make_run(here / "two", release, {"x": BEFORE, "y": AFTER})


def no_nan(text: str) -> None:
    """Everything is a number that JSON has."""
    assert "NaN" not in text
    assert "Infinity" not in text
    assert "nan" not in text


@pytest.mark.usefixtures("runs")
def test_two_runs(trunchray: CommandLine):
    """What programs rely on: the effect, fixed and broke, overall and by eval, cost and latency beside."""
    (found,) = trunchray("compare", "before", "after", "--json").json["comparisons"]
    effect = found["pass_rate"]
    assert (effect["cases"], effect["difference"], effect["test"], effect["p"]) == (8, 0, "mcnemar-exact", 1)
    assert found["fixed"] == {"count": 1, "cases": ["c7"]}
    assert found["broke"] == {"count": 1, "cases": ["c3"]}
    assert [each["eval_id"] for each in found["evals"]] == ["even", "odd"]
    assert found["second"]["use"]["cost_per_trial"] == pytest.approx(0.01)
    assert found["second"]["use"]["latency"] == {"p50": 0.5, "p95": 0.5}
    assert found["added"]["count"] == found["removed"]["count"] == found["left_out"] == 0


@pytest.mark.usefixtures("runs")
def test_every_way_to_name_what_is_compared(here: Path, trunchray: CommandLine):
    """Two runs, a run and its baseline, two models of a run, or one of each: the same pair."""
    ways = ("before after", "after --baseline before", "two", "two --models x y", "before two --models m y")
    for way in ways:
        outcome = trunchray("compare", *way.split(), "--json")
        assert outcome.code == 0, outcome.err
        (found,) = outcome.json["comparisons"]
        assert (found["fixed"]["cases"], found["broke"]["cases"]) == (["c7"], ["c3"]), way
    told = trunchray("compare", "two", "--models", "x", "y", "--markdown", "page.md")
    assert "y against x (run two)" in told.out
    assert "broke (1): c3" in told.out
    assert "| **all** | 8 | 0 |" in (here / "page.md").read_text(encoding="utf-8")


def test_whole_runs_are_compared_model_by_model(here: Path, release: StoredRelease, trunchray: CommandLine):
    """Models of the same name, p adjusted over all of them; the others are named."""
    make_run(here / "a", release, {"x": BEFORE, "y": BEFORE, "old": BEFORE})
    make_run(here / "b", release, {"x": AFTER, "y": list("ffffffff"), "new": AFTER})
    value = trunchray("compare", "a", "b", "--json").json
    assert [(each["first"]["name"], each["second"]["name"]) for each in value["comparisons"]] == [
        ("x", "x"),
        ("y", "y"),
    ]
    assert (value["only_first"], value["only_second"]) == (["old"], ["new"])
    worse = value["comparisons"][1]["pass_rate"]
    assert worse["p_adjusted"] == pytest.approx(2 * worse["p"])
    assert "only the second run has new" in trunchray("compare", "a", "b").out


def test_sentences_name_the_two(here: Path, release: StoredRelease, trunchray: CommandLine):
    """By their models, or by their runs where the model is one."""
    names = {"x": list("pppppppp"), "y" * 100: list("fffffff-")}
    make_run(here / "two", release, names)
    told = trunchray("compare", "two").out
    assert f"in words: {'y' * 59}… passes fewer cases than x, further than chance would take it" in told
    assert f"1 not run in {'y' * 59}…" in told
    make_run(here / "a", release, {"m": list("ffffffff")})
    make_run(here / "b", release, {"m": list("pppppppp")})
    assert "in words: run b passes more cases than run a, further" in trunchray("compare", "a", "b").out


def test_a_model_that_was_asked_otherwise_is_told(here: Path, release: StoredRelease, trunchray: CommandLine):
    """Of a model that keeps its name: what differs of it, in a comparison and where a gate counts drops."""
    make_run(here / "a", release, {"m": BEFORE})
    make_run(here / "b", release, {"new": BEFORE, "m": AFTER})
    said = "'m' was asked otherwise: params.seed was 0 and is now 1"
    assert f"note: {said}" in trunchray("compare", "a", "b").out
    assert said in trunchray("gate", "b", "--compare", "a", "--allow", "each=8", "--json").json["notes"]


def test_what_one_eval_alone_shows_is_nothing_to_rely_on(here: Path, trunchray: CommandLine):
    """Where p is small, but the interval, which goes by evals, holds 0, the sentence says so, and groups are one."""
    run = make_run(here / "two", make_release(here / "r", 32), {"x": ["f"] * 32, "y": ["p", "f"] * 16})
    told = trunchray("compare", run)
    assert "in words: counted case by case, y passes more cases than x, further than chance" in told.out
    assert "holds 0, so this is no difference to rely on" in told.out
    assert trunchray("report", run).code == 0
    page = (here / "two" / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<td>a</td>") == 2


@pytest.mark.usefixtures("runs")
def test_a_narrow_terminal_keeps_the_pass_rates(monkeypatch: pytest.MonkeyPatch):
    """What people look for first is the last to be left out."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    show_comparison(console(terminal), compare_models("two", ()), {})
    assert "75.0% → 75.0%" in terminal.text()
    assert "no room for: " in terminal.text()


def test_another_release_is_compared_where_the_content_is_the_same(here: Path, trunchray: CommandLine):
    """Cases that ask or grade otherwise are listed, not compared."""
    old = make_release(here / "old", 8)
    new = make_release(
        here / "new",
        10,
        check=lambda number: {"kind": "contains", "expected": "x"} if number == 3 else {"kind": "non_empty"},
    )
    make_run(here / "a", old, {"m": BEFORE})
    make_run(here / "b", new, {"m": [*AFTER, "p", "p"]})
    (found,) = trunchray("compare", "a", "b", "--json").json["comparisons"]
    assert found["pass_rate"]["cases"] == 7
    assert (found["changed"]["cases"], found["added"]["cases"]) == (["c3"], ["c8", "c9"])
    assert found["broke"]["count"] == 0
    assert any("content, that is, prompt, tools, data and checks, is the same" in note for note in found["notes"])
    (way_on,) = (note for note in found["notes"] if "`trunchray regrade RUN --release PATH`" in note)
    assert way_on.startswith("cases with changed content that differ in their checks alone: 1 of 1; ")


def test_changed_cases_of_several_models_are_named(here: Path, trunchray: CommandLine):
    """Once for all of them, with what each fixed and broke; a gate names them too."""
    old = make_release(here / "old", 8)
    new = make_release(here / "new", 9, prompt=lambda number: "other" if number == 3 else f"prompt {number}")
    make_run(here / "a", old, {"x": BEFORE, "y": BEFORE})
    make_run(here / "b", new, {"x": [*AFTER, "p"], "y": [*BEFORE, "p"]})
    make_run(here / "elsewhere" / "a", new, {"x": [*AFTER, "p"], "y": [*BEFORE, "p"]})
    assert "changed content (1): c3" in trunchray("compare", "a", "elsewhere/a").out
    lines = trunchray("compare", "a", "b").out.splitlines()
    assert [line for line in lines if line.startswith(("changed", "added"))] == [
        "added (1): c8",
        "changed content (1): c3",
    ]
    assert "fixed, x: run b against a (1): c7" in lines
    assert not [line for line in lines if "regrade" in line]  # where the prompt is another one
    gate = trunchray("gate", "b", "--compare", "a", "--allow", "each=8", "--json")
    assert "7 cases are the same in both runs; 1 changed (c3), 1 added (c8), 0 removed" in gate.json["notes"]


def test_a_regrade_of_several_models(here: Path, release: StoredRelease, trunchray: CommandLine):
    """Each flip is listed under its model; one model's answers are not taken for another's."""
    make_run(here / "a", release, {"x": list("pppppppp"), "y": list("fppppppp")})
    strict = make_release(here / "s", 8, check=lambda n: {"kind": "contains", "expected": "y" if n == 3 else "x"})
    regraded = trunchray("regrade", "a", "--release", strict.uri, "--name", "strict")
    assert regraded.code == 0, regraded.err
    lines = trunchray("compare", "a", "a/regrades/strict").out.splitlines()
    assert [line for line in lines if line.startswith(("fixed,", "broke,", "changed"))] == [
        "broke, x: run strict against a (1): c3",
        "fixed, y: run strict against a (1): c0",
        "broke, y: run strict against a (1): c3",
    ]
    assert any(line.startswith("note: graders differ") for line in lines)
    crossed = trunchray.refused("compare", "a", "a/regrades/strict", "--models", "x", "y")
    assert "no case in common, so there is nothing to compare: 8 are in both by id, but with other" in crossed


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (["e"] * 8, ["p"] * 8, "no case has a verdict from both"),
        (["e"] * 8, ["e"] * 8, "no case has a verdict from both"),
        (["p"] * 8, ["p"] * 8, ""),
        (["ppp"] * 8, ["p"] * 8, "attempts differ (3 and 1)"),
        (["-"] * 7 + ["p"], ["p"] * 8, "is not complete: 1 of 8 trials are counted"),
        (["p"] + ["e"] * 7, ["p"] * 8, "errors differ (87.5% and 0.0% of the trials)"),
    ],
    ids=["no verdict in one", "all errors", "all passed", "attempts unequal", "one case", "errors differ"],
)
def test_hard_pairs(
    first: list[str], second: list[str], note: str, here: Path, release: StoredRelease, trunchray: CommandLine
):
    """Whatever a run holds, figures are numbers or none, and what cannot be said is told."""
    make_run(here / "a", release, {"m": first})
    make_run(here / "b", release, {"m": second})
    for way in (("a", "b"), ("b", "a")):
        described, told = trunchray("compare", *way, "--json", "--markdown", "p.md"), trunchray("compare", *way)
        assert (described.code, told.code) == (0, 0), described.err
        if note and way == ("a", "b"):
            assert note in told.out
        for text in (described.out, told.out, (here / "p.md").read_text(encoding="utf-8")):
            no_nan(text)
    gate = trunchray("gate", "b", "--compare", "a", "--allow", "overall=max_drop:0.1,min_pass_rate:0.5", "--json")
    assert gate.code in (0, 3)
    no_nan(gate.out)


def test_a_single_eval_of_a_single_case(here: Path, trunchray: CommandLine):
    """Two verdicts are compared, and say nothing."""
    make_run(here / "a", make_release(here / "r", 1), {"x": ["p"], "y": ["f"]})
    described = trunchray("compare", "a", "--json")
    no_nan(described.out)
    (found,) = described.json["comparisons"]
    assert (found["pass_rate"]["difference"], found["pass_rate"]["p"], len(found["evals"])) == (-1, 1, 1)
    assert "no difference is shown" in trunchray("compare", "a").out


def test_runs_without_a_shared_case(here: Path, trunchray: CommandLine):
    """They are refused with what differs; a gate on them is INCONCLUSIVE."""
    make_run(here / "a", make_release(here / "r1", 2), {"m": ["p", "p"]})
    other = make_release(here / "r2", 2, check=lambda _: {"kind": "contains", "expected": "x"})
    make_run(here / "b", other, {"m": ["p", "f"]})
    told = trunchray.refused("compare", "a", "b")
    assert (
        "the runs have no case in common, so there is nothing to compare: 2 are in both by id, but with other" in told
    )
    assert "differ in their checks alone: 2 of 2; `trunchray regrade RUN --release PATH` grades" in told
    for name, case in (("c", "c0"), ("d", "c1")):
        make_run(here / name, other, {"m": ["p", "f"]}, selection=Selection(cases=(case,)))
    assert "1 are in 'c' (Test) alone, 1 are in 'd' (Test) alone" in trunchray.refused("compare", "c", "d")
    outcome = trunchray("gate", "b", "--compare", "a", "--allow", "overall=max_drop:0.5")
    assert outcome.code == 3
    assert outcome.out.startswith("INCONCLUSIVE")


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("compare before", "run 'before' has one model, 'm'; name a second run to compare it with"),
        ("compare two --models x x", "--models x x: give two different models"),
        ("compare two --models x z", "run 'two' has no model 'z'; known: x, y"),
        ("compare before two", "the runs have no model in common: 'before' has m, 'two' has x, y"),
        ("compare before after --baseline two", "give one of them"),
        ("compare before nope", "no run at"),
        ("compare before after --markdown no/where.md", "cannot write 'no/where.md'"),
        ("gate before", "Missing option '--allow'"),
        (
            "gate before --allow evn=1",
            "the gate limits eval 'evn', which run 'before' does not have — did you mean 'even'",
        ),
        ("gate before --allow x", "give a .yaml file, or NAME=LIMITS"),
        ("gate before --allow no.yaml", "no such file: 'no.yaml'"),
        ("gate before --aa --allow each=1", "no case of m has two attempts with a verdict (attempts: 1)"),
        ("gate before --aa --allow overall=min_pass_rate:0.5", "the gate has none"),
        ("gate before --aa --compare after --allow each=1", "leave out --compare"),
        ("gate nope --allow each=1", "no run at"),
        ("gate before --allow each=1 --junit no/where.xml", "cannot write 'no/where.xml'"),
    ],
)
def test_what_cannot_be_compared_or_judged(argv: str, message: str, trunchray: CommandLine):
    """One message, exit 2, nothing written."""
    assert message in trunchray.refused(*argv.split())


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("argv", "code", "verdict"),
    [
        ("before --allow each=2", 0, "PASS"),
        ("after --compare before --allow each=2", 1, "FAIL"),
        ("after --compare before --allow each=miss:2,drop:1", 0, "PASS"),
        ("before --allow overall=min_pass_rate:0.7", 3, "INCONCLUSIVE"),
        ("two --allow each=2", 0, "PASS"),
    ],
)
def test_exit_codes_of_the_gate(argv: str, code: int, verdict: str, here: Path, trunchray: CommandLine):
    """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE, with and without --json, and the same in every file."""
    told = trunchray("gate", *argv.split(), "--junit", "g.xml", "--markdown", "g.md")
    assert (told.code, told.out.split()[0]) == (code, verdict)
    assert (here / "g.md").read_text(encoding="utf-8").startswith(f"# Gate: {verdict}")
    suites = ET.fromstring((here / "g.xml").read_bytes())
    kinds = {kind for kind in ("failure", "error") if suites.find(f".//{kind}") is not None}
    assert kinds == {"PASS": set(), "FAIL": {"failure"}, "INCONCLUSIVE": {"error"}}[verdict]
    described = trunchray("gate", *argv.split(), "--json")
    assert (described.code, described.json["verdict"]) == (code, verdict)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_part_that_cannot_be_read(damage: str, here: Path, trunchray: CommandLine):
    """Its trials are not counted, which is said; the gate concludes nothing from so little."""
    part = sorted((here / "after" / "parts").rglob("*.parquet"))[0]
    if damage == "missing":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-9])
    told = trunchray("compare", "before", "after")
    assert told.code == 0
    assert "missing or damaged, the trials there are not counted" in told.out
    gate = trunchray("gate", "after", "--allow", "overall=min_pass_rate:0.1")
    assert gate.code == 3
    assert "87.5% of the trials have a verdict" in gate.out


def test_a_run_that_is_still_going(here: Path, release: StoredRelease, trunchray: CommandLine):
    """What counts so far is compared, with a note; the gate waits for the rest."""
    make_run(here / "before", release, {"m": BEFORE})
    make_run(here / "going", release, {"m": ["p", "p", "-", "-", "-", "-", "-", "-"]})
    lease = HeldLease.take(RunFolder(str(here / "going")).store, takeover=False)
    told = trunchray("compare", "before", "going")
    assert "going is still going: 2 of 8 trials are counted" in told.out
    gate = trunchray("gate", "going", "--allow", "each=0")
    assert gate.code == 3
    lease.release()


def test_repeats_are_dealt_out(here: Path, release: StoredRelease, trunchray: CommandLine):
    """--aa gives the false-alarm rate, and the drops that are usual among repeats."""
    make_run(here / "a", release, {"m": ["pfpf", "pppf"] * 4})
    value = trunchray("gate", "a", "--aa", "--allow", "each=drop:0", "--json").json
    assert value["claimed"] is None
    assert value["models"][0]["rate"] > 0.5
    told = trunchray("gate", "a", "--aa", "--allow", "overall=max_drop:0.1", "--markdown", "aa.md")
    assert "the gate promises at most 2.5%" in told.out
    assert (here / "aa.md").read_text(encoding="utf-8").startswith("# Gate against itself")


@pytest.mark.usefixtures("runs")
def test_the_report_compares_its_models(here: Path, trunchray: CommandLine):
    """summary.json holds every two models, report.md a table of them; the same rows give the same bytes."""
    trunchray("report", "two")
    first = (here / "two" / "report" / "summary.json").read_bytes()
    (pair,) = json.loads(first)["comparisons"]
    assert (pair["first"], pair["second"], pair["broke"]) == ("x", "y", {"count": 1, "cases": ["c3"]})
    assert "## Between models" in (here / "two" / "report" / "report.md").read_text(encoding="utf-8")
    trunchray("report", "two")
    assert (here / "two" / "report" / "summary.json").read_bytes() == first
