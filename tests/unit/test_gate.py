"""Limits on made-up outcomes: counts, rates, tiers, what a lack of verdicts leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from trunchray.core.agent import ModelAgent
from trunchray.core.comparison import Contender
from trunchray.core.false_alarms import against_itself, claimed
from trunchray.core.gate import Gate
from trunchray.core.gate_facts import Candidate, Facts
from trunchray.core.gate_markdown import gate_markdown
from trunchray.core.judge import judge
from trunchray.core.junit import junit
from trunchray.core.report import CountedRow, Planned, PlannedModel
from trunchray.core.run import RunSpec
from trunchray.core.tally import Tally
from trunchray.core.verdicts import Finding, GateReport

Outcomes = Mapping[str, str]
"""By case, a letter for each attempt: `p`assed, `f`ailed, `e`rror or `-` not run."""

NAMES = {"p": "passed", "f": "failed", "e": "error"}


def contender(
    outcomes: Outcomes, *, run: str = "now", evals: Mapping[str, str] | None = None, name: str = "m"
) -> Contender:
    """A model with these outcomes; cases are of eval `e` unless `evals` says otherwise."""
    of = {case: (evals or {}).get(case, "e") for case in outcomes}
    attempts = max(map(len, outcomes.values()))
    trials = {eval_id: attempts * list(of.values()).count(eval_id) for eval_id in dict.fromkeys(of.values())}
    model = PlannedModel(name, "a" * 64, "mock/echo", trials)
    tally = Tally(Planned(run, "d" * 64, "T", attempts, (model,)))
    for case, letters in outcomes.items():
        for attempt, letter in enumerate(letters, 1):
            if letter != "-":
                tally.add(row(name, of[case], case, attempt, letter))
    agent = ModelAgent(name=name, model="mock/echo")
    spec = RunSpec(
        run_id=run, title="T", release="memory://r", release_digest="d" * 64, agents=(agent,), attempts=attempts
    )
    return Contender(spec, tally.model(model), tally.sheet(model, of))


def row(model: str, eval_id: str, case: str, attempt: int, letter: str) -> CountedRow:
    failure = ("provider", "timeout", "no answer") if letter == "e" else None
    score = None if letter == "e" else float(letter == "p")
    outcome: Any = NAMES[letter]
    nothing = (None, None, None, None)
    return CountedRow(model, eval_id, case, attempt, outcome, score, nothing, None, 1.0, None, 0, failure)


def cases(letters: str) -> Outcomes:
    return {f"c{number}": letter for number, letter in enumerate(letters)}


def judged(limits: dict[str, Any], now: Outcomes, before: Outcomes | None = None, **more: Any) -> GateReport:
    gate = Gate.model_validate(limits)
    if before is None:
        return judge(gate, [Candidate(contender(now, **more))])
    alike = {case: case for case in now if case in before}
    baseline = contender(before, run="before", **more)
    return judge(gate, [Candidate(contender(now, **more), baseline, alike)], compared_with="before")


def only(report: GateReport, limit: str) -> Finding:
    (found,) = [finding for finding in report.findings if finding.limit == limit]
    return found


NOW, BEFORE = {"a": "f", "b": "p", "c": "f"}, {"a": "p", "b": "f", "c": "f"}


@pytest.mark.parametrize(
    ("limit", "verdict", "broken"),
    [
        (2, "FAIL", ["drop"]),
        ({"miss": 2, "drop": 1}, "PASS", []),
        ({"miss": 3}, "FAIL", ["drop"]),
        ({"miss": 1, "drop": 1}, "FAIL", ["miss"]),
        ({"drop": 0}, "FAIL", ["drop"]),
        (1, "FAIL", ["miss", "drop"]),
    ],
)
def test_misses_and_drops(limit: Any, verdict: str, broken: list[str]):
    """Two cases are missed, of which one passed before; that another was mended makes up for nothing."""
    report = judged({"each": limit}, NOW, BEFORE)
    assert report.verdict == verdict
    assert [finding.limit for finding in report.findings if finding.verdict == "FAIL"] == broken


def test_broken_limits_name_their_cases():
    """The misses are a and c, the drop is a."""
    report = judged({"each": 0}, NOW, BEFORE)
    assert only(report, "miss").cases.cases == ("a", "c")
    assert only(report, "drop").cases.cases == ("a",)


def test_without_another_run_drops_are_not_judged():
    """`miss: 2` alone passes then."""
    assert [finding.limit for finding in judged({"each": 2}, NOW).findings] == ["miss"]


def test_new_cases_can_only_be_missed():
    """A case that the other run does not have cannot have dropped."""
    report = judged({"each": {"drop": 0}}, {"a": "p", "new": "f"}, {"a": "p"})
    assert report.verdict == "PASS"


def test_a_case_is_missed_when_an_attempt_fails():
    """One failed attempt of three is a miss, and a drop where all three passed before."""
    report = judged({"each": 0}, {"a": "ppf"}, {"a": "ppp"})
    assert (only(report, "miss").observed, only(report, "drop").observed) == (1, 1)


@pytest.mark.parametrize(
    ("letters", "allowed", "verdict"),
    [
        ("ppe", 0, "INCONCLUSIVE"),
        ("pp-", 0, "INCONCLUSIVE"),
        ("pfe", 1, "INCONCLUSIVE"),
        ("pfe", 2, "PASS"),
        ("ffe", 1, "FAIL"),
        ("ppp", 0, "PASS"),
    ],
)
def test_what_has_no_verdict_could_go_either_way(letters: str, allowed: int, verdict: str):
    """An error is no miss: it keeps `miss` open where it could break it, and no more."""
    report = judged({"each": {"miss": allowed, "min_coverage": 0}}, cases(letters))
    assert only(report, "miss").verdict == verdict


@pytest.mark.parametrize(
    ("passed", "failed", "verdict"), [(195, 5, "PASS"), (100, 100, "FAIL"), (181, 19, "INCONCLUSIVE"), (0, 9, "FAIL")]
)
def test_a_pass_rate_is_judged_by_its_interval(passed: int, failed: int, verdict: str):
    """At least 90 %: shown, refuted, or neither while the interval holds it."""
    report = judged({"overall": {"min_pass_rate": 0.9}}, cases("p" * passed + "f" * failed))
    assert report.verdict == verdict
    found = only(report, "min_pass_rate")
    assert found.low is not None
    assert found.high is not None


def test_without_confidence_the_rate_itself_decides():
    """`confidence: 0` is for those who want no interval."""
    limits = {"confidence": 0, "overall": {"min_pass_rate": 0.9}}
    assert judged(limits, cases("p" * 9 + "f")).verdict == "PASS"
    assert judged(limits, cases("p" * 8 + "f" * 2)).verdict == "FAIL"


def test_many_rates_fail_no_more_often_than_one():
    """What may fail a run is judged at the confidence of all rates together; what lets it pass is not widened."""
    now = cases("p" * 80 + "f" * 20)
    alone = only(judged({"overall": {"min_pass_rate": 0.5}}, now), "min_pass_rate")
    gate = {"overall": {"min_pass_rate": 0.5}, "each": {"min_pass_rate": 0.5}}
    many = next(finding for finding in judged(gate, now).findings if finding.eval_id is None)
    assert alone.low == many.low
    assert (alone.high or 0) < (many.high or 0)


@pytest.mark.parametrize(
    ("now", "before", "verdict"),
    [
        ("p" * 95 + "f" * 5, "p" * 95 + "f" * 5, "PASS"),
        ("f" * 60 + "p" * 40, "p" * 100, "FAIL"),
        ("f" * 6 + "p" * 94, "p" * 100, "INCONCLUSIVE"),
    ],
)
def test_a_drop_of_the_rate(now: str, before: str, verdict: str):
    """At most 5 points: paired on the cases of both runs."""
    report = judged({"overall": {"max_drop": 0.05}}, cases(now), cases(before))
    assert report.verdict == verdict


def test_errors_are_limited_apart():
    """Their share breaks a limit of its own, with their cases."""
    limits = {"overall": {"max_error_share": 0.1, "min_coverage": 0}}
    report = judged(limits, cases("ppppppeepp"))
    assert report.verdict == "FAIL"
    assert only(report, "max_error_share").cases.cases == ("c6", "c7")
    assert judged(limits, cases("pppppppepp")).verdict == "PASS"


@pytest.mark.parametrize("letters", ["eeee", "----", "ppee"])
def test_too_little_coverage_concludes_nothing(letters: str):
    """Nothing graded, or too little of it: INCONCLUSIVE, whatever is asked, with the cases and why."""
    limits = {"overall": {"min_pass_rate": 0.1, "max_drop": 0.5}}
    report = judged(limits, cases(letters), cases("pppp"))
    assert report.verdict == "INCONCLUSIVE"
    assert {finding.verdict for finding in report.findings} == {"INCONCLUSIVE"}
    assert only(report, "min_coverage").cases.count >= 2
    assert "nan" not in report.model_dump_json().lower()


def test_no_shared_case_concludes_nothing():
    """There is no drop to see between runs that have nothing in common."""
    report = judged({"overall": {"max_drop": 0.1}}, {"a": "p"}, {"b": "p"})
    assert "no case has a verdict in both runs" in only(report, "max_drop").message


def test_a_model_that_the_other_run_does_not_have():
    """Its drops cannot be judged, which is told."""
    report = judge(
        Gate.model_validate({"each": {"drop": 0}}), [Candidate(contender(cases("pp")))], compared_with="before"
    )
    assert report.verdict == "INCONCLUSIVE"
    assert "before has no model 'm'" in only(report, "drop").message


@pytest.mark.parametrize(
    ("tier", "broken", "undecided", "short"),
    [
        ("critical", "FAIL", "INCONCLUSIVE", "INCONCLUSIVE"),
        ("supporting", "FAIL", "PASS", "INCONCLUSIVE"),
        ("advisory", "PASS", "PASS", "PASS"),
    ],
)
def test_tiers(tier: str, broken: str, undecided: str, short: str):
    """Critical limits must be shown to hold, supporting ones must not be shown to be broken, advisory ones are told."""
    limits = {"overall": {"min_pass_rate": 0.9, "tier": tier}}
    assert judged(limits, cases("f" * 50)).verdict == broken
    assert judged(limits, cases("p" * 46 + "f" * 4)).verdict == undecided
    assert judged(limits, cases("p" * 46 + "e" * 14)).verdict == short


def test_each_eval_is_judged_by_its_own_limit():
    """A named eval replaces `each`; all evals together come first."""
    evals = {"a": "x", "b": "y"}
    limits = {"overall": 2, "each": 0, "evals": {"y": 1}}
    report = judged(limits, {"a": "f", "b": "f"}, evals=evals)
    assert [(finding.eval_id, finding.allowed, finding.verdict) for finding in report.findings] == [
        (None, 2, "PASS"),
        ("x", 0, "FAIL"),
        ("y", 1, "PASS"),
    ]


def test_junit_is_xml_whatever_names_hold():
    """One suite a model, one test a limit; failures, errors and what was let through are told apart."""
    hostile = 'm<&>"\x00\x1b]]>'
    gate = {
        "overall": {"miss": 0, "min_pass_rate": 0.5, "max_error_share": 0.9, "tier": "critical", "min_coverage": 0.1}
    }
    report = judged(gate, {**cases("pfpf"), "c9": "e"}, name=hostile)
    suite = ET.fromstring(junit(report))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")
    failure = suite.find(".//failure")
    assert failure is not None
    assert "c1\nc3" in (failure.text or "")
    assert suite.get("name") == 'm<&>"\ufffd\ufffd]]>'
    advisory = ET.fromstring(junit(judged({"each": {"miss": 0, "tier": "advisory"}}, cases("f"))))[0]
    assert (advisory.get("failures"), advisory.get("skipped")) == ("0", "1")


def test_the_page_begins_with_the_verdict():
    """What is broken stands there with its cases; every limit is in the table, whose columns are words."""
    page = gate_markdown(judged({"each": 0}, NOW, BEFORE))
    assert page.startswith("# Gate: FAIL\n\nRun `now`, compared with `before`.")
    assert "- **FAIL** m, e: 2 cases missed, 0 allowed. Cases: a, c." in page
    assert "| --- | --- | --- | --- | --- | --- |\n| m | e |" in page
    assert "| m | e | drop | critical | FAIL | 1 case dropped, 0 allowed |" in page


def test_the_page_names_twenty_cases_however_long_their_names():
    """A table's cells are cut, the list of cases is not."""
    page = gate_markdown(judged({"each": 0}, {f"case-{'x' * 100}-{n:02}": "f" for n in range(21)}))
    assert "-19, …." in page
    assert page.count("case-x") == 20


