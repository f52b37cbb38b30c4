"""Misses, drops, musts and skips of a Python evaluation, on made-up results."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from support.evaluations import concluded, experiment, outcome, result
from trunchray.core.allowance import Allowance, allowances
from trunchray.core.evaluation import CaseOutcome, EvaluationReport, conclude, failure
from trunchray.errors import EvalFailure, UsageError

NOW, BEFORE = {"a": "f", "b": "p", "c": "f"}, {"a": "p", "b": "f", "c": "f"}


def broken(report: EvaluationReport, scorer: str = "S") -> dict[str, tuple[str, ...]]:
    return {each.limit: each.cases for each in report.scorers[scorer].broken}


def test_passes_misses_and_drops_of_the_worked_example():
    """One passes, two are missed, one of them dropped; that b was fixed is no help."""
    scorer = concluded(NOW, before=BEFORE).scorers["S"]
    assert (scorer.passes, scorer.misses, scorer.drops) == (1, 2, 1)
    assert scorer.failed == ("a", "c")


@pytest.mark.parametrize(
    ("limit", "limits"),
    [
        (2, ["drop"]),
        ({"miss": 2, "drop": 1}, []),
        ({"miss": 3}, ["drop"]),
        ({"miss": 1, "drop": 1}, ["miss"]),
        ({"drop": 1}, ["miss"]),
        (0, ["miss", "drop"]),
        ({}, ["miss", "drop"]),
    ],
)
def test_limits_of_the_worked_example(limit: Any, limits: list[str]):
    """A number n allows n misses and no drop; whatever is left out of a mapping is 0."""
    report = concluded(NOW, allow={"S": limit}, before=BEFORE)
    assert list(broken(report)) == limits
    assert report.passed == (not limits)


def test_without_an_earlier_experiment_drops_are_not_evaluated():
    """`2` alone passes then, and the number of drops is not known."""
    report = concluded(NOW, allow={"S": 2})
    assert report.passed
    assert report.scorers["S"].drops is None


def test_many_misses_allowed_still_fail_on_one_newly_broken_case():
    """`miss: 3` says nothing about drops, of which none is allowed."""
    report = concluded({"a": "f", "b": "p"}, allow={"S": {"miss": 3}}, before={"a": "p", "b": "p"})
    assert broken(report) == {"drop": ("a",)}


def test_a_fixed_case_does_not_offset_a_broken_one():
    """As many pass as before, and yet one dropped."""
    report = concluded({"a": "f", "b": "p"}, allow={"S": 1}, before={"a": "p", "b": "f"})
    assert broken(report) == {"drop": ("a",)}


def test_a_new_case_can_only_count_as_a_miss():
    """It is not in the earlier experiment, so it cannot have passed there."""
    report = concluded({"a": "p", "new": "f"}, allow={"S": 1}, before={"a": "p"})
    assert report.passed
    assert (report.scorers["S"].misses, report.scorers["S"].drops) == (1, 0)


def test_a_check_that_is_skipped_now_is_neither_miss_nor_drop():
    """Though the case passed it before."""
    report = concluded({"a": "s", "b": "p"}, before={"a": "p", "b": "p"})
    scorer = report.scorers["S"]
    assert report.passed
    assert (scorer.passes, scorer.misses, scorer.drops) == (1, 0, 0)


def test_a_check_that_was_skipped_before_cannot_drop():
    """It is absent from the earlier experiment."""
    assert concluded({"a": "f"}, allow={"S": 1}, before={"a": "s"}).scorers["S"].drops == 0


def test_a_renamed_case_is_added_and_removed_and_no_drop():
    """Names are what cases are known by."""
    report = concluded({"new": "f"}, allow={"S": 1}, before={"old": "p"})
    assert report.passed
    assert (report.flips.added, report.flips.removed) == (("new",), ("old",))


def test_a_scorer_that_the_earlier_experiment_lacks_has_no_drops():
    """It has no results there to drop from."""
    report = concluded({"a": "pf"}, allow={"T": 1}, before={"a": "p"})
    assert report.scorers["T"].drops == 0
    assert report.passed


def test_a_scorer_that_only_the_earlier_experiment_has_is_passed_over():
    """Nothing is known of it now."""
    report = concluded({"a": "p"}, before={"a": "pp"})
    assert report.passed
    assert report.flips.broke == ()


def test_must_holds_whatever_is_allowed():
    """Ten misses are allowed, but not this one."""
    report = concluded({"a": "m", "b": "f"}, allow={"S": 10})
    assert broken(report) == {"must": ("a",)}


def test_must_that_passes_breaks_nothing():
    """A must is no limit on other cases."""
    assert concluded({"a": "M", "b": "f"}, allow={"S": 1}).passed


def test_a_must_counts_as_a_miss_too():
    """The same case breaks two limits when no miss is allowed, and three when it passed before."""
    assert list(broken(concluded({"a": "m"}))) == ["miss", "must"]
    assert list(broken(concluded({"a": "m"}, before={"a": "p"}))) == ["miss", "drop", "must"]


def test_a_scorer_that_every_case_skips_passes():
    """It has no mean."""
    scorer = concluded({"a": "s", "b": "s"}, scorers=["S"]).scorers["S"]
    assert (scorer.passes, scorer.misses, scorer.mean, scorer.broken) == (0, 0, None, ())


def test_a_result_that_is_not_there_is_a_miss():
    """What should have been checked and was not fails closed."""
    case = CaseOutcome(name="a", input="a")
    report = conclude("e", None, [case], scorers=["S"], allow={}, compare=None)
    assert report.scorers["S"].failed == ("a",)
    assert report.cases[0].checks["S"].explanation == "no result"


def test_flips_name_what_was_fixed_broke_added_and_removed():
    """Checks that flipped with their case, cases that came and went."""
    report = concluded({"a": "fp", "b": "pf", "new": "pp"}, before={"a": "pp", "b": "ff", "old": "pp"})
    assert report.flips.to_json() == {
        "fixed": [{"case": "b", "check": "S"}],
        "broke": [{"case": "a", "check": "S"}],
        "added": ["new"],
        "removed": ["old"],
    }


def test_nothing_is_a_flip_without_an_earlier_experiment():
    """Not even new cases."""
    assert not any(concluded({"a": "f"}).flips.to_json().values())


def test_an_experiment_of_the_same_process_can_be_compared_with():
    """`compare=before.experiment` needs no file."""
    first = concluded({"a": "p"})
    assert broken(concluded({"a": "f"}, allow={"S": 1}, compare=first.experiment)) == {"drop": ("a",)}


def test_a_failure_names_every_broken_limit_with_its_cases():
    """All limits of all scorers are evaluated, and all that are broken told."""
    report = concluded({"a": "fm", "b": "fp", "c": "ff"}, allow={"S": 1, "T": 2}, before={"a": "pp", "b": "fp"})
    error = failure(report)
    assert str(error).splitlines() == [
        "e does not pass",
        "  S: 3 misses, 1 allowed: 'a', 'b', 'c'",
        "  S: 1 drop, 0 allowed: 'a'",
        "  T: 1 drop, 0 allowed: 'a'",
        "  T: must pass: 'a'",
        "  S — a",
        "  S — b",
        "  S — c",
        "  T — a (must pass)",
        "  T — c",
    ]
    assert error.report is report
    assert (error.exit_code, type(error)) == (1, EvalFailure)


def test_a_failure_says_why():
    """Where nothing else is printed, too; only of checks that broke a limit, and once of a run that failed."""
    cases = [
        CaseOutcome(
            name="a", input="a", checks={"S": result(False, "run failed: x"), "T": result(False, "run failed: x")}
        ),
        CaseOutcome(name="b", input="b", checks={"S": result(False, "too long"), "T": result(True)}),
    ]
    found = conclude("e", None, cases, scorers=["S", "T"], allow={"T": Allowance(miss=1)}, compare=None)
    assert str(failure(found)).splitlines() == [
        "e does not pass",
        "  S: 2 misses, 0 allowed: 'a', 'b'",
        "  S — a: run failed: x",
        "  S — b: too long",
    ]


def test_a_failure_crosses_processes():
    """Whole, with its report."""
    error = failure(concluded({"a": "fp"}))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.report) == (str(error), error.report)


def test_a_failure_names_at_most_fifty_cases_of_a_limit():
    """Its report has the rest."""
    error = failure(concluded({f"c{number}": "f" for number in range(1051)}))
    assert str(error).splitlines()[1].endswith("'c49' and 1,001 more")
    assert str(error).splitlines()[-2:] == ["  S — c4", "  … and 1,046 more"]
    assert len(error.report.scorers["S"].failed) == 1051


@pytest.mark.parametrize(
    ("value", "allowance"),
    [
        (3, Allowance(miss=3, drop=0)),
        ({"miss": 3}, Allowance(miss=3, drop=0)),
        ({"drop": 2}, Allowance(miss=0, drop=2)),
        ({"miss": 5, "drop": 2}, Allowance(miss=5, drop=2)),
        ({}, Allowance(miss=0, drop=0)),
    ],
)
def test_what_allow_may_say(value: object, allowance: Allowance):
    """A number is misses; of a mapping, what is left out is 0."""
    assert allowances({"S": value}, ["S", "T"]) == {"S": allowance, "T": Allowance()}


def test_allow_may_say_nothing():
    """Then nothing may fail."""
    assert allowances(None, ["S"]) == {"S": Allowance()}


@pytest.mark.parametrize(
    ("allow", "message"),
    [
        ({"S": -1}, 'allow.S: -1 is not a count of cases; give 0 or more, or {"miss": 1, "drop": 0} for a check'),
        ({"S": 1.0}, "allow.S: 1.0 is not a count of cases"),
        ({"S": True}, "allow.S: True is not a count of cases"),
        ({"S": "1"}, "allow.S: '1' is not a count of cases"),
        ({"S": None}, "allow.S: None is not a count of cases"),
        ({"S": {"miss": -1}}, "allow.S.miss: -1 is not a count of cases"),
        ({"S": {"drop": 0.5}}, "allow.S.drop: 0.5 is not a count of cases"),
        ({"S": {"misses": 1}}, "allow.S: unknown key 'misses' — did you mean 'miss'?"),
        ({"test": 1}, "allow: 'test' is not a scorer — did you mean 'tests'?"),
        (3, "allow: 3 is not a mapping"),
    ],
)
def test_what_allow_may_not_say(allow: Any, message: str):
    """Refused before anything runs, with what was meant."""
    with pytest.raises(UsageError) as refused:
        allowances(allow, ["S", "tests"])
    assert str(refused.value).startswith(message)


def test_the_report_as_json():
    """Every key of the report, in order."""
    report = concluded({"a": "pf", "b": "sp"}, allow={"T": 1})
    assert report.to_json() == {
        "name": "e",
        "about": None,
        "passed": True,
        "scorers": {
            "S": {
                "passes": 1,
                "misses": 0,
                "drops": None,
                "mean": 1.0,
                "limits": {"miss": 0, "drop": 0},
                "broken": [],
                "failed": [],
            },
            "T": {
                "passes": 1,
                "misses": 1,
                "drops": None,
                "mean": 0.5,
                "limits": {"miss": 1, "drop": 0},
                "broken": [],
                "failed": ["a"],
            },
        },
        "cases": [
            {
                "name": "a",
                "input": "a",
                "output": "out",
                "steps": [],
                "ms": 0.0,
                "checks": {"S": {"pass": True, "value": 1.0}, "T": {"pass": False, "value": 0.0}},
            },
            {
                "name": "b",
                "input": "b",
                "output": "out",
                "steps": [],
                "ms": 0.0,
                "checks": {"T": {"pass": True, "value": 1.0}},
            },
        ],
        "flips": {"fixed": [], "broke": [], "added": [], "removed": []},
        "experiment": experiment({"a": "pf", "b": "sp"}).to_json(),
        "run": "",
    }


def test_a_broken_limit_as_json():
    """Which, what was allowed, and the cases that count against it."""
    scorers: Any = concluded({"a": "f"}).to_json()["scorers"]
    assert scorers["S"]["broken"] == [{"limit": "miss", "allowed": 0, "cases": ["a"]}]


def test_an_error_is_told_only_of_cases_that_have_one():
    """`error` is absent elsewhere."""
    case = outcome("a", "f").model_copy(update={"error": "task raised ValueError"})
    assert case.to_json()["error"] == "task raised ValueError"
    assert "error" not in outcome("b", "f").to_json()


def test_results_of_skipped_checks_are_passed_over():
    """Even when there is one."""
    case = outcome("a", "f").model_copy(update={"skip": frozenset("S")})
    report = conclude("e", None, [case], scorers=["S"], allow={}, compare=None)
    assert report.passed
    assert report.experiment.cases == {"a": {}}
