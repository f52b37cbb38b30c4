"""What a language model is asked, and what of its answers counts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from trunchray.adapters.models.base import ModelReply, ReplyToken
from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds
from trunchray.core.folding import fold
from trunchray.core.rule import judged, yes_no
from trunchray.evaluators.judges.labelled import read_labelled
from trunchray.evaluators.judges.prompt import INSTRUCTIONS, labels, messages, schema

READY = Question("ready", "boolean", "Is it ready?", {YES: "it can be sent", NO: None})
TONE = Question("tone", "choice", "Which tone?", {"warm": "kind words", "cold": None})
GRADE = Question("grade", "score", "How good?", {"poor": None, "fair": None, "good": None})
ALL = (READY, TONE, GRADE)

SAID: dict[str, Any] = {
    "1": {"answer": "no", "probabilities": {"yes": 0.2, "no": 0.8}},
    "2": {"answer": "A", "probabilities": {"A": 0.9, "B": 0.1}},
    "3": {"answer": "C", "probabilities": {"A": 0.1, "B": 0.2, "C": 0.7}},
}
DECIDED = (
    Decision("ready", {YES: 0.2, NO: 0.8}, method="stated"),
    Decision("tone", {"warm": 0.9, "cold": 0.1}, "warm", "stated"),
    Decision("grade", {"poor": 0.1, "fair": 0.2, "good": 0.7}, method="stated"),
)


def read(said: Any, questions: Any = ALL, **reply: Any) -> Any:
    text = said if isinstance(said, str) else json.dumps(said)
    return read_labelled(questions, ModelReply(text, **reply))


def test_all_questions_are_asked_at_once() -> None:
    """One chat holds the state as JSON and every question with its answers, labelled; levels are in their order."""
    system, user = messages({"output": "Bitte © \ud83d"}, ALL)
    assert system == {"role": "system", "content": INSTRUCTIONS}
    assert user["content"] == (
        'The state:\n{\n "output": "Bitte © \ud83d"\n}\n\nThe questions:\n\n'
        "1. Is it ready?\n   yes (it can be sent)\n   no\n\n"
        "2. Which tone?\n   A: warm (kind words)\n   B: cold\n\n"
        "3. How good?\n   A: poor\n   B: fair\n   C: good"
    )


def test_models_without_a_system_prompt() -> None:
    """The instructions stand before everything else, or under the developer's name."""
    [only] = messages({}, ALL, "user")
    assert only["role"] == "user"
    assert only["content"].startswith(INSTRUCTIONS)
    assert [message["role"] for message in messages({}, ALL, "developer")] == ["developer", "user"]


@pytest.mark.parametrize(
    ("count", "first", "last"), [(1, "A", "A"), (26, "A", "Z"), (27, "1", "27"), (255, "1", "255")]
)
def test_labels(count: int, first: str, last: str) -> None:
    """Up to 26 answers have letters, more have numbers from 1."""
    found = labels(Question("q", "choice", "?", {f"option {n}": None for n in range(count)}))
    assert (next(iter(found)), list(found)[-1], len(found)) == (first, last, count)


def test_what_a_model_states() -> None:
    """Its labels are translated back, and its probabilities taken as they are."""
    assert read(SAID) == DECIDED
    assert read(f"```json\n{json.dumps(SAID)}\n```") == DECIDED


