"""What people write as scorers, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from support.ids import shown
from trunchray.core.decisions import Question, Thresholds
from trunchray.core.rule import Rule
from trunchray.errors import UsageError
from trunchray.evaluators.python.asking import ask
from trunchray.evaluators.python.comparing import Matches, matches
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.scorer import HELPERS, CodeScorer, as_scorers, check_thresholds, needs_judge
from trunchray.evaluators.python.words import mentions


def asked(check: Any) -> JudgeScorer:
    scorer = as_scorers({"it": check})["it"]
    assert isinstance(scorer, JudgeScorer)
    return scorer


def rule(check: Any) -> Rule:
    return asked(check).rule


def test_without_scorers_matches_is_the_only_check() -> None:
    """It compares the output with expectedOutput."""
    found = as_scorers(None)
    assert list(found) == ["matches"]
    assert found == as_scorers({"matches": matches()})
    assert isinstance(found["matches"], CodeScorer)
    assert found["matches"].check == Matches()


def test_an_empty_map_of_scorers_is_refused() -> None:
    """It would pass everything."""
    with pytest.raises(UsageError, match="scorers is empty; leave it out to compare each output"):
        as_scorers({})


def test_a_sentence_is_a_yes_no_question() -> None:
    """With the bars of the judge."""
    scorer = asked("Is it polite?")
    assert scorer.question("polite") == Question("polite", "boolean", "Is it polite?", {"yes": None, "no": None})
    assert scorer.rule.thresholds == {}
    assert scorer.rule.passing == {"yes"}


def test_a_mapping_is_a_yes_no_question_with_its_own_bars() -> None:
    """Either, both or none of them."""
    assert rule({"question": "Q?", "yes": 0.9, "no": 0.2}).thresholds == {"yes": 0.9, "no": 0.2}
    assert rule({"question": "Q?", "yes": 1}).thresholds == {"yes": 1}
    assert asked({"question": "Q?"}) == asked("Q?")


def test_options_pass_by_name() -> None:
    """One or several; their value is 1, that of the others 0."""
    scorer = asked(ask("Q?", options=["a", "b", "c"], pass_=["a", "c"]))
    assert scorer.question("q") == Question("q", "choice", "Q?", {"a": None, "b": None, "c": None})
    assert (scorer.rule.worth, scorer.rule.passing) == ({"a": 1, "b": 0, "c": 1}, {"a", "c"})
    assert rule(ask("Q?", options=["a", "b"], pass_="b")).passing == {"b"}


def test_options_can_have_descriptions() -> None:
    """Which the judge is told."""
    found = rule(ask("Q?", options={"a": "the first", "b": None}, pass_="a"))
    assert found.answers == {"a": "the first", "b": None}


@pytest.mark.parametrize(
    ("pass_at", "passing"), [(1, {"a"}), (0.6, {"a", "b"}), (0.5, {"a", "b"}), (0.1, {"a", "b"}), (0, {"a", "b", "c"})]
)
def test_credit_is_the_value_and_passes_from_pass_at_on(pass_at: float, passing: set[str]) -> None:
    """Credit is a number, or comes with a description."""
    found = rule(ask("Q?", options={"a": 1, "b": {"credit": 0.6, "description": "half"}, "c": 0}, pass_at=pass_at))
    assert found.worth == {"a": 1, "b": 0.6, "c": 0}
    assert found.answers == {"a": None, "b": "half", "c": None}
    assert found.passing == passing


@pytest.mark.parametrize(
    ("level", "passing"), [("low", {"low", "mid", "high"}), ("mid", {"mid", "high"}), ("high", {"high"})]
)
def test_levels_pass_from_one_on(level: str, passing: set[str]) -> None:
    """They are listed lowest first; the value goes from 0 to 1 in equal steps."""
    scorer = asked(ask("Q?", levels=["low", "mid", "high"], pass_=level))
    assert scorer.question("q") == Question("q", "score", "Q?", {"low": None, "mid": None, "high": None})
    assert (scorer.rule.worth, scorer.rule.passing) == ({"low": 0, "mid": 0.5, "high": 1}, passing)
    assert rule(ask("Q?", levels={"low": "bad", "high": "good"}, pass_="high")).answers == {
        "low": "bad",
        "high": "good",
    }


def test_ask_takes_one_mapping_as_well_with_camel_case_keys() -> None:
    """`pass` is a word of Python's, and data files say passAt."""
    assert asked(ask("Q?", {"options": ["a", "b"], "pass": "a", "sure": 0.8})) == asked(
        ask("Q?", options=["a", "b"], pass_="a", sure=0.8)
    )
    worth = {"a": 1.0, "b": 0.5}
    expected = asked(ask("Q?", options=worth, pass_at=0.5))
    assert asked(ask("Q?", {"options": worth, "passAt": 0.5})) == expected
    assert asked(ask("Q?", {"options": worth}, pass_at=0.5)) == expected


