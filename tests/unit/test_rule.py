"""What checks make of decisions: bars, picks, ties, and what somebody else answers where the judge is unsure."""

from __future__ import annotations

from math import nextafter

import pytest

from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import NO, YES, Decision, Thresholds
from trunchray.core.escalated import answered, matching_answer, unanswered
from trunchray.core.rule import Judged, Rule, judged, likeliest, yes_no
from trunchray.errors import UsageError

USUAL = Thresholds()

OPTIONS = Rule(
    "choice", dict.fromkeys(("good", "fair", "bad")), {"good": 1.0, "fair": 0.5, "bad": 0.0}, frozenset({"good"})
)
LEVELS = Rule(
    "score", dict.fromkeys(("low", "mid", "high")), {"low": 0.0, "mid": 0.5, "high": 1.0}, frozenset({"high"})
)


def of_yes(p: float) -> Decision:
    return Decision("q", {YES: p, NO: 1 - p})


def of(probabilities: dict[str, float], choice: str | None = None) -> Decision:
    return Decision("q", probabilities, choice)


@pytest.mark.parametrize(
    ("p", "passed", "explanation"),
    [
        (1.0, True, None),
        (0.7, True, None),
        (nextafter(0.7, 0), False, "unsure (p=0.70)"),
        (0.52, False, "unsure (p=0.52)"),
        (nextafter(0.3, 1), False, "unsure (p=0.30)"),
        (0.3, False, "answered 'no' (p=0.30 of yes)"),
        (0.0, False, "answered 'no' (p=0.00 of yes)"),
    ],
)
def test_yes_or_no_passes_from_yes_on_fails_up_to_no_and_is_unsure_between(
    p: float, passed: bool, explanation: str | None
) -> None:
    """The bars are 0.7 and 0.3, both included; whatever comes of it, the value is the probability of yes."""
    found = judged(yes_no(), of_yes(p), USUAL)
    assert (found.result.passed, found.result.value, found.result.explanation) == (passed, p, explanation)
    assert found.unsure == (explanation is not None and explanation.startswith("unsure"))
    assert found.result.probabilities == {YES: p, NO: 1 - p}
    assert found.result.confidence == max(p, 1 - p)


@pytest.mark.parametrize(
    ("own", "judges", "passed"),
    [({}, USUAL, False), ({}, Thresholds(yes=0.5), True), ({"yes": 0.6}, Thresholds(yes=0.5), False)],
)
def test_a_checks_own_bar_comes_before_the_judges_and_that_before_the_usual(
    own: dict[str, float], judges: Thresholds, passed: bool
) -> None:
    """Thresholds: check, then judge, then 0.7 / 0.3 / 0.6."""
    assert judged(yes_no(own), of_yes(0.55), judges).result.passed == passed


def test_own_sure_comes_before_the_judges() -> None:
    """So does the bar for questions with options."""
    decision = of({"good": 0.55, "fair": 0.25, "bad": 0.2})
    assert judged(OPTIONS, decision, USUAL).unsure
    own = Rule(OPTIONS.type, OPTIONS.answers, OPTIONS.worth, OPTIONS.passing, {"sure": 0.5})
    assert judged(own, decision, Thresholds(sure=0.9)).result.passed


def test_bars_that_do_not_go_together_are_refused() -> None:
    """A check's `yes` below the judge's `no` would leave no meaning to either."""
    with pytest.raises(UsageError, match=r"no \(0.3\) must not be above yes \(0.2\)"):
        yes_no({"yes": 0.2}).in_force(USUAL)


@pytest.mark.parametrize(
    ("probabilities", "choice", "expected"),
    [
        ({"good": 0.8, "fair": 0.1, "bad": 0.1}, "good", (True, 1.0, None)),
        ({"good": 0.1, "fair": 0.8, "bad": 0.1}, "fair", (False, 0.5, "answered 'fair' (p=0.80)")),
        ({"good": 0.6, "fair": 0.4, "bad": 0.0}, "good", (True, 1.0, None)),
        ({"good": 0.59, "fair": 0.41, "bad": 0.0}, "good", (False, 1.0, "unsure (p=0.59)")),
        ({"good": 0.1, "fair": 0.5, "bad": 0.4}, "fair", (False, 0.5, "unsure (p=0.50)")),
    ],
)
def test_a_pick_passes_when_it_is_one_that_passes_and_sure(
    probabilities: dict[str, float], choice: str, expected: tuple[bool, float, str | None]
) -> None:
    """The value is what the picked answer is worth; under `sure` it fails, and says how likely the likeliest is."""
    found = judged(OPTIONS, of(probabilities, choice), USUAL)
    assert (found.result.passed, found.result.value, found.result.explanation) == expected
    assert found.unsure == (expected[2] or "").startswith("unsure")
    assert found.result.probabilities == probabilities
    assert found.result.confidence == max(probabilities.values())


def test_levels_spread_over_neighbours_are_unsure_even_where_all_of_them_pass() -> None:
    """What counts is the likeliest level, not how likely it is that one of those that pass is right."""
    rule = Rule(LEVELS.type, LEVELS.answers, LEVELS.worth, frozenset({"mid", "high"}))
    found = judged(rule, of({"low": 0.0, "mid": 0.5, "high": 0.5}), USUAL)
    assert found.unsure
    assert (found.result.passed, found.result.explanation, found.picked) == (False, "unsure (p=0.50)", "mid")


