"""Evals of skill-creator as cases, and back: what is read, what comes back, and what is told."""

from __future__ import annotations

from typing import Any

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.convert import skill_of, to_cases, to_evals

FULL: dict[str, Any] = {
    "id": 1,
    "prompt": "Write a brief — für InsuLens",
    "expected_output": "A brief of one page",
    "files": ["memo.md"],
    "expectations": ["brief.md names InsuLens", "no invented numbers"],
}


def cases_of(*evals: object) -> list[Any]:
    return list(to_cases({"evals": [*evals]}, "evals.json").content["cases"])


def there_and_back(evals: dict[str, Any]) -> Any:
    return to_evals(to_cases(evals, "a/evals/evals.json").content, "a/evals/cases.json").content


def back_and_there(*cases: dict[str, Any]) -> list[Any]:
    evals = to_evals([*cases], "cases.json").content
    return list(to_cases(evals, "evals.json").content["cases"])


def case(**fields: object) -> dict[str, Any]:
    return {"id": "a", "input": "x", "rubric": [], "state_prefix": None, "files": []} | fields


def test_an_eval_as_a_case():
    """Ids become text, the expected output the last line of the rubric."""
    assert cases_of(FULL) == [
        {
            "id": "1",
            "input": "Write a brief — für InsuLens",
            "rubric": ["brief.md names InsuLens", "no invented numbers", "output matches: A brief of one page"],
            "state_prefix": None,
            "files": ["memo.md"],
        }
    ]


def test_a_case_as_an_eval():
    """The last line of the rubric becomes the expected output again, digits a number, and the skill has a name."""
    made = to_evals([case(id="12", rubric=["one", "output matches: two"], files=["f"])], "writer/evals/cases.json")
    assert made.content == {
        "skill_name": "writer",
        "evals": [{"id": 12, "prompt": "x", "expected_output": "two", "files": ["f"], "expectations": ["one"]}],
        "not_in_cases": ["skill_name"],
    }
    assert made.notes == ()


def test_assertions_are_read_as_expectations_are():
    """Nearly all published evals keep their lines there: as text, or as objects with a text, description or name."""
    assertions = ["one", {"name": "n", "description": "two"}, {"text": "three", "name": "m"}, {"name": "four"}]
    made = to_cases({"evals": [{"id": 1, "prompt": "x", "assertions": assertions}]}, "evals.json")
    (found,) = made.content["cases"]
    assert found["rubric"] == ["one", "two", "three", "four"]
    assert made.notes == (
        "4 lines from 'assertions' became rubric lines",
        "only the text of expectations that are objects is graded, not 'name' (2)",
        "1 eval also kept under 'as_eval' for converting back",
    )


@pytest.mark.parametrize(
    "one",
    [
        FULL,
        {"id": 2, "prompt": "x", "expected_output": "y", "assertions": ["a", "b"], "files": []},
        {"id": 2, "prompt": "x", "expected_output": "", "files": [], "assertions": [{"name": "n", "description": "d"}]},
        {"id": 2, "prompt": "x", "expected_output": "y", "files": [], "expectations": ["a"], "assertions": ["b"]},
        {"id": 3, "prompt": "x", "expected_output": "y", "files": [], "name": "n", "role": {"a": [1]}},
        {"id": "007", "prompt": "x", "expected_output": "y", "files": []},
        {"id": "7", "prompt": "x", "expected_output": "y", "files": []},
        {"id": 4, "prompt": "x", "expected_output": "", "files": [], "expectations": ["output matches: z"]},
        {"id": 5, "prompt": "x", "expected_output": "y", "files": [], "input": 1, "rubric": 2, "state_prefix": [3]},
        {"id": 6, "prompt": "x", "expected_output": {"a": 1}, "files": "f", "expectations": [" ", {"pattern": "z"}]},
    ],
    ids=str,
)
def test_evals_come_back_as_they_were(one: dict[str, Any]):
    """Also those whose fields cases do not have, or spell differently."""
    evals = {"skill_name": "writer", "version": 3, "evals": [one, FULL]}
    assert there_and_back(evals) == evals


@pytest.mark.parametrize(
    "one",
    [
        case(state_prefix="[turn 4]", timeout=30, owner={"a": 1}),
        case(id="7"),
        case(id="007"),
        case(id=7),
        case(rubric=["output matches: a", "b"]),
        case(rubric=["a", "output matches: "]),
        case(rubric=["output matches: a", "output matches: b"]),
        case(prompt="p", expectations=["e"], assertions=3, expected_output="o"),
    ],
    ids=str,
)
def test_cases_come_back_as_they_were(one: dict[str, Any]):
    """Also those whose fields evals do not have; ids as text."""
    assert back_and_there(one, case(id="b")) == [one | {"id": str(one["id"])}, case(id="b")]


@pytest.mark.parametrize(
    "cases",
    [
        {"cases": [{"id": "a", "input": "x", "rubric": ["y"]}, {"id": "b", "input": "x", "files": ["f"]}]},
        {"cases": [{"id": "a", "input": "x"}, case(id="b"), {"id": "c", "input": "x", "state_prefix": "[turn 4]"}]},
        {"skill_name": "s", "owner": "me", "cases": [{"id": "a", "input": "x", "rubric": ["output matches: z"]}]},
        {"cases": [case()]},
    ],
)
def test_nothing_is_added_on_the_way_there_and_back(cases: dict[str, Any]):
    """Neither keys that cases may leave out, nor the name of the skill; what is written as empty stays."""
    evals = to_evals(cases, "writer/evals/cases.json").content
    assert evals["skill_name"] == cases.get("skill_name", "writer")
    assert to_cases(evals, "writer/evals/evals.json").content == cases