def test_ask_has_its_own_bar() -> None:
    """How sure the judge must be."""
    assert rule(ask("Q?", options=["a"], pass_="a", sure=0.9)).thresholds == {"sure": 0.9}
    assert rule(ask("Q?", options=["a"], pass_="a")).thresholds == {}


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("", "a question must be a sentence, and not empty (got '')"),
        ("  ", "a question must be a sentence, and not empty (got '  ')"),
        ("Is \ud83d?", "a question must be a sentence, and not empty (got 'Is \\ud83d?')"),
        ({}, "a question must be a sentence, and not empty (got None)"),
        ({"question": 3}, "a question must be a sentence, and not empty (got 3)"),
        ({"question": "Q?", "yse": 0.5}, "has no 'yse' — did you mean 'yes'?"),
        ({"question": "Q?", "sure": 0.5}, "has no 'sure'; ask(...) has options and levels"),
        ({"question": "Q?", "yes": 1.1}, "yes must be a number from 0 to 1 (got 1.1)"),
        ({"question": "Q?", "no": "0"}, "no must be a number from 0 to 1 (got '0')"),
        ({"question": "Q?", "yes": True}, "yes must be a number from 0 to 1 (got True)"),
        ({"question": "Q?", "yes": 0.2, "no": 0.3}, "no (0.3) must not be above yes (0.2)"),
        (ask("", options=["a"], pass_="a"), "a question must be a sentence, and not empty (got '')"),
        (ask("Q?"), "ask() takes either options or levels"),
        (ask("Q?", options=["a"], levels=["a", "b"], pass_="a"), "ask() takes either options or levels"),
        (ask("Q?", options=["a"]), "ask() with options takes either pass_ or pass_at"),
        (ask("Q?", options={"a": 1}, pass_="a", pass_at=1), "ask() with options takes either pass_ or pass_at"),
        (ask("Q?", options=["alpha"], pass_="alhpa"), "pass_ names no option: 'alhpa' — did you mean 'alpha'?"),
        (ask("Q?", options=["a"], pass_=["a", "b"]), "pass_ names no option: 'b'; known: a"),
        (ask("Q?", options=["a"], pass_=[]), "pass_ must be the name of an option, or a list of names (got [])"),
        (ask("Q?", options=["a"], pass_=3), "pass_ must be the name of an option"),  # type: ignore[arg-type]
        (ask("Q?", options=["a"], pass_=[["a"]]), "pass_ names no option: ['a']"),  # type: ignore[list-item]
        (ask("Q?", options=[], pass_="a"), "a question has 1 to 255 options, not 0"),
        (ask("Q?", options=[f"o{n}" for n in range(256)], pass_="o1"), "a question has 1 to 255 options, not 256"),
        (ask("Q?", options=["a", "a"], pass_="a"), "two options have the name 'a'"),
        (ask("Q?", options=["a", ""], pass_="a"), "every option has a name, which is not empty (got '')"),
        (ask("Q?", options=["a", "\ud83d"], pass_="a"), "every option has a name, which is not empty (got '\\ud83d')"),
        (ask("Q?", options=["a", 3], pass_="a"), "every option has a name, which is not empty (got 3)"),  # type: ignore[list-item]
        (ask("Q?", options="ab", pass_="a"), "options must be a list of names, or a mapping"),
        (ask("Q?", options={"a": 1, "b": 0}, pass_="a"), "(got 1); credits need pass_at"),
        (ask("Q?", options=["a", "b"], pass_at=1), "with pass_at, options must be a mapping of names to credits"),
        (ask("Q?", options={"a": None}, pass_at=1), "the credit of 'a' must be a number from 0 to 1 (got None)"),
        (ask("Q?", options={"a": "x"}, pass_at=1), "the credit of 'a' must be a number from 0 to 1 (got 'x')"),
        (ask("Q?", options={"a": 1.5}, pass_at=1), "the credit of 'a' must be a number from 0 to 1 (got 1.5)"),
        (ask("Q?", options={"a": -0.1}, pass_at=1), "the credit of 'a' must be a number from 0 to 1 (got -0.1)"),
        (ask("Q?", options={"a": {"description": "x"}}, pass_at=1), "the credit of 'a' must be a number"),
        (
            ask("Q?", options={"a": {"credit": 1, "x": 1}}, pass_at=1),
            "option 'a' has a credit and a description, and no",
        ),
        (ask("Q?", options={"a": 1}, pass_at=2), "pass_at must be a number from 0 to 1 (got 2)"),
        (ask("Q?", levels=["a", "b"], pass_="c"), "pass_ names no level: 'c'; known: a, b"),
        (ask("Q?", levels=["a", "b"]), "pass_ must be the name of the lowest level that passes (got None)"),
        (
            ask("Q?", levels=["a", "b"], pass_=["a"]),
            "pass_ must be the name of the lowest level that passes (got ['a'])",
        ),
        (ask("Q?", levels=["a", "b"], pass_at=1), "ask() with levels takes pass_"),
        (ask("Q?", levels=["a"], pass_="a"), "a question has 2 to 10 levels, not 1"),
        (ask("Q?", levels=[f"l{n}" for n in range(11)], pass_="l1"), "a question has 2 to 10 levels, not 11"),
        (ask("Q?", levels=["a", "a"], pass_="a"), "two levels have the name 'a'"),
        (
            ask("Q?", levels={"a": 1, "b": 2}, pass_="a"),
            "the description of level 'a' must be a string or None (got 1)",
        ),
        (ask("Q?", options=["a"], pass_="a", sure=60), "sure must be a number from 0 to 1 (got 60)"),
        (ask("Q?", {"option": ["a"]}), "ask() has no 'option' — did you mean 'options'?"),
        (ask("Q?", {"options": ["a"], "pass": "a", "pass_": "a"}), "ask() was given 'pass_' twice"),
        (ask("Q?", {"options": ["a"]}, options=["b"], pass_="a"), "ask() was given 'options' twice"),
        (ask("Q?", ["a"]), "ask() takes options or levels by name, or a mapping"),  # type: ignore[arg-type]
        (
            3,
            "a check is a function of the run, a yes/no question, or what a helper such as mentions([…]) makes (got 3)",
        ),
        (None, "(got None)"),
        (lambda: True, "a check is called with the run alone, and this one takes ()"),
        (lambda run, strict: True, "and this one takes (run, strict)"),
        (lambda run, *, strict: True, "and this one takes (run, *, strict)"),
        (["Q?"], "(got ['Q?'])"),
        (mentions, "mentions makes a check when it is called; write mentions(…)"),
        (ask, "ask makes a check when it is called; write ask(…)"),
    ],
    ids=shown,
)
def test_what_is_no_check_is_refused_by_its_name(check: Any, problem: str) -> None:
    """Before anything runs, with what would be right."""
    with pytest.raises(UsageError) as e:
        as_scorers({"fine": "Q?", "bad": check})
    assert str(e.value).startswith("scorer 'bad': ")
    assert problem in str(e.value)


