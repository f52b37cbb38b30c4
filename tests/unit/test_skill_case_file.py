"""Case files of skills: what they may say, and what is told of those that say something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.case_file import SkillCase, check_rubrics, read_cases
from trunchray.frontends.skill.labels import run_label, safe_name


def read(folder: Path, content: Any) -> tuple[SkillCase, ...]:
    file = folder / "cases.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_cases(file)


def refused(folder: Path, content: Any) -> str:
    """What is said of a file, without its name."""
    with pytest.raises(UsageError) as error:
        read(folder, content)
    assert error.value.exit_code == 2
    return str(error.value).replace(f"{folder / 'cases.json'}", "F")


def ids(*names: object) -> list[dict[str, object]]:
    return [{"id": name, "input": "x"} for name in names]


def test_a_case_has_the_documented_fields(tmp_path: Path):
    """As in the format's own example; what nobody knows is kept with the rest."""
    case = {
        "id": "create-1",
        "input": "I want a brief.\n",
        "rubric": ["brief.md names InsuLens"],
        "state_prefix": None,
        "files": ["evals/files/memo.md"],
        "timeout": 30,
        "owner": "me",
    }
    (found,) = read(tmp_path, [case])
    assert (found.id, found.folder, found.input, found.prompt) == ("create-1", "create-1", *["I want a brief.\n"] * 2)
    assert (found.rubric, found.files, found.timeout) == (("brief.md names InsuLens",), ("evals/files/memo.md",), 30.0)
    assert (found.state_prefix, found.written) == (None, case)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ({"file": ["a"]}, "files"),
        ({"rubrik": ["x"]}, "rubric"),
        ({"Rubric": ["x"]}, "rubric"),
        ({"time_out": 1}, "timeout"),
    ],
)
def test_a_key_that_was_misspelt_is_refused(tmp_path: Path, written: dict[str, object], key: str):
    """What it says would be lost; but a key of the author's own, also beside the one that it looks like, is kept."""
    case: dict[str, object] = {"id": "a", "input": "x"}
    (name,) = written
    assert refused(tmp_path, [case | written]).endswith(f": {name!r} is no key of a case; did you mean {key!r}?")
    right = {"files": ["a"], "rubric": ["x"], "timeout": 1}
    assert read(tmp_path, [case | written | right | {"reason": "mine"}])


@pytest.mark.parametrize("absent", [{}, {"rubric": None, "files": None, "state_prefix": None, "timeout": None}])
def test_only_id_and_input_are_needed(tmp_path: Path, absent: dict[str, None]):
    """The rest may be null or missing; ids may be numbers; the list may stand in an object with other keys."""
    (found,) = read(tmp_path, {"version": 2, "cases": [{"id": 7, "input": "x"} | absent]})
    assert (found.id, found.rubric, found.files, found.state_prefix, found.timeout) == ("7", (), (), None, None)


@pytest.mark.parametrize(
    ("prefix", "prompt"),
    [(None, " in\n"), ("", " in\n"), ("[turn 4]", "[turn 4]\n\n in\n"), (" [turn 4] \n\n", " [turn 4]\n\n in\n")],
)
def test_a_prefix_is_sent_before_the_input_as_it_is(tmp_path: Path, prefix: str | None, prompt: str):
    """A blank line parts them; only the prefix loses blanks, and only at its end."""
    (found,) = read(tmp_path, [{"id": "a", "input": " in\n", "state_prefix": prefix}])
    assert found.prompt == prompt


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("create-1", "create-1"),
        ("../escape", "_escape"),
        ("..", "unnamed"),
        ("a/b", "a_b"),
        ("a  b\t:c", "a_b_c"),
        ("日本", "_"),
        (".hidden.", "hidden"),
        ("", "unnamed"),
    ],
)
def test_a_folder_name_leads_nowhere_else(name: str, folder: str):
    """Whatever stands in an id, its folder is one below the run's."""
    assert safe_name(name) == folder


