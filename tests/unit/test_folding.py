"""Attempts at a case, folded into one result."""

from __future__ import annotations

from trunchray.core.check_result import CheckResult
from trunchray.core.folding import fold


def check(value: float, *, passed: bool | None = None, **more: object) -> CheckResult:
    return CheckResult.model_validate({"passed": value == 1 if passed is None else passed, "value": value} | more)


def folded(*results: CheckResult) -> CheckResult:
    return fold([{"S": result} for result in results])["S"]


def test_a_check_passes_iff_every_attempt_passes():
    """One failure of three is a failure."""
    assert folded(check(1), check(1), check(1)).passed
    assert not folded(check(1), check(0), check(1)).passed


def test_the_value_is_the_mean_over_attempts():
    """Of all of them: none is left out once one has failed."""
    assert folded(check(1), check(0), check(0.5)).value == 0.5


def test_probabilities_and_confidence_are_means_over_attempts_that_have_them():
    """A fallback has neither, and does not count as 0."""
    found = folded(
        check(0.9, probabilities={"yes": 0.9, "no": 0.1}, confidence=0.9),
        check(0, explanation="judge: timeout"),
        check(0.6, probabilities={"yes": 0.6, "no": 0.4}, confidence=0.6),
    )
    assert found.probabilities == {"yes": 0.75, "no": 0.25}
    assert found.confidence == 0.75
    assert found.value == 0.5


def test_without_any_probabilities_there_are_none():
    """Nor any confidence."""
    found = folded(check(1), check(1))
    assert (found.probabilities, found.confidence) == (None, None)


def test_the_explanation_is_of_the_first_failing_attempt():
    """Not of one that passed before it, nor of a later one; it says how many failed."""
    assert (
        folded(check(1, explanation="fine"), check(0, explanation="no"), check(0, explanation="never")).explanation
        == "no (failed 2 of 3 attempts)"
    )


def test_the_first_failing_attempt_may_have_nothing_to_say():
    """Then only how many failed is said."""
    assert folded(check(0), check(0, explanation="later")).explanation == "failed 2 of 2 attempts"


def test_where_all_pass_the_first_explanation_is_kept():
    """Passing checks explain themselves, too."""
    assert folded(check(1), check(1, explanation="steps not observed")).explanation == "steps not observed"


def test_escalated_when_an_attempt_was():
    """Once is enough."""
    assert folded(check(1), check(1, escalated=True)).escalated
    assert not folded(check(1), check(1)).escalated


def test_one_attempt_is_what_it_is():
    """No rounding, nothing lost."""
    one = check(0.3, passed=False, explanation="unsure (p=0.30)", probabilities={"yes": 0.3, "no": 0.7}, confidence=0.7)
    assert folded(one) == one


def test_checks_keep_their_order():
    """That of the first attempt, which is that of the spec."""
    assert list(fold([{"T": check(1), "S": check(1)}] * 2)) == ["T", "S"]


def test_a_check_that_an_attempt_lacks_failed_it():
    """Fail closed: what was not done was not passed."""
    found = fold([{"S": check(1)}, {}])["S"]
    assert (found.passed, found.value, found.explanation) == (
        False,
        0.5,
        "attempt 2 has no result (failed 1 of 2 attempts)",
    )


def test_no_attempts_have_no_results():
    """And are no error."""
    assert fold([]) == {}