@pytest.mark.parametrize(
    ("name", "said"), [("", "''"), (" ", "' '"), (3, "3"), (None, "None"), ("\ud83d", "'\\ud83d'")]
)
def test_a_scorer_needs_a_name(name: Any, said: str) -> None:
    """It is what reports and limits call it."""
    with pytest.raises(UsageError, match="the name of a scorer must be a string") as e:
        as_scorers({name: "Q?"})
    assert said in str(e.value)


@pytest.mark.parametrize("scorers", [["Q?"], "Q?", 3, matches()])
def test_scorers_are_a_mapping(scorers: Any) -> None:
    """Of names to checks."""
    with pytest.raises(UsageError, match="scorers must be a mapping of names to checks"):
        as_scorers(scorers)


def test_scorers_that_are_read_stay_as_they_are() -> None:
    """So that they can be handed on."""
    found = as_scorers({"a": "Q?", "b": len})
    assert as_scorers(found) == found


def test_who_needs_a_judge_is_known() -> None:
    """Sentences and ask do, code does not."""
    scorers: dict[str, object] = {
        "code": len,
        "sentence": "Q?",
        "helper": mentions(["a"]),
        "ask": ask("Q?", options=["a"], pass_="a"),
        "bars": {"question": "Q?"},
    }
    assert needs_judge(as_scorers(scorers)) == ["sentence", "ask", "bars"]


def test_bars_of_a_check_must_go_with_those_of_the_judge() -> None:
    """A check's `yes` below the judge's `no` is told before anything runs."""
    scorers = as_scorers({"fine": "Q?", "low": {"question": "Q?", "yes": 0.2}})
    check_thresholds(scorers, Thresholds(no=0.1))
    with pytest.raises(UsageError, match=r"scorer 'low': .*no \(0.3\) must not be above yes \(0.2\)"):
        check_thresholds(scorers, Thresholds())


def test_every_public_helper_is_told_from_a_check() -> None:
    """Leaving out the parentheses is the easiest of mistakes."""
    for helper in HELPERS:
        with pytest.raises(UsageError, match=f"write {helper.__name__}"):
            as_scorers({"it": helper})


def test_digests_of_questions_are_of_question_and_rule() -> None:
    """All that decides a check is in its digest; the same question asked in two ways has the same."""
    different = [
        "Q?",
        "Q!",
        {"question": "Q?", "yes": 0.8},
        ask("Q?", options=["a", "b"], pass_="a"),
        ask("Q?", options=["a", "b"], pass_="b"),
        ask("Q?", options=["b", "a"], pass_="a"),
        ask("Q?", options={"a": "x", "b": None}, pass_="a"),
        ask("Q?", options={"a": 1, "b": 0}, pass_at=0.5),
        ask("Q?", levels=["a", "b"], pass_="a"),
        ask("Q?", levels=["b", "a"], pass_="a"),
        ask("Q?", options=["a", "b"], pass_="a", sure=0.7),
    ]
    assert len({asked(check).digest for check in different}) == len(different) - 1  # credits 1 and 0 pass as names do
    assert asked("Q?").digest == asked({"question": "Q?"}).digest
