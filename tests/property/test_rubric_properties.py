"""Whatever a grader says: it is read by the rules, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.rubric import Grading, read_grades

LINES = ("a  b", "c")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
GRADES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(["a b", " a\nb ", "c", "a", "b a"]) | VALUES,
        "passed": st.booleans() | VALUES,
        "evidence": st.sampled_from(["seen", " ", "", "half \ud800"]) | VALUES,
    },
)
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "expectations": st.lists(GRADES | VALUES, max_size=3) | VALUES,
        "eval_feedback": VALUES,
        "summary": VALUES,
    },
)


@given(VALUES | REPLIES)
def test_what_is_read_was_said(reply: Any) -> None:
    """Grades come of nothing but a true or false with evidence for each line; anything else is a ValueError."""
    try:
        graded = read_grades(LINES, reply)
    except ValueError:
        return
    for line, grade, said in zip(LINES, graded.grades, reply["expectations"], strict=True):
        assert grade.text == line
        assert grade.passed is said["passed"]
        assert grade.evidence
        assert said["text"].split() == line.split()
    json.dumps(Grading.of("x", graded, "g").to_json(), ensure_ascii=False).encode()


@given(st.lists(st.booleans(), min_size=2, max_size=2), st.text(min_size=1).filter(str.strip), REPLIES)
def test_what_is_right_is_read(passed: list[bool], evidence: str, more: dict[str, Any]) -> None:
    """A reply by the rules is never refused, whatever else it holds, and reads the same as text."""
    grades = [{"text": line, "passed": met, "evidence": evidence} for line, met in zip(LINES, passed, strict=True)]
    reply = {**more, "expectations": grades}
    graded = read_grades(LINES, reply)
    assert [grade.passed for grade in graded.grades] == passed
    assert read_grades(LINES, json.dumps(reply)) == graded


@given(st.text(max_size=30), st.text(min_size=1, max_size=30).filter(str.strip))
def test_nothing_beside_the_object(before: str, after: str) -> None:
    """Words around a reply make it none."""
    grades = [{"text": line, "passed": True, "evidence": "seen"} for line in LINES]
    reply = json.dumps({"expectations": grades})
    with pytest.raises(ValueError, match=r"JSON"):
        read_grades(LINES, f"{before}{reply}{after}")
