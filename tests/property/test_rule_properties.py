"""Laws of what checks make of decisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.decisions import NO, YES, Decision, Thresholds
from trunchray.core.escalated import matching_answer
from trunchray.core.rule import judged, likeliest, yes_no

USUAL = Thresholds()


def of_yes(p: float) -> Decision:
    return Decision("q", {YES: p, NO: 1 - p})


@given(st.floats(0, 1), st.floats(0, 1))
def test_equal_bars_leave_nothing_between_them(p: float, bar: float) -> None:
    """Passing is tried first, so that yes == no has no dead zone."""
    found = judged(yes_no({"yes": bar, "no": bar}), of_yes(p), USUAL)
    assert not found.unsure
    assert found.result.passed == (p >= bar)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_yes_or_no_is_exactly_one_of_three(p: float, one: float, other: float) -> None:
    """A decision passes, or fails by a no, or is unsure; and the three go by the bars alone."""
    bars = Thresholds(yes=max(one, other), no=min(one, other))
    found = judged(yes_no(), of_yes(p), bars)
    assert found.result.passed == (p >= bars.yes)
    assert found.unsure == (bars.no < p < bars.yes)
    assert found.picked == (YES if found.result.passed else None if found.unsure else NO)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8).filter(any))
def test_what_is_picked_is_never_less_likely_than_another(weights: list[int]) -> None:
    """Without a choice of the judge, the answer picked is the first of the likeliest."""
    shares = {f"level {place}": weight / sum(weights) for place, weight in enumerate(weights)}
    picked, top = likeliest(Decision("q", shares))
    assert picked == top == f"level {weights.index(max(weights))}"


@given(
    st.sampled_from(["yes", "no", "refund", "Gutschrift", "ﬁne"]),
    st.sampled_from(["{}", '"{}"', "`{}`.", " {} ", "{}."]),
)
def test_every_answer_is_found_in_the_forms_allowed(answer: str, form: str) -> None:
    """Whatever the answers are called."""
    answers = ("yes", "no", "refund", "Gutschrift", "ﬁne")
    assert matching_answer(form.format(answer.upper()), answers) == answer
