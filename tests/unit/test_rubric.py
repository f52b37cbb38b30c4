"""Grades of a rubric: what a grader may say, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from trunchray.core.rubric import LONGEST, MOST, SCHEMA, Feedback, Grade, Graded, Grading, Suggestion, read_grades

RUBRIC = ("brief.md names the segment", "brief.md has  between 250\nand 1500 words")
GRADER = "0" * 64
ATTEMPT = "b" * 64


def grade(text: str, passed: Any = True, evidence: Any = "line 3: 'mid-market'") -> dict[str, Any]:
    return {"text": text, "passed": passed, "evidence": evidence}


def said(*grades: Any, **more: Any) -> dict[str, Any]:
    return {"expectations": list(grades), **more}


BOTH = said(grade(RUBRIC[0]), grade(RUBRIC[1], False, "211 words"))


def read(reply: Any) -> Graded:
    return read_grades(RUBRIC, reply)


def refused(reply: Any) -> str:
    with pytest.raises(ValueError, match=r".") as found:
        read(reply)
    return str(found.value)


def test_one_grade_for_each_line() -> None:
    """They are read from an object or its text, and keep whether a line is met and what shows it."""
    for reply in (BOTH, json.dumps(BOTH), f"\n {json.dumps(BOTH, indent=2)}\n"):
        grades, feedback = read(reply)
        assert grades == (
            Grade(text=RUBRIC[0], passed=True, evidence="line 3: 'mid-market'"),
            Grade(text=RUBRIC[1], passed=False, evidence="211 words"),
        )
        assert feedback == Feedback()


def test_blanks_do_not_count_and_the_rubrics_own_text_is_kept() -> None:
    """A line is recognised with its blanks collapsed; what is stored is the rubric's."""
    grades, _ = read(said(grade(f" {RUBRIC[0]}"), grade("brief.md has between 250 and 1500 words")))
    assert [each.text for each in grades] == list(RUBRIC)


def test_fenced_json() -> None:
    """One Markdown fence around the object is the object; anything beside the fence is not."""
    fenced = f"```json\n{json.dumps(BOTH)}\n```"
    assert read(fenced) == read(BOTH)
    assert "not JSON and nothing else" in refused(f"Here you are:\n{fenced}")


def test_prose() -> None:
    """Nothing is looked for inside of other words, be it around the object or in its place."""
    for reply in ("All expectations pass.", f"Grades: {json.dumps(BOTH)}", f"{json.dumps(BOTH)} Done.", ""):
        assert "not JSON and nothing else" in refused(reply)


def test_two_objects() -> None:
    """Which of them counts would be a guess."""
    assert "not JSON and nothing else" in refused(f"{json.dumps(BOTH)}\n{json.dumps(BOTH)}")
    assert "not a JSON object" in refused(json.dumps([BOTH, BOTH]))
    assert "not a JSON object" in refused([BOTH])


def test_a_key_that_stands_there_twice() -> None:
    """A verdict that says both is none."""
    twice = json.dumps(BOTH).replace('"passed": true', '"passed": false, "passed": true')
    assert "'passed'" in refused(twice)


def test_missing_lines() -> None:
    """No line goes without a grade, and none gets one that is not asked for."""
    assert "has 1 grades, and the rubric 2 lines" in refused(said(grade(RUBRIC[0])))
    assert "has 3 grades, and the rubric 2 lines" in refused(said(*BOTH["expectations"], grade("more")))
    assert "has 0 grades" in refused(said())


def test_reordered_lines() -> None:
    """A grade belongs to the line in its place, so another order is refused, not sorted."""
    assert "grade 1 of `expectations`: its text is" in refused(said(grade(RUBRIC[1]), grade(RUBRIC[0])))


def test_changed_text() -> None:
    """A grader that words a line anew has graded something else."""
    complaint = refused(said(grade(RUBRIC[0]), grade("brief.md has between 250 and 2500 words")))
    assert "grade 2 of `expectations`: its text is 'brief.md has between 250 and 2500 words'" in complaint
    assert "not that of line 2 of the rubric" in complaint
    assert "its text is None" in refused(said(grade(RUBRIC[0]), {"passed": True, "evidence": "x"}))


@pytest.mark.parametrize("passed", ["true", "false", 1, 0, None, "pass", [True], 1.0])
def test_passed_is_true_or_false_and_nothing_like_it(passed: Any) -> None:
    """`"passed": "true"` would be true in many languages, and so would `"false"`."""
    assert "neither true nor false" in refused(said(grade(RUBRIC[0], passed), grade(RUBRIC[1])))


