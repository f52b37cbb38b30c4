"""Which cases of two releases are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.releases import make_release
from trunchray.core.case import Case
from trunchray.core.content import contents
from trunchray.core.matching import match, match_answers


def test_cases_are_told_apart_by_id_and_content():
    """Same, changed, added, removed; and a case that only changed its name is the same."""
    found = match({"a": "1", "b": "2", "c": "3", "old": "4"}, {"a": "1", "b": "x", "d": "5", "new": "4"})
    assert found.alike == {"a": "a", "new": "old"}
    assert (found.added, found.removed, found.changed) == ({"d"}, {"c"}, {"b"})
    assert found.renamed == 1


def test_a_content_that_two_cases_have_is_no_name():
    """Which of two equal cases was renamed cannot be told, so none was."""
    found = match({"a": "1", "b": "1"}, {"c": "1", "d": "1"})
    assert (found.alike, found.added, found.removed) == ({}, {"c", "d"}, {"a", "b"})


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"title": "Other", "description": "Other", "id": "z", "evalId": "z", "source": {"path": "z.ts"}}, True),
        ({"input": {"prompt": "Other"}}, False),
        ({"input": {"prompt": "prompt 0", "systemPrompt": "Be brief.", "tools": ["search"]}}, False),
        ({"data": {"number": 1}}, False),
        ({"checks": {"evaluate": {"kind": "exact", "expected": "x"}}}, False),
        ({"checks": {"evaluate": {"kind": "custom", "evaluatorKey": "e#default"}}}, False),
    ],
)
def test_the_content_of_a_case_is_what_is_asked_and_how_it_is_graded(
    change: dict[str, Any], same: bool, tmp_path: Path
):
    """Names and places are not part of it."""
    release = make_release(tmp_path, 2)
    case = release.cases()["c0"]
    other = Case.model_validate(case.model_dump(by_alias=True) | change)
    content = contents(release.release)
    assert (content(case) == content(other)) is same


def test_another_grader_is_another_content(tmp_path: Path):
    """The code that a custom evaluator's key stands for counts, not its name."""
    check = {"kind": "custom", "evaluatorKey": "e#default"}
    one, two = (make_release(tmp_path, 1, check=lambda _: check, evaluator=code) for code in (b"1", b"2"))
    assert contents(one.release)(one.cases()["c0"]) != contents(two.release)(two.cases()["c0"])


def test_the_same_answers_are_matched_by_what_was_asked():
    """However they are graded now; no other case has the same answers, whatever it asks."""
    found = match_answers({"a": "1", "b": "2", "c": "3", "old": "4"}, {"a": "x", "b": "2", "c": "y", "new": "4"}, "ab")
    assert found.alike == {"a": "a", "b": "b"}
    assert (found.added, found.removed, found.changed) == ({"new"}, {"old"}, {"c"})
    assert (found.renamed, found.regraded) == (0, 1)
