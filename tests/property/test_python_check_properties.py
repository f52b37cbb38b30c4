"""Laws of what checks return, and of the helpers."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.checked import a_run, said
from trunchray.evaluators.python.comparing import includes, matches
from trunchray.evaluators.python.reading import read_result
from trunchray.evaluators.python.trajectory import ran_steps
from trunchray.evaluators.python.words import avoids, mentions

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
NAMES = st.lists(st.sampled_from("abc"), max_size=6)
WORDS = st.lists(st.text("abAB ", min_size=1, max_size=3), min_size=1, max_size=5)


def shuffled(value: Any) -> Any:
    """The same value with the keys of all objects the other way round."""
    match value:
        case dict():
            return {key: shuffled(value[key]) for key in reversed(value)}
        case list():
            return [shuffled(item) for item in value]
        case _:
            return deepcopy(value)


@given(VALUES)
def test_every_value_matches_itself_whatever_the_order_of_keys(value: Any) -> None:
    """NaN included."""
    assert said(matches(), a_run(value, shuffled(value))).passed


@given(VALUES, VALUES)
def test_matches_goes_both_ways_and_by_canonical_text(one: Any, other: Any) -> None:
    """Two values match when their JSON is the same, with numbers as doubles, whichever is the output."""
    found = said(matches(), a_run(one, other))
    assert found.passed == said(matches(), a_run(other, one)).passed == (text(one) == text(other))
    assert (found.explanation is None) == found.passed


def text(value: Any) -> str:
    """JSON with all numbers as doubles, and no negative zero."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{text(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(text, value)) + "]"
        case int() | float() if not isinstance(value, bool):
            return repr(float(value) + 0.0)
        case _:
            return json.dumps(value)


@given(NAMES, NAMES)
def test_ran_steps_is_symmetric_and_1_only_for_the_same_bag(expected: list[str], actual: list[str]) -> None:
    """F1 of multisets."""
    found = said(ran_steps(expected), a_run(steps=" ".join(["-", *actual])))
    assert found.value == said(ran_steps(actual), a_run(steps=" ".join(["-", *expected]))).value
    assert found.passed == (found.value == 1) == (sorted(expected) == sorted(actual))


@given(WORDS, st.text("abAB ", max_size=20))
def test_mentions_and_avoids_look_for_the_same(words: list[str], output: str) -> None:
    """The value is the fraction of words found one by one; none found is what avoids wants."""
    share = said(mentions(words), a_run(output)).value
    assert share == sum(said(mentions([word]), a_run(output)).passed for word in words) / len(words)
    assert said(avoids(words), a_run(output)).passed == (share == 0)


@given(st.text(), st.text(), st.text(min_size=1))
def test_a_text_includes_each_of_its_words(before: str, after: str, word: str) -> None:
    """Separated by blanks, so that normalising joins nothing."""
    found = said(includes(), a_run(f"{before} {word} {after}", word))
    assert found.passed or found.explanation == "expectedOutput is empty"


@given(st.floats() | st.integers())
def test_numbers_pass_only_at_1(number: float) -> None:
    """Those from 0 to 1 are values; all others fail closed."""
    found = read_result(number)
    assert found.passed == (number == 1)
    assert found.value == (number if 0 <= number <= 1 else 0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["pass", "value", "explanation"]), inner),
    )
)
def test_whatever_is_returned_becomes_a_result(returned: Any) -> None:
    """Nothing that a check returns gets out as an error, and its explanation can be encoded."""
    (read_result(returned).explanation or "").encode()
