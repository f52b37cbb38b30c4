"""What a judge is asked, and what counts as an answer of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from trunchray.core.decision_reply import read_decisions, read_reply
from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds, check_questions
from trunchray.errors import UsageError

READY = Question("ready", "boolean", "Is it ready?", {YES: None, NO: None})
TONE = Question("tone", "choice", "Which tone?", {"warm": "kind words", "cold": None, "rude": None})
GRADE = Question("grade", "score", "How good?", {"poor": None, "fair": "some errors", "good": None})
ALL = (READY, TONE, GRADE)

NOUL: dict[str, Any] = {"id": "ready", "type": "noul", "noul": 0.91}
CHOICE: dict[str, Any] = {
    "id": "tone",
    "type": "choice",
    "choice": "warm",
    "probabilities": {"warm": 0.8, "cold": 0.15, "rude": 0.05},
    "confidence": 0.7,
}
SCORE: dict[str, Any] = {
    "id": "grade",
    "type": "score",
    "score": 1.6,
    "legend": {"0": "poor", "1": "fair: some errors", "2": "good"},
    "probabilities": {"0": 0.1, "1": 0.2, "2": 0.7},
    "confidence": 0.55,
}
DECIDED = (
    Decision("ready", {"yes": 0.91, "no": pytest.approx(0.09)}),  # pyright: ignore[reportArgumentType]
    Decision("tone", {"warm": 0.8, "cold": 0.15, "rude": 0.05}, "warm"),
    Decision("grade", {"poor": 0.1, "fair": 0.2, "good": 0.7}),
)


def refused(question: Question, decision: Any) -> str:
    """Why one decision about one question is none."""
    found = read_decisions([question], [decision])
    assert isinstance(found, Fallback)
    assert found.reason == "parse-error"
    return found.detail or ""


def test_questions_as_a_step_is_asked_them() -> None:
    """Questions are a list with ids; criteria name the options, or the levels with the lowest first."""
    assert READY.to_json() == {"id": "ready", "type": "boolean", "instructions": "Is it ready?"}
    assert TONE.to_json() == {
        "id": "tone",
        "type": "choice",
        "instructions": "Which tone?",
        "criteria": {"warm": "kind words", "cold": None, "rude": None},
    }
    assert GRADE.to_json()["criteria"] == ["poor", "fair: some errors", "good"]


def test_questions_on_the_wire() -> None:
    """On the wire a boolean question is a noul, and no question holds its own id."""
    described = Question("ready", "boolean", "Is it ready?", {YES: "it can be sent", NO: None})
    assert described.to_wire() == {
        "type": "noul",
        "instructions": "Is it ready?",
        "criteria": {"true": "it can be sent"},
    }
    assert TONE.to_wire() == {
        "type": "choice",
        "instructions": "Which tone?",
        "criteria": {"warm": "kind words", "cold": None, "rude": None},
    }


def test_a_list_of_decisions() -> None:
    """Decisions come back in the order of the questions, whatever theirs was."""
    assert read_decisions(ALL, [SCORE, NOUL, CHOICE]) == DECIDED


def test_a_map_of_decisions_by_id() -> None:
    """Answers may stand under their ids, as on the wire, with their ids inside or without."""
    bare = {name: value for name, value in CHOICE.items() if name != "id"}
    assert read_decisions(ALL, {"ready": NOUL, "tone": bare, "grade": SCORE}) == DECIDED


def test_an_answer_under_another_id_than_its_own() -> None:
    """An answer that says it is about something else is refused."""
    assert "not a decision with its id" in str(read_decisions([READY], {"ready": {**NOUL, "id": "other"}}))


@pytest.mark.parametrize("extra", [{"note": "x"}, {"confidence": 7}])
def test_extra_keys_are_tolerated(extra: dict[str, Any]) -> None:
    """What is not asked for is passed over, and not handed on."""
    assert read_decisions([READY], [{**NOUL, **extra}]) == DECIDED[:1]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ([NOUL], "no decision about 'tone', 'grade'"),
        ([NOUL, CHOICE, SCORE, {**NOUL, "id": "more"}], "nobody asked for: 'more'"),
        ([NOUL, NOUL, CHOICE, SCORE], "two decisions have the id 'ready'"),
        ([NOUL, CHOICE, "grade"], "not a decision with its id: 'grade'"),
        ([{"type": "noul", "noul": 1}, CHOICE, SCORE], "not a decision with its id"),
        ("Yes, it is ready.", "decisions must be a list, or a mapping by id"),
        (None, "decisions must be a list, or a mapping by id"),
    ],
)
def test_ids_must_be_exactly_those_asked(reply: Any, said: str) -> None:
    """One decision for each question and none besides, or the reply is a parse-error."""
    found = read_decisions(ALL, reply)
    assert isinstance(found, Fallback)
    assert (found.reason, said in (found.detail or "")) == ("parse-error", True)


@pytest.mark.parametrize("noul", [-0.01, 1.01, math.nan, math.inf, "0.9", True, None, 10**400])
def test_noul_must_be_a_probability(noul: Any) -> None:
    """p(yes) is from 0 to 1 and finite; it is never clamped, and true is no number."""
    assert "noul must be a number from 0 to 1" in refused(READY, {**NOUL, "noul": noul})


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, None, "high"])
@pytest.mark.parametrize(("question", "decision"), [(TONE, CHOICE), (GRADE, SCORE)])
def test_confidence_must_be_a_share(question: Question, decision: dict[str, Any], confidence: Any) -> None:
    """A choice and a score say how confident they are, from 0 to 1."""
    assert "confidence must be a number" in refused(question, {**decision, "confidence": confidence})


@pytest.mark.parametrize(
    ("question", "decision"), [(READY, {**NOUL, "type": "boolean"}), (TONE, {**SCORE, "id": "tone"}), (GRADE, {})]
)
def test_the_type_must_match(question: Question, decision: dict[str, Any]) -> None:
    """Each type of question has its type of answer; boolean ones are answered by noul."""
    assert "its type is" in refused(question, {"id": question.id, **decision})


@pytest.mark.parametrize("choice", ["Warm", "lukewarm", None, ["warm"]])
def test_the_choice_must_be_an_option(choice: Any) -> None:
    """What is picked is one of the options, letter for letter."""
    assert "which is not an option" in refused(TONE, {**CHOICE, "choice": choice})


@pytest.mark.parametrize(
    "probabilities",
    [{"warm": 0.8, "cold": 0.2}, {"warm": 0.7, "cold": 0.1, "rude": 0.1, "other": 0.1}, [0.8, 0.1, 0.1], None],
)
def test_probabilities_have_exactly_the_options(probabilities: Any) -> None:
    """A missing option and an unknown one are both refused."""
    assert "exactly the keys" in refused(TONE, {**CHOICE, "probabilities": probabilities})


@pytest.mark.parametrize("total", [0.9, 0.979, 1.021, 1.1])
def test_probabilities_that_sum_to_something_else(total: float) -> None:
    """Probabilities that add up to 0.9 are no distribution, and are not made into one."""
    assert "add up to" in refused(TONE, {**CHOICE, "probabilities": {"warm": total - 0.2, "cold": 0.1, "rude": 0.1}})


@pytest.mark.parametrize("total", [0.98, 1.0, 1.02])
def test_probabilities_that_sum_to_almost_1(total: float) -> None:
    """Up to 0.02 off 1 is rounding; what was sent is kept as it is."""
    sent = {"warm": total - 0.2, "cold": 0.1, "rude": 0.1}
    assert read_decisions([TONE], [{**CHOICE, "probabilities": sent}]) == (Decision("tone", sent, "warm"),)


@pytest.mark.parametrize("share", [-0.1, math.nan, True, "0.8"])
def test_each_probability_must_be_one(share: Any) -> None:
    """Each is a number from 0 to 1, whatever they add up to."""
    sent = {"warm": share, "cold": 0.2, "rude": 1 - 0.2}
    assert "the probability of warm must be" in refused(TONE, {**CHOICE, "probabilities": sent})


@pytest.mark.parametrize("score", [-0.1, 2.1, math.nan, None])
def test_the_score_lies_on_its_scale(score: Any) -> None:
    """A score is the expected number of the level: from 0 to one less than there are levels."""
    assert "score must be a number from 0 to 2" in refused(GRADE, {**SCORE, "score": score})


@pytest.mark.parametrize("legend", [{"0": "poor", "1": "fair"}, {"0": "", "1": "", "3": ""}, ["poor"], None])
def test_a_wrong_legend(legend: Any) -> None:
    """A legend names exactly the numbers of the levels."""
    assert "legend must have exactly the keys ['0', '1', '2']" in refused(GRADE, {**SCORE, "legend": legend})


def test_levels_are_numbered_from_0() -> None:
    """The probabilities of levels stand under their numbers, not their names."""
    named = {"poor": 0.1, "fair": 0.2, "good": 0.7}
    assert "exactly the keys" in refused(GRADE, {**SCORE, "probabilities": named})


WHOLE = {"decisions": [NOUL, CHOICE, SCORE]}


@pytest.mark.parametrize(
    "reply",
    [
        WHOLE,
        {"fallback": False, **WHOLE},
        {"fallback": "no", **WHOLE},
        json.dumps(WHOLE),
        f"```json\n{json.dumps(WHOLE)}\n```",
        {"reply": json.dumps(WHOLE), "turn": {"role": "assistant"}},
        {"type": "reply", "reply": json.dumps(WHOLE)},
    ],
    ids=["object", "not a fallback", "not true", "text", "fenced", "envelope", "sent"],
)
def test_what_a_step_may_return(reply: Any) -> None:
    """Decisions come as an object, as JSON text, or in the envelope that agents reply in."""
    assert read_reply(ALL, reply) == DECIDED


@pytest.mark.parametrize(
    "reply",
    [
        "The reply is ready to send.",
        f"Here you are: {json.dumps(WHOLE)}",
        {"reply": "The reply is ready to send."},
        {"reply": '{"decisions": [{"id": "ready", "type": "noul", "noul": NaN}]}'},
        {"reply": '{"decisions": {}, "decisions": {}}'},
        {"reply": "[" * 100_000},
        {"reply": '{"decisions": [{"id": "ready", "type": "noul", "noul": 1e999}]}'},
        {"type": "suspended"},
        [NOUL, CHOICE, SCORE],
        {},
        None,
        42,
    ],
)
def test_prose_and_other_things_are_no_decisions(reply: Any) -> None:
    """A judge that returns prose has not decided: nothing is looked for inside of it."""
    found = read_reply(ALL, reply)
    assert isinstance(found, Fallback)
    assert found.reason == "parse-error"
    assert len(found.detail or "") < 400


def test_a_step_may_fall_back() -> None:
    """A fallback keeps its reason, and wins over decisions that stand beside it."""
    said = {"fallback": True, "reason": "http-error", "httpStatus": 503, "detail": "busy", "latencyMs": 12}
    assert read_reply(ALL, {**said, **WHOLE}) == Fallback("http-error", "busy", http_status=503)
    assert read_reply(ALL, {"reply": json.dumps({"fallback": True, "reason": "timeout"})}) == Fallback("timeout")


@pytest.mark.parametrize("reason", ["because", None, 3, ["timeout"]])
def test_a_fallback_has_one_of_the_reasons(reason: Any) -> None:
    """A reason that nobody knows is itself a parse-error."""
    found = read_reply(ALL, {"fallback": True, "reason": reason})
    assert isinstance(found, Fallback)
    assert found.reason == "parse-error"


def test_a_fallback_as_json() -> None:
    """What is not known of a fallback is left out."""
    assert Fallback("timeout").to_json() == {"fallback": True, "reason": "timeout"}
    assert Fallback("http-error", "no", http_status=500, backend="h", latency_ms=1.5).to_json() == {
        "fallback": True,
        "reason": "http-error",
        "latencyMs": 1.5,
        "backendAttempted": "h",
        "httpStatus": 500,
        "detail": "no",
    }


def levels(count: int) -> dict[str, None]:
    return {str(number): None for number in range(count)}


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([READY, READY], "two questions have the id 'ready'"),
        ([Question(" ", "boolean", "?", {YES: None, NO: None})], "its id is empty"),
        ([Question("q", "boolean", " \n", {YES: None, NO: None})], "asks nothing"),
        ([Question("q", "boolean", "?", {"true": None, "false": None})], "answered by yes and no, not by 'true'"),
        ([Question("q", "choice", "?", {})], "1 to 255 options, not 0"),
        ([Question("q", "choice", "?", levels(256))], "1 to 255 options, not 256"),
        ([Question("q", "score", "?", levels(1))], "2 to 10 levels, not 1"),
        ([Question("q", "score", "?", levels(11))], "2 to 10 levels, not 11"),
    ],
)
def test_questions_that_nobody_can_be_asked(questions: list[Question], said: str) -> None:
    """Duplicate ids, empty instructions and wrong numbers of answers are the caller's mistake."""
    with pytest.raises(UsageError, match=said):
        check_questions(questions)