@pytest.mark.parametrize(
    ("place", "entry", "said"),
    [
        ("1", {"answer": "no", "probabilities": {"yes": 0.1, "no": 0.8}}, "add up to 0.9"),
        ("2", {"answer": "A", "probabilities": {"A": 0.8, "B": 0.1}}, "add up to 0.9"),
        ("3", {"answer": "C", "probabilities": {"A": 0.1, "B": 0.1, "C": 0.7}}, "add up to 0.9"),
        ("1", {"answer": "maybe", "probabilities": {"yes": 0.2, "no": 0.8}}, "'maybe', not one of yes, no"),
        ("2", {"answer": "warm", "probabilities": {"A": 0.9, "B": 0.1}}, "not one of A, B"),
        ("2", {"answer": "A", "probabilities": {"warm": 0.9, "cold": 0.1}}, "not of A, B"),
        ("2", {"answer": "A", "probabilities": {"A": 1.0}}, "not of A, B"),
        ("1", {"answer": "no", "probabilities": {"yes": -0.2, "no": 1.2}}, "from 0 to 1"),
        ("3", {"answer": "C", "probabilities": {"A": True, "B": 0, "C": 0}}, "from 0 to 1"),
        ("2", {"answer": "A", "probabilities": {"A": "high", "B": 0}}, "from 0 to 1"),
        ("1", {"answer": "yes", "probabilities": {"yes": 0.2, "no": 0.8}}, "holds another answer to be likelier"),
        ("3", {"answer": "A", "probabilities": {"A": 0.1, "B": 0.2, "C": 0.7}}, "another answer to be likelier"),
        ("1", {"answer": "no"}, "its probabilities are of None"),
        ("1", "no", "'no' is not an answer with probabilities"),
        ("4", {"answer": "no", "probabilities": {"yes": 0.2, "no": 0.8}}, "nobody asked for: 4"),
    ],
)
def test_an_answer_that_breaks_a_rule(place: str, entry: Any, said: str) -> None:
    """One of them makes the whole reply a parse-error, as with every judge."""
    found = read({**SAID, place: entry})
    assert isinstance(found, Fallback)
    assert (found.reason, said in (found.detail or "")) == ("parse-error", True), found.detail


@pytest.mark.parametrize(
    "text",
    ["It is ready, I am quite sure.", f"Sure! {json.dumps(SAID)}", json.dumps(SAID)[:-9], "", "[]", "{}", '{"1": NaN}'],
)
def test_prose_is_no_decision(text: str) -> None:
    """A judge that returns prose has not decided, whatever stands in it."""
    found = read(text)
    assert isinstance(found, Fallback)
    assert found.reason == "parse-error"


def test_a_reply_that_was_cut() -> None:
    """The message says so, because more output tokens may be the cure."""
    assert "(finish reason length)" in read(json.dumps(SAID)[:20], finish_reason="length").detail


def test_a_choice_against_its_own_odds() -> None:
    """What is picked and what is likeliest are both kept: whoever judges the check decides about it."""
    [found] = read({"1": {"answer": "B", "probabilities": {"A": 0.9, "B": 0.1}}}, [TONE])
    assert (found.choice, found.probabilities) == ("cold", {"warm": 0.9, "cold": 0.1})


def test_a_score_on_the_edge_of_its_scale() -> None:
    """Probabilities that add up to 1.02 are allowed, and do not lead out of the scale."""
    [found] = read({"1": {"answer": "C", "probabilities": {"A": 0.02, "B": 0, "C": 1}}}, [GRADE])
    assert found.probabilities == {"poor": 0.02, "fair": 0, "good": 1}


def tokens(text: str, odds: dict[str, dict[str, float]], *, size: int = 3) -> tuple[ReplyToken, ...]:
    """The text in tokens of so many characters, a label in one, with the probabilities of what could stand there.

    `odds` has them by the label and the text before it, in the order of the text.
    """
    found: list[ReplyToken] = []
    for chunk, likeliest in odds.items():
        before, label, text = text.partition(chunk)
        cut = [before[place : place + size] for place in range(0, len(before), size)]
        found += [ReplyToken(part, ((part, -0.001),)) for part in cut]
        found.append(ReplyToken(label, tuple((name, math.log(p)) for name, p in likeliest.items())))
    return (*found, ReplyToken(text, ((text, -0.001),)))


TWO = {name: SAID[name] for name in ("1", "2")}
TEXT = json.dumps(TWO)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_probabilities_of_tokens(size: int) -> None:
    """Where a reply has them they go before what it states, scaled to what is on labels; what is unlisted gets 0."""
    given = tokens(
        TEXT, {'no"': {'no"': 0.4, "yes": 0.2, "y": 0.1, "No": 0.1, "maybe": 0.1}, "A": {"A": 0.9}}, size=size
    )
    assert "".join(token.text for token in given) == TEXT
    ready, tone = read(TEXT, ALL[:2], tokens=given)
    assert ready.probabilities == pytest.approx({YES: 0.3 / 0.8, NO: 0.5 / 0.8})
    assert (tone.probabilities, tone.choice) == ({"warm": 1, "cold": 0}, "warm")
    assert {ready.method, tone.method} == {"logprobs"}