def test_the_likeliest_is_picked_not_the_rounded_mean() -> None:
    """Of levels 0 and 2 the mean is 1, which nobody thinks likely."""
    assert likeliest(of({"low": 0.45, "mid": 0.1, "high": 0.45})) == ("low", "low")
    assert likeliest(of({"low": 0.4, "mid": 0.1, "high": 0.5})) == ("high", "high")


def test_of_equally_likely_answers_the_first_is_picked_unless_the_judge_chooses() -> None:
    """A tie goes to the lowest place; the choice of the judge decides it, up to a difference of 1e-9."""
    assert likeliest(of({"good": 0.5, "bad": 0.5})) == ("good", "good")
    assert likeliest(of({"good": 0.5, "bad": 0.5}, "bad")) == ("bad", "good")
    assert likeliest(of({"good": 0.5, "bad": 0.5 - 5e-10}, "bad")) == ("bad", "good")
    assert likeliest(of({"good": 0.5, "bad": 0.5 - 5e-9}, "bad")) == (None, "good")


def test_a_choice_that_is_not_the_likeliest_is_an_inconsistent_decision() -> None:
    """It fails closed, is not asked again, and keeps the probabilities."""
    found = judged(OPTIONS, of({"good": 0.9, "fair": 0.1, "bad": 0.0}, "fair"), USUAL)
    assert found.result == CheckResult(
        passed=False,
        value=0.0,
        explanation="inconsistent decision: chose 'fair' (p=0.10) though 'good' (p=0.90) is likelier",
        probabilities={"good": 0.9, "fair": 0.1, "bad": 0.0},
        confidence=0.9,
    )
    assert (found.unsure, found.picked) == (False, None)


UNSURE = CheckResult(passed=False, value=0.52, explanation="unsure (p=0.52)", probabilities={YES: 0.52, NO: 0.48})


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("yes", YES),
        ("No", NO),
        (" YES \n", YES),
        ("yes.", YES),
        ('"yes"', YES),
        ("'no'", NO),
        ("`yes`", YES),
        ("“yes”", YES),
        ('"yes."', YES),
        ('"yes".', YES),
        ("ＹＥＳ", YES),
        ("", None),
        ("y", None),
        ("yes!", None),
        ("yes..", None),
        ('"yes.".', None),
        ('""yes""', None),
        ('"yes', None),
        ("yes no", None),
        ("Yes, it is ready.", None),
        ("The answer is yes", None),
        ("**yes**", None),
        ("yes\nno", None),
        (".", None),
        ('"', None),
    ],
)
def test_a_reply_counts_only_when_it_is_exactly_one_answer(reply: str, answer: str | None) -> None:
    """NFKC, blanks, case, one pair of quotes, one full stop; nothing is looked for inside of prose."""
    assert matching_answer(reply, (YES, NO)) == answer


def test_a_reply_that_could_be_two_answers_is_none() -> None:
    """Answers that differ in case alone cannot be told apart."""
    assert matching_answer("a", ("A", "a")) is None
    assert matching_answer("b", ("A", "a", "b")) == "b"


def test_an_answer_may_have_a_full_stop_of_its_own() -> None:
    """The reply as it is comes before the reply without its full stop."""
    assert matching_answer("etc.", ("etc.", "etc")) == "etc."
    assert matching_answer("etc", ("etc.", "etc")) == "etc"


def test_escalated_yes_passes_with_value_1_and_keeps_the_first_probabilities() -> None:
    """The same rule without the bars; who was asked first is still seen."""
    assert answered(yes_no(), UNSURE, "Yes.").to_json() == {
        "pass": True,
        "value": 1.0,
        "probabilities": {YES: 0.52, NO: 0.48},
        "escalated": True,
    }


def test_escalated_no_fails_with_value_0() -> None:
    """An unsure decision can still fail after it was asked again."""
    found = answered(yes_no(), UNSURE, "no")
    assert (found.passed, found.value, found.escalated) == (False, 0.0, True)
    assert found.explanation == "answered 'no' when asked again"


@pytest.mark.parametrize(("reply", "passed", "value"), [("high", True, 1.0), ("MID", False, 0.5), ("low", False, 0.0)])
def test_escalated_levels_are_worth_what_they_always_are(reply: str, passed: bool, value: float) -> None:
    """Options and levels pass by the rule of the check."""
    found = answered(LEVELS, UNSURE, reply)
    assert (found.passed, found.value) == (passed, value)


def test_escalated_prose_fails_closed() -> None:
    """A reply off the answer space is no answer, however clear it is to people."""
    found = answered(yes_no(), UNSURE, "Yes, definitely")
    assert (found.passed, found.value, found.escalated) == (False, 0.0, True)
    assert found.explanation == "escalation: replied 'Yes, definitely', which is not exactly one of 'yes', 'no'"
    assert found.probabilities == UNSURE.probabilities


def test_escalation_without_an_answer_says_why() -> None:
    """Its explanation begins with the word."""
    assert unanswered(UNSURE, "suspended").explanation == "escalation: suspended"


def test_rules_are_told_apart_by_all_that_is_in_them() -> None:
    """Order of levels, worth, what passes, and own bars."""
    other = [
        yes_no(),
        yes_no({"yes": 0.8}),
        OPTIONS,
        LEVELS,
        Rule("score", dict.fromkeys(("high", "mid", "low")), LEVELS.worth, LEVELS.passing),
        Rule("score", LEVELS.answers, LEVELS.worth, frozenset({"mid", "high"})),
    ]
    assert len({str(rule.to_json()) for rule in other}) == len(other)
    assert isinstance(judged(yes_no(), of_yes(1), USUAL), Judged)