def test_the_label_of_a_run_is_a_safe_name_which_it_was_not_for_triggers():
    """A skill's name comes from its frontmatter, where it may hold anything."""
    assert run_label("brief-writer", "quality") == "brief-writer-quality"
    assert run_label("../../etc/x", "triggers") == "_.._etc_x-triggers"
    assert len(run_label("x" * 500, "triggers")) < 200


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a", "a", "F: cases[1]: the id 'a' is already that of cases[0]"),
        (1, "1", "F: cases[1]: the id '1' is already that of cases[0]"),
        ("a/b", "a_b", "F: cases[1]: the id 'a_b' gives the folder 'a_b', and so does 'a/b' of cases[0]"),
        ("A", "a", "F: cases[1]: the id 'a' gives the folder 'a', and so does 'A' of cases[0]"),
        ("日本", "東京", "F: cases[1]: the id '東京' gives the folder '_', and so does '日本' of cases[0]"),
    ],
)
def test_two_cases_never_silently_share_a_folder(tmp_path: Path, first: object, second: object, message: str):
    """Their results would overwrite each other, on some file systems also when capitals alone differ."""
    assert refused(tmp_path, ids(first, second)).startswith(message)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"input": "x"}, "has no 'id'; a case needs 'id' and 'input', and this one has 'input'"),
        ({"id": None, "input": "x"}, "has no 'id'; a case needs 'id' and 'input', and this one has 'id', 'input'"),
        ({"id": "  ", "input": "x"}, "'id' must not be empty, it names the case's folder (got '  ')"),
        ({"id": True, "input": "x"}, "'id' must be text or an integer (got True)"),
        ({"id": "x" * 201, "input": "x"}, "'id' is too long to name a folder, which takes 200 characters"),
    ],
)
def test_a_case_without_an_id_is_not_called_unnamed(tmp_path: Path, case: object, message: str):
    """It is refused: an id is what results are found and compared by."""
    assert refused(tmp_path, [case]).startswith(f"F: cases[0]: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"schemaVersion": 1, "cases": [{"id": "a", "prompt": "x", "must": []}]},
            "F: cases[0]: has no 'input'; a case needs 'id' and 'input', and this one has 'id', 'prompt', 'must'",
        ),
        (
            {"cases": [{"request": "x"}, {"request": "y"}]},
            (
                "F: cases[0]: has no 'id' and no 'input'; a case needs 'id' and 'input', and this one has 'request' "
                "(1 more like it)"
            ),
        ),
        (
            {"skill_name": "s", "evals": []},
            "F: is a skill-creator file; convert it first with `trunchray skills convert`",
        ),
        (
            {"prompts": []},
            "F: a case file is a list of cases, or an object with the list 'cases'; this is an object with 'prompts'",
        ),
        ({"cases": {}}, "F: a case file is a list of cases, or an object with the list 'cases'; 'cases' is an object"),
        ("3", "F: a case file is a list of cases, or an object with the list 'cases'; this is 3"),
        (["a"], "F: cases[0]: a case is an object with 'id' and 'input', not 'a'"),
        ({"cases": []}, "F: has no cases; write at least one object with 'id' and 'input'"),
    ],
)
def test_files_of_other_formats_are_told_what_is_missing(tmp_path: Path, content: Any, message: str):
    """Many formats go by the same file name; the message says which key is not there, and how to go on."""
    assert refused(tmp_path, content).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"id": "a",', "F:1: is not JSON: Expecting property name"),
        ('[\n{"id": "a" "input": 1}]', "F:2: is not JSON: Expecting ',' delimiter at column 12"),
        ('[{"id": "a", "input": "x", "input": "y"}]', "F: is not JSON: it has the key 'input' twice"),
        ('[{"id": "a", "input": "x", "timeout": NaN}]', "F: is not JSON: NaN is not a JSON number"),
        ('[{"id": "a", "input": "\\ud800"}]', "F: contains '\\ud800', half of a surrogate pair"),
        ("[" * 100_000, "F: is not JSON: nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path: Path, content: str, message: str):
    """It is a usage error that names the place."""
    assert refused(tmp_path, content).startswith(message)


def test_a_file_that_is_not_there_or_no_text_is_no_traceback(tmp_path: Path):
    """Likewise; a byte order mark is no harm."""
    with pytest.raises(UsageError, match=r"cannot read the case file '.*none.json': No such file"):
        read_cases(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes('[{"id": "ä"}]'.encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_cases(tmp_path / "latin.json")
    (tmp_path / "mark.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(ids("a")).encode())
    assert [case.id for case in read_cases(tmp_path / "mark.json")] == ["a"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": 3}, "'input' must be text (got 3)"),
        ({"input": " \n"}, "'input' is empty, so nothing would be sent"),
        ({"rubric": "one"}, "'rubric' must be a list of texts (got 'one')"),
        ({"rubric": ["one", 2]}, "rubric[1] must be text (got 2)"),
        ({"rubric": ["one", " "]}, "rubric[1] must be text (got ' ')"),
        ({"files": {"a": "b"}}, "'files' must be a list of texts (got {'a': 'b'})"),
        ({"files": [None]}, "files[0] must be text (got None)"),
        ({"state_prefix": ["x"]}, "'state_prefix' must be text (got ['x'])"),
        ({"timeout": 0}, "'timeout' must be a number of seconds above 0 (got 0)"),
        ({"timeout": "60"}, "'timeout' must be a number of seconds above 0 (got '60')"),
        ({"timeout": True}, "'timeout' must be a number of seconds above 0 (got True)"),
    ],
)
def test_wrong_values_are_named_with_their_place(tmp_path: Path, fields: dict[str, object], message: str):
    """The case, the key and the value."""
    assert refused(tmp_path, [{"id": "a", "input": "x"} | fields]).startswith(f"F: cases[0]: {message}")


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path):
    """The same of several cases in one line."""
    said = refused(tmp_path, [{"id": "a"}, {"id": "b", "input": 1}, {"id": "c"}, {"id": "d"}]).split("\n")
    assert [line.partition(";")[0] for line in said] == [
        "F: cases[0]: has no 'input'",
        "F: cases[1]: 'input' must be text (got 1)",
    ]
    assert said[0].endswith("(2 more like it)")


def test_quality_needs_something_to_grade(tmp_path: Path):
    """Cases without a rubric can be run, but a run for their quality is refused before it begins."""
    cases = read(tmp_path, [{"id": "a", "input": "x", "rubric": ["r"]}, {"id": "b", "input": "x", "rubric": []}])
    check_rubrics(cases[:1])
    with pytest.raises(UsageError, match=r"cases\[1\]: has no rubric, .* cases without one: 'b'"):
        check_rubrics(cases)
