"""The table of helpers, value by value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from support.checked import ABSENT, a_run, said, verdict
from support.ids import shown
from trunchray.core.record import RunRecord, StepRecord
from trunchray.errors import UsageError
from trunchray.evaluators.python.comparing import includes, matches
from trunchray.evaluators.python.scorer import as_scorers
from trunchray.evaluators.python.trajectory import ran_steps, steps_at_most, under
from trunchray.evaluators.python.words import avoids, mentions


class Order(BaseModel):
    id: int
    tags: tuple[str, ...] = ()


@dataclass
class Point:
    x: int


LONG = " ".join(["word"] * 40)


def deep(inner: Any, depth: int = 50) -> Any:
    for _ in range(depth):
        inner = {"in": [inner]}
    return inner


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        ("a", "a", True),
        ("a", "A", False),
        ("é", "e\u0301", False),
        ("1", 1, False),
        ("", None, False),
        (None, None, True),
        (True, True, True),
        (True, 1, False),
        (False, 0, False),
        (0, False, False),
        (1, 1.0, True),
        (1.0, 1, True),
        (0.0, -0.0, True),
        (1, 2, False),
        (0.1 + 0.2, 0.3, False),
        (math.nan, math.nan, True),
        (math.nan, 1, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        ([], [], True),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([1, True], [1, 1], False),
        ([math.nan], [math.nan], True),
        ((1, 2), [1, 2], True),
        ({}, {}, True),
        ({}, [], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": None}, {}, False),
        ({"a": True}, {"a": 1}, False),
        (Order(id=1, tags=("x",)), {"id": 1, "tags": ["x"]}, True),
        (Order(id=1), {"id": 2, "tags": []}, False),
        ([Point(1)], [{"x": 1}], True),
        (date(2026, 1, 2), "2026-01-02", True),
        ({1: "a"}, {"1": "a"}, True),
        (deep(1), deep(1.0), True),
        (deep(1), deep(True), False),
        (object(), {}, False),
    ],
    ids=shown,
)
def test_matches_is_strict_equality_of_json(output: Any, expected: Any, equal: bool) -> None:
    """True is not 1, 1 is 1.0, NaN is NaN; key order is ignored, list order is not, a missing key is not null."""
    assert verdict(matches(), a_run(output, expected)) == (equal, float(equal))


def test_matches_without_an_expected_output_fails_closed() -> None:
    """Also where the output is None: nothing was said about it."""
    assert said(matches(), a_run(None)).explanation == "no expectedOutput"
    assert not said(matches("a"), a_run({"a": None})).passed
    assert not said(matches(lambda found: found), a_run(None)).passed


@pytest.mark.parametrize(
    ("output", "expected", "equal"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": True}, {"a": 1}, False),
        ({}, {"a": None}, False),
        ({"a": None}, {}, False),
        ({}, {}, False),
        ("a", "a", False),
        (None, None, False),
        ([1], [1], False),
        (Order(id=1), {"a": 1}, False),
    ],
)
def test_matches_of_a_key_compares_that_field_and_fails_where_a_side_lacks_it(
    output: Any, expected: Any, equal: bool
) -> None:
    """A field that neither has is not the same field."""
    assert verdict(matches("a"), a_run(output, expected)) == (equal, float(equal))


def test_matches_of_a_key_says_which_side_lacks_it() -> None:
    """So that somebody can tell a bad case from a bad answer."""
    assert said(matches("a"), a_run({"b": 1}, {"a": 1})).explanation == "no field 'a' in output"
    assert said(matches("a"), a_run({"a": 1}, {"b": 1})).explanation == "no field 'a' in expectedOutput"


def test_matches_of_an_accessor_calls_it_with_each() -> None:
    """It is given the output as the task returned it."""
    second: Callable[[Any], Any] = lambda found: found[1]  # noqa: E731 - as people write it
    assert verdict(matches(second), a_run([0, 1], [5, 1])) == (True, 1)
    assert verdict(matches(second), a_run([0, 1], [0, 2])) == (False, 0)
    assert verdict(matches(len), a_run((1, 2), "ab")) == (True, 1)
    assert verdict(matches(lambda found: found if isinstance(found, dict) else found.x), a_run(Point(1), {"x": 1})) == (
        False,
        0,
    )
    with pytest.raises(IndexError):
        said(matches(second), a_run([0], [0, 1]))


@pytest.mark.parametrize(
    ("output", "expected", "explanation"),
    [
        (1, 2, "output is 1, not 2"),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, 'output.a[1].b is "x", not "y"'),
        ({"a": 1}, {"b": 1}, 'output is {"a": 1}, not {"b": 1}'),
        ([1], [1, 2], "output is [1], not [1, 2]"),
        (
            f"{LONG} it is ready to go. {LONG}",
            f"{LONG} it is ready to stay. {LONG}",
            (
                f'output differs from character 216 on: "…word word word it is ready to go. {LONG[:26]}", not '
                f'"…word word word it is ready to stay. {LONG[:24]}"'
            ),
        ),
        (LONG, LONG + "!", f'output differs from character 200 on: "…{LONG[-30:]}", not "…{LONG[-30:]}!"'),
        ({"a": LONG, "b": 1}, {"a": LONG, "c": 1}, 'output lacks "c" and also has "b"'),
        ([LONG, 1, 2], [LONG, 3], "output has 3 items, not 2; output[1] is 1, not 3"),
        ([LONG, 1], [LONG], "output has 2 items, not 1; more is [1]: 1"),
        ([LONG], [LONG, {"a": 1}], 'output has 1 items, not 2; missing is [1]: {"a": 1}'),
    ],
)
def test_matches_says_where_the_two_first_differ(output: Any, expected: Any, explanation: str) -> None:
    """However deep that is."""
    assert said(matches(), a_run(output, expected)).explanation == explanation


@pytest.mark.parametrize(
    ("output", "expected", "there"),
    [
        ("the full refund", "refund", True),
        ("refund", "refund", True),
        ("refund", "the refund", False),
        ("Refund", "refund", False),
        ("a  b\n\tc", "a b c", True),
        ("a b", " a \n b ", True),
        ("ab", "a b", False),
        ("ﬁne", "fine", True),
        ("fine", "ﬁne", True),
        ("１２", "12", True),
        ("e\u0301", "\u00e9", True),
        ("a\u00a0b", "a b", True),
        ("\ufeffa", "a", True),
        ("anything", "", False),
        ("anything", " \n", False),
        ("", "", False),
        ("", "a", False),
        (1, "1", False),
        ("1", 1, False),
        (None, "a", False),
        (["a"], "a", False),
        ("null", None, False),
        ("anything", ABSENT, False),
    ],
)
def test_includes_compares_normalised_text_and_nothing_else(output: Any, expected: Any, there: bool) -> None:
    """NFKC, then trimmed, then white space collapsed; case counts; an empty expected text fails closed."""
    assert verdict(includes(), a_run(output, expected)) == (there, float(there))


def test_includes_says_what_is_no_text() -> None:
    """And when there is nothing to look for."""
    assert said(includes(), a_run(3, "a")).explanation == "output is 3, not a string"
    assert said(includes(), a_run("a", 3)).explanation == "expectedOutput is 3, not a string"
    assert said(includes(), a_run("a", " ")).explanation == "expectedOutput is empty"
    assert said(includes(), a_run("a")).explanation == "no expectedOutput"


@pytest.mark.parametrize(
    ("words", "output", "value"),
    [
        (["refund"], "Your REFUND is on its way", 1),
        (["refund"], "refunded", 1),
        (["refund", "sorry"], "refund", 0.5),
        (["a", "b", "c"], "b", 1 / 3),
        (["x"], "", 0),
        (["two words"], "in Two Words here", 1),
        (["two words"], "two  words", 0),
        (["STRASSE"], "straße", 1),
        (["Straße"], "STRASSE", 1),
        (["x", "x"], "x", 1),
        (["a", "a", "b"], "a", 2 / 3),
        (["b"], {"a": "B"}, 1),
        (['"a":1'], {"a": 1}, 1),
        (['{"a":1,"b":2}'], {"b": 2, "a": 1}, 1),
        (["true"], True, 1),
        (["null"], None, 1),
        (["1.5"], 1.5, 1),
        (["ä"], {"a": "ä"}, 1),
        (["12345678901234567890"], {"id": 12345678901234567890}, 1),
        (["x"], object(), 0),
        (["nan"], math.nan, 0),
        (("refund",), "refund", 1),
    ],
    ids=shown,
)
def test_mentions_is_worth_the_fraction_of_words_found(words: Any, output: Any, value: float) -> None:
    """Any case, inside of other words, in the canonical JSON of what is no text; all must be there."""
    assert verdict(mentions(words), a_run(output)) == (value == 1, value)


@pytest.mark.parametrize(("at_least", "passed"), [(1, False), (0.51, False), (0.5, True), (0.1, True)])
def test_mentions_passes_from_at_least_on(at_least: float, passed: bool) -> None:
    """The value stays the fraction."""
    assert verdict(mentions(["a", "b"], at_least=at_least), a_run("a")) == (passed, 0.5)


def test_mentions_says_what_is_missing() -> None:
    """Even when it passes on partial credit."""
    assert said(mentions(["a", "b", "c"], at_least=0.1), a_run("b")).explanation == 'does not mention "a", "c"'


def test_mentions_takes_words_per_case() -> None:
    """A function of the run says which; none at all pass with value 1."""
    check = mentions(lambda run: run.expected_output)
    assert verdict(check, a_run("a and b", ["A", "b"])) == (True, 1)
    assert verdict(check, a_run("a", ["a", "b"])) == (False, 0.5)
    assert verdict(check, a_run("a", [])) == (True, 1)
    assert verdict(avoids(lambda run: run.expected_output), a_run("a", [])) == (True, 1)


@pytest.mark.parametrize("words", [None, "a", 3, [1], [""], ["a", None], {"a"}, [["a"]]], ids=shown)
def test_words_per_case_that_are_no_list_of_strings_fail_closed(words: Any) -> None:
    """A single string would be looked for letter by letter."""
    for check in (mentions(lambda _: words), avoids(lambda _: words)):
        found = said(check, a_run("a"))
        assert (found.passed, found.value) == (False, 0)
        assert (found.explanation or "").startswith("words returned ")


@pytest.mark.parametrize(
    ("words", "output", "passed"),
    [
        (["guarantee"], "no promises", True),
        (["guarantee"], "We GUARANTEE it", False),
        (["a", "b"], "b", False),
        (["a"], "", True),
        (["secret"], {"note": "Secret"}, False),
        (["a"], object(), False),
    ],
    ids=shown,
)
def test_avoids_passes_when_no_word_is_there(words: Any, output: Any, passed: bool) -> None:
    """Value 1 or 0; an output without text fails closed."""
    assert verdict(avoids(words), a_run(output)) == (passed, float(passed))


def test_avoids_says_which_words_it_found() -> None:
    """By their own spelling."""
    assert said(avoids(["A", "b", "c"]), a_run("ac")).explanation == 'mentions "A", "c"'


@pytest.mark.parametrize(
    ("names", "steps", "value"),
    [
        ("a b", "a b", 1),
        ("a b", "b a", 1),
        ("a b", "- b - a -", 1),
        ("a", "a a", 2 / 3),
        ("a a", "a", 2 / 3),
        ("a a", "a a", 1),
        ("a b", "a", 2 / 3),
        ("a", "b", 0),
        ("a", "A", 0),
        ("a b", "a c", 0.5),
        ("a", "-", 0),
        ("a", "", 0),
        ("", "-", 1),
        ("", "- -", 1),
        ("", "", 0),
        ("", "a", 0),
        ("", "- a", 0),
    ],
)
def test_ran_steps_is_worth_the_f1_of_two_bags_of_names(names: str, steps: str, value: float) -> None:
    """Order is ignored and model calls have no name; a doubled call is not one; nothing observed fails, even for []."""
    found = said(ran_steps(names.split()), a_run(steps=steps))
    assert found.value == pytest.approx(value)
    assert found.passed == (value == 1)


@pytest.mark.parametrize(("at_least", "passed"), [(1, False), (0.7, False), (2 / 3, True), (0.5, True)])
def test_ran_steps_passes_from_at_least_on(at_least: float, passed: bool) -> None:
    """The value stays the F1."""
    assert verdict(ran_steps(["a"], at_least=at_least), a_run(steps="a a")) == (passed, pytest.approx(2 / 3))


def test_ran_steps_says_what_ran_and_what_did_not() -> None:
    """A doubled call is one too many."""
    assert said(ran_steps(["a", "b"]), a_run(steps="a a")).explanation == (
        'did not run "b"; ran "a" beyond what is named'
    )
    assert said(ran_steps([]), a_run(steps="")).explanation == "steps not observed"


def test_ran_steps_counts_steps_of_workflows_and_tools_without_a_name() -> None:
    """A tool call nobody can name is still one that was not to be."""
    named = RunRecord("in", "out", steps=(StepRecord("step", "plan"), StepRecord("tool", "search")))
    assert verdict(ran_steps(["search", "plan"]), named) == (True, 1)
    assert verdict(ran_steps([]), RunRecord("in", "out", steps=(StepRecord("tool"),))) == (False, 0)
    assert verdict(ran_steps([]), RunRecord("in", "out", steps=(StepRecord("llm", "gpt"),))) == (True, 1)


@pytest.mark.parametrize(
    ("n", "steps", "passed"),
    [(2, "- a", True), (2, "- a b", False), (0, "-", False), (1, "a", True), (0, "", True), (5, "", True)],
)
def test_steps_at_most_counts_steps_of_every_kind(n: int, steps: str, passed: bool) -> None:
    """A run nobody observed has none, and passes."""
    assert verdict(steps_at_most(n), a_run(steps=steps)) == (passed, float(passed))


def test_steps_at_most_says_that_steps_were_not_observed() -> None:
    """Though it passes."""
    assert said(steps_at_most(3), a_run(steps="")).explanation == "steps not observed"
    assert said(steps_at_most(3), a_run(steps="-")).explanation is None
    assert said(steps_at_most(0), a_run(steps="-")).explanation == "took 1 steps, at most 0 are allowed"


@pytest.mark.parametrize(
    ("ms", "passed"), [(0, True), (4999.9, True), (5000, True), (5000.1, False), (math.inf, False)]
)
def test_under_passes_up_to_its_limit(ms: float, passed: bool) -> None:
    """The limit itself is within."""
    assert verdict(under(ms=5_000), a_run(ms=ms)) == (passed, float(passed))


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (matches(3), "matches() takes a key or a function (got 3)"),  # type: ignore[arg-type]
        (matches(""), "matches() takes a key or a function (got '')"),
        (mentions([]), "needs at least one word"),
        (mentions("refund"), "words are one string; write ['refund']"),
        (mentions(["a", ""]), "words must be strings, and not empty (got '')"),
        (mentions(["a", 3]), "words must be strings, and not empty (got 3)"),  # type: ignore[list-item]
        (mentions(None), "words must be a list of strings (got None)"),  # type: ignore[arg-type]
        (mentions(["a"], at_least=0), "at_least must be above 0 and at most 1 (got 0)"),
        (mentions(["a"], at_least=1.1), "at_least must be above 0 and at most 1 (got 1.1)"),
        (mentions(["a"], at_least=math.nan), "at_least must be above 0 and at most 1 (got nan)"),
        (mentions(["a"], at_least=True), "at_least must be above 0 and at most 1 (got True)"),
        (avoids([]), "needs at least one word"),
        (avoids("a"), "words are one string; write ['a']"),
        (ran_steps("search"), "names are one string; write ['search']"),
        (ran_steps([None]), "names must be strings, and not empty (got None)"),  # type: ignore[list-item]
        (ran_steps(["a"], at_least=0), "at_least must be above 0 and at most 1 (got 0)"),
        (steps_at_most(-1), "steps_at_most() takes a whole number from 0 on (got -1)"),
        (steps_at_most(1.5), "steps_at_most() takes a whole number from 0 on (got 1.5)"),  # type: ignore[arg-type]
        (steps_at_most(True), "steps_at_most() takes a whole number from 0 on (got True)"),
        (under(ms=0), "under() takes milliseconds above 0 (got 0)"),
        (under(ms="5s"), "under() takes milliseconds above 0 (got '5s')"),  # type: ignore[arg-type]
        (under(ms=math.inf), "under() takes milliseconds above 0 (got inf)"),
    ],
)
def test_a_helper_that_makes_no_sense_is_refused_by_the_scorers_name(check: Any, problem: str) -> None:
    """Before anything runs, and with what would be right."""
    with pytest.raises(UsageError) as e:
        as_scorers({"fine": matches(), "bad": check})
    assert str(e.value) == f"scorer 'bad': {problem}"


async def coroutine(_: Any) -> list[str]:
    return ["a"]


@pytest.mark.parametrize("check", [matches(coroutine), mentions(coroutine), avoids(coroutine)])  # type: ignore[arg-type]
def test_functions_inside_of_helpers_cannot_be_async(check: Any) -> None:
    """Their result is needed at once."""
    with pytest.raises(UsageError, match="must be a plain function, not an async one"):
        as_scorers({"bad": check})