def test_a_genuine_line_that_reads_like_an_expected_output_is_not_swallowed():
    """Only the last line of a rubric stands for one."""
    (one,) = to_evals([case(rubric=["output matches: a", "b"])], "cases.json").content["evals"]
    assert one["expectations"] == ["output matches: a", "b"]
    assert one["expected_output"] == ""


def test_an_id_with_leading_zeros_is_no_number():
    """007 is another case than 7."""
    evals = to_evals([case(id="007"), case(id="7"), case(id="0"), case(id="9" * 20)], "cases.json").content["evals"]
    assert [one["id"] for one in evals] == ["007", 7, 0, "9" * 20]


def test_a_state_prefix_and_unknown_keys_do_not_vanish_towards_skill_creator():
    """They stay under their names, and it is said that nobody reads them there."""
    made = to_evals([case(state_prefix="[turn 4]", timeout=30, owner="me")], "cases.json")
    (one,) = made.content["evals"]
    assert {"state_prefix": "[turn 4]", "timeout": 30, "owner": "me"}.items() <= one.items()
    assert made.notes == (
        "1 case with a state_prefix, which is kept, but skill-creator sends only the prompt",
        "keys that skill-creator does not use are kept: 'owner' (1), 'timeout' (1)",
    )


def test_what_cannot_be_run_or_graded_is_told():
    """Evals without a prompt or anything expected, expectations without text, and keys that nobody reads."""
    evals = [{"id": 1, "name": "n"}, {"id": 2, "name": "m", "prompt": "x", "expectations": [{"pattern": "y"}, "z"]}]
    assert to_cases({"evals": evals}, "evals.json").notes == (
        "only the text of expectations that are objects is graded, not 'pattern' (1)",
        "1 expectation without text left out of the rubric",
        "1 eval without a prompt: write the input before running",
        "1 case without a rubric cannot be graded: write expectations",
        "keys that trunchray does not use are kept: 'name' (2)",
        "1 eval also kept under 'as_eval' for converting back",
    )


def test_what_was_changed_meanwhile_counts():
    """What an entry was made of does not bring back what somebody has mended since."""
    one = {"id": 1, "prompt": "x", "expected_output": "", "files": [], "assertions": [{"name": "n"}]}
    made = to_cases({"skill_name": "s", "evals": [one]}, "evals.json").content
    made["cases"][0]["rubric"] = ["better"]
    back = to_evals(made, "cases.json")
    assert back.content["evals"] == [
        {"id": 1, "prompt": "x", "expected_output": "", "files": [], "assertions": ["better"]}
    ]
    assert back.notes == ("1 case edited after the conversion: what is under 'as_eval' is not restored",)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("/p/writer/evals/cases.json", "writer"),
        ("/p/writer/cases.json", "writer"),
        ("s3://bucket/writer/evals/cases.json", "writer"),
        ("/cases.json", "skill"),
    ],
)
def test_the_name_of_a_skill_is_that_of_its_folder(location: str, name: str):
    """Unless it is given, or the file has one."""
    assert skill_of(location) == name
    assert to_evals([case()], location).content["skill_name"] == name
    assert to_evals([case()], location, "given").content["skill_name"] == "given"
    assert to_evals({"skill_name": "own", "cases": [case()]}, location).content["skill_name"] == "own"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([FULL], "F: a skill-creator file is an object with the list 'evals'; this is a list"),
        ({"evals": 3}, "F: a skill-creator file is an object with the list 'evals'; this is an object with"),
        ({"cases": []}, "F: is a case file already; use --to skill-creator to convert it back"),
        ({"evals": []}, "F: 'evals' is empty, so there is nothing to convert"),
        ({"evals": [{"prompt": "x"}]}, "F: evals[0]: has no 'id'; an eval needs 'id', and this one has 'prompt'"),
        ({"evals": [{"id": 1.5}]}, "F: evals[0]: 'id' must be text or an integer (got 1.5)"),
        ({"evals": [{"id": 1, "prompt": ["x"]}]}, "F: evals[0]: 'prompt' must be text (got ['x'])"),
    ],
)
def test_what_is_no_file_of_skill_creator_is_refused(value: Any, message: str):
    """With the place and what is there."""
    with pytest.raises(UsageError) as error:
        to_cases(value, "F")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "F: cases are a list, or an object with the list 'cases'; this is 3"),
        ({"evals": []}, "F: cases are a list, or an object with the list 'cases'; this is an object with 'evals'"),
        ([], "F: 'cases' is empty, so there is nothing to convert"),
        ([{"id": 1}], "F: cases[0]: has no 'input'; a case needs 'id' and 'input', and this one has 'id'"),
        ([{"id": 1, "input": "x", "rubric": [1]}], "F: cases[0]: rubric[0] must be text (got 1)"),
    ],
)
def test_what_is_no_case_file_is_refused(value: Any, message: str):
    """Likewise."""
    with pytest.raises(UsageError) as error:
        to_evals(value, "F")
    assert str(error.value).startswith(message)