def facts(letters: Sequence[str]) -> Facts:
    return Facts.of(Candidate(contender({f"c{n}": each for n, each in enumerate(letters)})), {})


def test_a_gate_against_itself_keeps_its_promise():
    """Halves of the repeats of one model differ by chance alone: a limit on the rate fails at most 2.5 %."""
    gate = Gate.model_validate({"overall": {"max_drop": 0}})
    mixed = facts(["pppp", "pfpf", "fppf", "ffff", "pfff", "pppf"] * 20)
    found = against_itself(gate, mixed)
    assert found is not None
    assert claimed(gate, mixed) == 0.025
    assert found.low <= 0.025
    assert against_itself(gate, mixed) == found


def test_counting_drops_promises_nothing():
    """Repeats that vary drop cases by chance: how many is told, and `drop: 0` nearly always fails."""
    gate = Gate.model_validate({"each": {"drop": 0}})
    mixed = facts(["pfpf", "pppf"] * 30)
    found = against_itself(gate, mixed)
    assert found is not None
    assert claimed(gate, mixed) is None
    assert found.rate > 0.9
    assert found.usual_drop["e"] > 0
    assert list(found.by_limit) == ["e: drop"]


def test_repeats_that_agree_raise_no_alarm():
    """A model that always says the same never drops anything."""
    found = against_itself(Gate.model_validate({"each": 99}), facts(["pppp", "ffff"] * 10))
    assert found is not None
    assert (found.alarms, found.usual_drop) == (0, {"e": 0})


def test_one_attempt_cannot_be_dealt_out():
    """Without repeats there is nothing to tell."""
    assert against_itself(Gate.model_validate({"each": 0}), facts(["p", "f"])) is None