def test_the_most_and_the_fewest_answers() -> None:
    """A choice has from 1 to 255 options, a score from 2 to 10 levels."""
    counts = [("choice", 1), ("choice", 255), ("score", 2), ("score", 10)]
    check_questions([Question(f"{kind}{n}", kind, "?", levels(n)) for kind, n in counts])  # pyright: ignore[reportArgumentType]


def test_thresholds_by_default() -> None:
    """0.7, 0.3 and 0.6, unless a mapping says otherwise."""
    assert Thresholds.of(None) == Thresholds(yes=0.7, no=0.3, sure=0.6)
    assert Thresholds.of({"yes": 0.9}) == Thresholds(0.9, 0.3, 0.6)
    assert Thresholds.of(Thresholds(sure=0.5)) == Thresholds(sure=0.5)
    assert Thresholds.of({"yes": 0.5, "no": 0.5, "sure": 1}) == Thresholds(0.5, 0.5, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"yes": 1.2}, "yes must be a number from 0 to 1 .got 1.2"),
        ({"no": -0.1}, "no must be"),
        ({"sure": math.nan}, "sure must be"),
        ({"sure": True}, "sure must be"),
        ({"yes": "0.7"}, "yes must be"),
        ({"yes": 0.4, "no": 0.5}, r"no \(0.5\) must not be above yes \(0.4\)"),
        ({"yess": 0.4}, "there is no 'yess' — did you mean 'yes'"),
        (0.7, "must be a mapping"),
    ],
)
def test_thresholds_that_make_no_sense(given: Any, said: str) -> None:
    """0 ≤ no ≤ yes ≤ 1 and 0 ≤ sure ≤ 1, or it is the caller's mistake."""
    with pytest.raises(UsageError, match=said):
        Thresholds.of(given)