def test_a_token_that_begins_before_the_label() -> None:
    """Quotes that share a token with a label are no part of it."""
    given = tokens(TEXT, {' "no': {' "no': 0.7, ' "yes': 0.3}, '"A': {'"B': 0.6, '"A': 0.4}})
    ready, tone = read(TEXT, ALL[:2], tokens=given)
    assert ready.probabilities == pytest.approx({YES: 0.3, NO: 0.7})
    assert (tone.probabilities, tone.choice) == (pytest.approx({"warm": 0.4, "cold": 0.6}), "cold")


@pytest.mark.parametrize(
    "given",
    [
        (),
        tokens(TEXT, {"no": {"no": 0.4, "perhaps": 0.6}, "A": {"A": 0.99}}),
        tokens(TEXT, {"no": {"n": 0.6, "": 0.4}, "A": {}}),
        tokens(TEXT.replace("0.8", "0.7"), {"no": {"no": 0.99}, "A": {"A": 0.99}}),
    ],
    ids=["none", "too little on labels", "one question without", "of another text"],
)
def test_probabilities_of_tokens_that_do_not_tell(given: Any) -> None:
    """What the model states is taken instead, for all of its answers."""
    assert read(TEXT, ALL[:2], tokens=given) == DECIDED[:2]


def test_answers_in_another_order() -> None:
    """Tokens are found by their place, so an order of the model's own leaves only what it states."""
    text = json.dumps({name: SAID[name] for name in ("2", "1")})
    given = tokens(text, {'"A"': {'"A"': 0.99}, "no": {"no": 0.99}})
    assert {decision.method for decision in read(text, ALL[:2], tokens=given)} == {"stated"}


def test_where_tokens_tell_nothing_need_be_stated() -> None:
    """Small models state odd probabilities; those of their tokens are true. The answer itself must be one."""
    text = json.dumps({"1": {"answer": "no", "probabilities": {"yes": 0.2, "no": 0.2}}})
    [found] = read(text, [READY], tokens=tokens(text, {"no": {"no": 0.6, "yes": 0.2}}))
    assert (found.probabilities, found.method) == (pytest.approx({YES: 0.25, NO: 0.75}), "logprobs")
    other = json.dumps({"1": {"answer": "nope", "probabilities": {}}})
    assert isinstance(read(other, [READY], tokens=tokens(other, {"no": {"no": 0.99}})), Fallback)


def test_the_schema_of_an_answer() -> None:
    """Its keys are in the order in which they are to be written, and all of them are required."""
    asked = schema(ALL)
    assert list(asked["properties"]) == ["1", "2", "3"]  # type: ignore[arg-type]
    assert asked["properties"]["2"] == {  # type: ignore[index, call-overload]
        "type": "object",
        "properties": {
            "answer": {"type": "string", "enum": ["A", "B"]},
            "probabilities": {
                "type": "object",
                "properties": {"A": {"type": "number"}, "B": {"type": "number"}},
                "required": ["A", "B"],
                "additionalProperties": False,
            },
        },
        "required": ["answer", "probabilities"],
        "additionalProperties": False,
    }


def test_labels_that_begin_alike() -> None:
    """1 could be the beginning of 12: with more than 26 answers what the model states is taken."""
    many = Question("q", "choice", "?", {f"o{n}": None for n in range(1, 28)})
    stated = {label: 1.0 if label == "1" else 0.0 for label in labels(many)}
    text = json.dumps({"1": {"answer": "1", "probabilities": stated}})
    given = tokens(text, {'"answer": "': {"": 1.0}, "1": {"1": 0.99}})
    assert {decision.method for decision in read(text, [many], tokens=given)} == {"stated"}


def test_how_probabilities_were_found_is_recorded() -> None:
    """The result of a check says so, also of several attempts at once, unless they differ in it."""
    results = [
        judged(yes_no(), Decision("ready", {YES: 0.9, NO: 0.1}, method=method), Thresholds()).result
        for method in ("logprobs", "stated", None)
    ]
    assert [result.to_json().get("method") for result in results] == ["logprobs", "stated", None]
    logprobs, stated, _ = ({"ready": result} for result in results)
    failed = {"ready": CheckResult.failed("judge: timeout")}
    assert fold([logprobs, failed, logprobs])["ready"].method == "logprobs"
    assert fold([logprobs, stated])["ready"].method is None