@pytest.mark.parametrize("evidence", ["", " \n\t", None, ["line 3"], 3])
def test_empty_evidence(evidence: Any) -> None:
    """A grade that says nothing of what was seen is none, whichever it is."""
    for passed in (True, False):
        assert "it must say what was seen" in refused(said(grade(RUBRIC[0]), grade(RUBRIC[1], passed, evidence)))


@pytest.mark.parametrize("listed", [None, {}, "all passed", 2, {"1": True}])
def test_expectations_that_are_no_list(listed: Any) -> None:
    """What has another form is refused, and named."""
    assert "`expectations` must be a list" in refused({"expectations": listed})
    assert "grade 1 of `expectations`" in refused(said(listed, listed))


def test_a_reply_without_end() -> None:
    """More than a million characters are not read."""
    assert "at most 1,048,576 are read" in refused(" " * (MOST + 1))


def test_feedback_decides_nothing() -> None:
    """It is kept where it has its form; in another one it is passed over and the grades count."""
    feedback = {
        "suggestions": [
            {"assertion": RUBRIC[0], "reason": "an empty file would meet it"},
            {"assertion": None, "reason": "says nothing of sources"},
            {"reason": 7},
            "weak",
        ],
        "overall": "Two lines are few.",
    }
    assert read({**BOTH, "eval_feedback": feedback}).feedback == Feedback(
        suggestions=(
            Suggestion(assertion=RUBRIC[0], reason="an empty file would meet it"),
            Suggestion(reason="says nothing of sources"),
        ),
        overall="Two lines are few.",
    )
    for other in (None, "weak", [], {"suggestions": "none", "overall": 7}):
        assert read({**BOTH, "eval_feedback": other}) == read(BOTH)


def test_the_summary_is_counted_by_us() -> None:
    """What a grader says of it is passed over, and a stored one that does not add up is refused."""
    lied = {**BOTH, "summary": {"passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0}}
    grading = Grading.of("create-1", read(lied), grader=GRADER, attempt=ATTEMPT)
    assert grading.summary.model_dump() == {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5}
    with pytest.raises(ValidationError, match="the summary is not that of the expectations"):
        Grading.model_validate({**grading.to_json(), "summary": lied["summary"]})


def test_what_grading_json_holds() -> None:
    """The names are those that skill authors know: text, passed, evidence; summary; eval_feedback."""
    feedback = {"suggestions": [{"assertion": None, "reason": "few"}], "overall": ""}
    grading = Grading.of("create-1", read({**BOTH, "eval_feedback": feedback}), grader=GRADER, attempt=ATTEMPT)
    assert grading.to_json() == {
        "case_id": "create-1",
        "expectations": [
            {"text": RUBRIC[0], "passed": True, "evidence": "line 3: 'mid-market'"},
            {"text": RUBRIC[1], "passed": False, "evidence": "211 words"},
        ],
        "summary": {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5},
        "eval_feedback": {"suggestions": [{"reason": "few"}], "overall": ""},
        "grader": GRADER,
        "attempt": ATTEMPT,
    }
    assert Grading.model_validate_json(json.dumps(grading.to_json())) == grading


def test_shares_have_four_places() -> None:
    """Two of three are 0.6667, as readers of such files write it."""
    lines = ("a", "b", "c")
    graded = read_grades(lines, said(grade("a"), grade("b"), grade("c", False)))
    assert Grading.of("x", graded, grader=GRADER, attempt=ATTEMPT).summary.pass_rate == 0.6667


def test_evidence_can_be_stored() -> None:
    """Halves of characters are spelt out, and what is very long is cut."""
    grades, _ = read_grades(("a",), json.dumps(said(grade("a", True, "half \ud800 " + "x" * 2 * LONGEST))))
    assert grades[0].evidence.startswith("half \ufffd xxx")
    assert len(grades[0].evidence) < LONGEST + 10
    grades[0].evidence.encode()


def test_the_schema_asks_for_what_is_read() -> None:
    """What a model is held to is what is accepted, and evidence comes before the verdict on it."""
    items: Any = SCHEMA["properties"]["expectations"]["items"]  # type: ignore[index,call-overload]  # JSON
    assert list(items["properties"]) == ["text", "evidence", "passed"]
    assert set(items["required"]) == {"text", "evidence", "passed"}
