"""Real files: what authors of published skills have written is read and converted, or refused with the exact reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.case_file import read_cases
from trunchray.frontends.skill.convert import to_cases, to_evals
from trunchray.frontends.skill.json_file import read_json
from trunchray.frontends.skill.trigger_file import read_queries

FILES = Path(__file__).parents[2].parent / "shared" / "vectors" / "skills"

pytestmark = pytest.mark.skipif(not FILES.exists(), reason="the published files are not beside this checkout")


def value(name: str) -> Any:
    return read_json(str(FILES / name), "the file")


def test_a_case_file_loads_with_its_fixtures():
    """7 cases, 30 rubric lines, 4 cases with 6 files, each of which is beside the case file."""
    file = FILES / "grl-ads" / "evals" / "cases.json"
    cases = read_cases(file)
    assert [case.id for case in cases] == [case.folder for case in cases]
    assert (len(cases), sum(len(case.rubric) for case in cases)) == (7, 30)
    named = [path for case in cases for path in case.files]
    assert (len([case for case in cases if case.files]), len(named)) == (4, 6)
    assert all((file.parent / path).is_file() for path in named)


@pytest.mark.parametrize(
    ("name", "count", "should"), [("grl-ads/evals/triggers.json", 10, 5), ("bmad-eval.triggers.json", 20, 10)]
)
def test_trigger_queries_load(name: str, count: int, should: int):
    """Half of each should trigger."""
    queries = read_queries(FILES / name)
    assert (len(queries), sum(query.should_trigger for query in queries)) == (count, should)


def test_a_near_miss_is_refused_with_the_key_that_it_lacks():
    """Five entries have `prompt` where `query` belongs."""
    with pytest.raises(UsageError) as error:
        read_queries(FILES / "ios-simulator.triggers.refuse.json")
    assert str(error.value) == (
        f"{FILES}/ios-simulator.triggers.refuse.json: [0]: has no 'query'; a query needs 'query' and "
        "'should_trigger', and this one has 'prompt', 'should_trigger' (4 more like it)"
    )


@pytest.mark.parametrize(
    ("name", "evals", "rubric", "notes"),
    [
        ("ab-testing", 7, 51, ("44 lines from 'assertions' became rubric lines",)),
        ("prompt-harness", 22, 22, ()),
    ],
)
def test_evals_of_skill_creator_convert_and_come_back(tmp_path: Path, name: str, evals: int, rubric: int, notes: Any):
    """No line is dropped, the cases load, and what comes back is the very same file."""
    published = FILES / "convert" / f"{name}.evals.json"
    made = to_cases(value(f"convert/{name}.evals.json"), str(published))
    (tmp_path / "cases.json").write_text(json.dumps(made.content), encoding="utf-8")
    cases = read_cases(tmp_path / "cases.json")
    assert (len(cases), sum(len(case.rubric) for case in cases), made.notes) == (evals, rubric, notes)
    assert all(case.rubric for case in cases)
    back = to_evals(made.content, "cases.json")
    assert json.dumps(back.content, ensure_ascii=False, indent=2) == published.read_text(encoding="utf-8").rstrip("\n")
    assert back.notes == ()


def test_cases_convert_to_evals_and_come_back():
    """With nothing to tell, and nothing added."""
    evals = to_evals(value("grl-ads/evals/cases.json"), "grl-ads/evals/cases.json")
    assert (evals.content["skill_name"], evals.count, evals.notes) == ("grl-ads", 7, ())
    back = to_cases(evals.content, "evals.json")
    assert back.content == value("grl-ads/evals/cases.json")


@pytest.mark.parametrize("name", ["ab-testing", "prompt-harness"])
def test_evals_of_skill_creator_are_not_taken_for_cases(name: str):
    """The message says what makes cases of them."""
    with pytest.raises(UsageError, match="is a skill-creator file; convert it first with `trunchray skills convert`"):
        read_cases(FILES / "convert" / f"{name}.evals.json")
