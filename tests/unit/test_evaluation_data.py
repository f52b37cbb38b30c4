"""Cases of a Python evaluation: read from a program or a file, refused with their place, compiled into a release."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunchray.adapters.releases import verify_release
from trunchray.adapters.store import Store
from trunchray.core.case import Case
from trunchray.errors import UsageError
from trunchray.frontends.case_release import case_id
from trunchray.frontends.evaluation.compiled import compile_cases
from trunchray.frontends.evaluation.dataset import read_dataset
from trunchray.frontends.evaluation.spec import seconds

SCORERS = ("refunds", "tests")


def read(*cases: Any) -> list[Any]:
    return read_dataset(cases, SCORERS)[1]


def test_a_case_is_named_after_its_input():
    """A text as it is, anything else as its canonical JSON; a name that is given wins."""
    found = read({"input": "I was charged twice"}, {"input": {"b": 1, "a": [True]}}, {"input": 3, "name": "three"})
    assert [case.name for case in found] == ["I was charged twice", '{"a":[true],"b":1}', "three"]


def test_null_is_an_expected_output():
    """`expectedOutput: null` is not the same as none at all."""
    there, absent = read({"input": 1, "expectedOutput": None}, {"input": 2})
    assert there.expected == (None,)
    assert absent.expected == ()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            {"input": 1, "expect": 2},
            "data[0]: 'expect' is not a key of a case; the expected output is 'expectedOutput'",
        ),
        ({"input": 1, "expected": 2}, "data[0]: 'expected' is not a key of a case"),
        ({"input": 1, "expected_output": 2}, "unknown key 'expected_output' — did you mean 'expectedOutput'?"),
        ({"input": 1, "msut": ["tests"]}, "data[0]: unknown key 'msut' — did you mean 'must'?"),
        ({"name": "x"}, "data[0]: a case needs 'input'"),
        ({"input": 1, "name": ""}, "data[0]: name: expected a text, got ''"),
        ({"input": 1, "name": "half \ud83d"}, "data[0]: name: expected a text, got 'half \\ud83d'"),
        ({"input": 1, "must": "tests"}, "data[0]: must: expected a list of names of checks, got 'tests'"),
        ({"input": 1, "must": ["test"]}, "data[0]: must: there is no check 'test' — did you mean 'tests'?"),
        ({"input": 1, "must": [["tests"]]}, "data[0]: must: there is no check ['tests']"),
        ({"input": 1, "skip": [{}]}, "data[0]: skip: there is no check {}"),
        ({"input": 1, "skip": ["docs"]}, "data[0]: skip: there is no check 'docs'"),
        ({"input": 1, "skip": ["tests"], "must": ["tests"]}, "data[0]: 'tests' is both in 'must' and in 'skip'"),
        ({"input": math.nan}, "data[0]: input: float is not a JSON value"),
        ({"input": object()}, "data[0]: input: object is not a JSON value"),
        (
            {"input": {"a": 1, "b": [2, {"c": object()}]}},
            "data[0]: input: object at ['b'][1]['c'] is not a JSON value",
        ),
        ({"input": 2**60}, "data[0]: input: "),
        (["input"], "data[0]: a case is an object with an 'input', not list"),
    ],
)
def test_what_is_no_case_is_refused_with_its_place(case: Any, message: str):
    """Before anything runs, and with what to write instead."""
    with pytest.raises(UsageError) as refused:
        read(case)
    assert message in str(refused.value)


def test_what_else_there_is_goes_into_meta():
    """It is for people, and changes nothing."""
    assert read({"input": 1, "meta": {"author": "x"}}) == read({"input": 1})


def test_names_differ():
    """The name is the key of every comparison."""
    with pytest.raises(UsageError, match=r"data\[1\]: a case named 'a' is already in data\[0\]"):
        read({"input": "a"}, {"input": 2, "name": "a"})


@pytest.mark.parametrize("data", [[], (), iter(())])
def test_no_case_is_no_evaluation(data: Any):
    """Nothing to check is not the same as everything passing."""
    with pytest.raises(UsageError, match=r"^data: there is no case"):
        read_dataset(data, SCORERS)


@pytest.mark.parametrize("content", ["", "\n", " \n\t\n\n"])
def test_a_file_without_a_case_is_no_evaluation(tmp_path: Path, content: str):
    """Blank lines are no cases."""
    (tmp_path / "cases.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"cases\.jsonl: there is no case"):
        read_dataset(tmp_path / "cases.jsonl", SCORERS)


def test_a_generator_that_raises_is_refused():
    """It is the caller's own code, and nothing has been run."""
    with pytest.raises(UsageError, match=r"data: raised ZeroDivisionError while it was read: "):
        read_dataset(({"input": 1 // number} for number in (1, 0)), SCORERS)


@pytest.mark.parametrize("place", ["", "no/such/folder/cases.jsonl", ".", "cases", "file/a.jsonl"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str):
    """A folder is no file either."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^data: "):
        read_dataset(place, SCORERS)


@pytest.mark.parametrize("data", [{"input": 1}, 3, None])
def test_data_is_a_list_or_a_path(data: Any):
    """One case by itself is refused, too: it is more likely a mistake."""
    with pytest.raises(UsageError, match="expected a list of cases or the path of a JSONL file"):
        read_dataset(data, SCORERS)


def test_a_jsonl_file(tmp_path: Path):
    """A case a line; blank lines count as lines and are no cases; a path object will do."""
    path = tmp_path / "cases.jsonl"
    path.write_text('{"input": "ä"}\n\n  \n{"input": 2, "expectedOutput": {"x": 1}}\n', encoding="utf-8")
    source, cases = read_dataset(path, SCORERS)
    assert source == str(path)
    assert [(case.place, case.input) for case in cases] == [(f"{path}:1", "ä"), (f"{path}:4", 2)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "cases.jsonl:2: not JSON"),
        ("[1]", "cases.jsonl:2: a case is an object"),
        ('{"input":1,"expect":2}', ":2: "),
        ('{"input":1,"must":["tests"],"must":[]}', "cases.jsonl:2: not JSON: it has the key 'must' twice"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str):
    """By the number that an editor shows."""
    path = tmp_path / "cases.jsonl"
    path.write_text(f'{{"input": 1}}\n{line}\n', encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_dataset(str(path), SCORERS)
    assert message in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path):
    """Says where relative paths begin."""
    with pytest.raises(UsageError, match=r"there is no file .*; relative paths begin at the current directory"):
        read_dataset(str(tmp_path / "none.jsonl"), SCORERS)


def test_a_file_that_is_no_text(tmp_path: Path):
    """Is refused, too."""
    (tmp_path / "cases.jsonl").write_bytes(b'{"input": "\xff"}')
    with pytest.raises(UsageError, match="not UTF-8"):
        read_dataset(tmp_path / "cases.jsonl", SCORERS)


@given(st.text(), st.text())
def test_ids_are_those_of_names(one: str, other: str):
    """Names as they come give ids that the engine takes, and different names different ones."""
    assert Case.model_fields["id"].metadata
    assert (case_id(one) == case_id(other)) == (one == other)
    assert len(case_id(one)) <= 120


def compiled(root: Path, *cases: Any, checks: dict[str, str] | None = None) -> Any:
    return compile_cases("Refund agent", "data", read(*cases), checks or {"tests": "1" * 64}, Store(str(root)))


def test_the_release_of_an_evaluation(tmp_path: Path):
    """Inputs are prompts, structured ones as JSON; what agents are not given is with the rest of what grades."""
    release = compiled(
        tmp_path,
        {"input": "a", "expectedOutput": None, "must": ["tests"]},
        {"input": {"x": 1.5}},
        checks={"refunds": "2" * 64, "tests": "1" * 64},
    )
    assert verify_release(release.uri) == []
    text, structured = release.cases()
    assert (text.input.prompt, text.input.structured, text.data) == (
        "a",
        False,
        {"must": ["tests"], "expectedOutput": None},
    )
    assert (json.loads(structured.input.prompt), structured.input.structured) == ({"x": 1.5}, True)
    assert structured.data == {"must": []}
    assert list(text.checks) == ["refunds", "tests"]
    assert {case.eval_id for case in release.cases()} == {"refund-agent"}


def test_skipped_checks_are_no_checks_of_a_case(tmp_path: Path):
    """A case may even skip all of them."""
    (case,) = compiled(tmp_path, {"input": 1, "skip": ["tests"]}).cases()
    assert case.checks == {}


def test_the_same_evaluation_is_the_same_release(tmp_path: Path):
    """And another expected answer, or another check, is another one."""
    first = compiled(tmp_path, {"input": 1}).release.digest
    assert compiled(tmp_path, {"input": 1}).release.digest == first
    others = [
        compiled(tmp_path, {"input": 1, "expectedOutput": 1}),
        compiled(tmp_path, {"input": 2}),
        compiled(tmp_path, {"input": 1}, checks={"tests": "3" * 64}),
    ]
    assert len({first, *(each.release.digest for each in others)}) == 4


@pytest.mark.parametrize(
    ("given", "found"),
    [("60s", 60), ("500ms", 0.5), ("2m", 120), (1500, 1.5), ("1.5 s", 1.5), ("1h", 3600), (0.5, 0.0005)],
)
def test_a_timeout_is_a_text_or_milliseconds(given: str | float, found: float):
    """With a unit, or a number of milliseconds."""
    assert seconds(given) == pytest.approx(found)


@pytest.mark.parametrize("given", ["60", "", "s", "-1s", 0, -1, True, math.inf, math.nan, None, "0s", 10**400])
def test_what_is_no_timeout(given: Any):
    """Is refused before anything runs."""
    with pytest.raises(UsageError, match="timeout: expected a time such as '60s'"):
        seconds(given)
