"""Records of attempts: where they are read from, and what is none."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from trunchray.adapters.store import Store
from trunchray.errors import UsageError
from trunchray.frontends.skill.attempt_records import read_records


def put(folder: Path | str, **files: object) -> str:
    """Write JSON files at paths in which `__` stands for a slash."""
    for path, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        Store(str(folder)).write(f"{path.replace('__', '/')}", text.encode())
    return str(folder)


def timing(folder: Path | str, *paths: str, **fields: object) -> str:
    for path in paths:
        Store(str(folder)).write(f"{path}/timing.json", json.dumps({"elapsed_s": 1, **fields}).encode())
    return str(folder)


@pytest.mark.parametrize("wrapped", [False, True])
def test_records_are_a_list_or_the_runs_of_an_object(tmp_path: Path, wrapped: bool):
    """What is no object among them is left out, and said."""
    listed = [{"x": 1}, 3, {"x": 2}]
    file = tmp_path / "records.json"
    file.write_text(json.dumps({"runs": listed, "n": 3} if wrapped else listed))
    found = read_records(str(file))
    assert (found.records, found.notes) == (
        ({"x": 1}, {"x": 2}),
        (f"{file}: 1 entries are not objects and are left out",),
    )


def test_every_timing_below_a_folder_is_a_record(tmp_path: Path):
    """In the order of their paths, at any depth; also the one of an attempt folder itself."""
    timing(tmp_path, "skill/b", "skill/a/run-1", "skill/a/run-2")
    timing(tmp_path / "skill" / "b", ".", case_id="b")
    assert [one["case_id"] for one in read_records(str(tmp_path)).records] == ["a", "a", "b"]
    assert len(read_records(str(tmp_path / "skill" / "b")).records) == 1


def test_a_folder_may_be_in_any_store():
    """As run folders may."""
    where = f"memory://{uuid.uuid4().hex}/run"
    timing(where, "skill/a", "skill/b")
    assert [one["case_id"] for one in read_records(where).records] == ["a", "b"]
    put(where, records=[])
    with pytest.raises(UsageError, match="has no records"):
        read_records(f"{where}/nothing")


def test_what_an_attempt_leaves_in_its_workspace_is_no_record(tmp_path: Path):
    """A tool may write a timing.json of its own; but a case may be called cwd."""
    timing(tmp_path, "skill/a", "skill/a/cwd", "skill/a/cwd/deep", "skill/cwd", ".trunchray/x")
    timing(tmp_path, "skill/unfinished/cwd")
    (tmp_path / "skill" / "unfinished" / "prompt.txt").write_text("x")
    assert [one["case_id"] for one in read_records(str(tmp_path)).records] == ["a", "cwd"]


def test_a_workspace_that_links_to_itself(tmp_path: Path):
    """Two such links have more paths than anybody can walk; a tool may make them."""
    timing(tmp_path, "skill/a", "skill/b/cwd/deep", "skill/b")
    for name in "abc":
        (tmp_path / "skill" / "b" / "cwd" / name).symlink_to(".")
        (tmp_path / "skill" / "b" / "cwd" / "deep" / name).symlink_to("..")
    assert [one["case_id"] for one in read_records(str(tmp_path)).records] == ["a", "b"]


def test_records_that_name_no_case_have_that_of_their_folder(tmp_path: Path):
    """Triggers keep attempts by query; what a record says itself goes before."""
    timing(tmp_path, "queries/q000-r0", "queries/q000-r1", "queries/q012-r0", "skill/a", "skill/b/run-12")
    timing(tmp_path, "skill/c", case_id="7")
    assert [one["case_id"] for one in read_records(str(tmp_path)).records] == ["q000", "q000", "q012", "a", "b", "7"]


def test_a_timing_that_cannot_be_read_is_left_out_and_said(tmp_path: Path):
    """Half of one, a list, a number that is none."""
    timing(tmp_path, "a")
    for name, text in (("b", '{"x"'), ("c", "[]"), ("d", '{"x": NaN}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "timing.json").write_text(text)
    found = read_records(str(tmp_path))
    assert len(found.records) == 1
    assert found.notes == ("b/timing.json, c/timing.json, d/timing.json: not valid JSON objects, left out (3)",)


def test_an_empty_folder_is_refused_and_not_summed_up_as_nothing(tmp_path: Path):
    """So is an empty list, a place where nothing is, and JSON of another kind."""
    with pytest.raises(UsageError, match="has no records of attempts; give a run folder") as error:
        read_records(str(tmp_path))
    assert error.value.exit_code == 2
    for name, text, message in (
        ("empty.json", "[]", "has no records"),
        ("other.json", '{"a": 1}', "records are a list, or an object with the list 'runs', not an object with 'a'"),
        ("broken.json", "[", "is not JSON"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=message):
            read_records(str(tmp_path / name))
    with pytest.raises(UsageError, match="no such file or folder"):
        read_records(str(tmp_path / "none"))


def test_what_makes_figures_mean_less_is_said(tmp_path: Path):
    """Several configs in one, and attempts that report no tokens, whose counts are 0."""
    timing(tmp_path, "skill/a", config="skill", tokens_reported=True)
    timing(tmp_path, "bare/a", config="bare", tokens_reported=False)
    assert read_records(str(tmp_path)).notes == (
        f"{tmp_path}: the figures mix the configs bare, skill; give the folder of one config",
        f"{tmp_path}: 1 of 2 attempts report no tokens and count as 0",
    )
    assert len(read_records(str(tmp_path / "skill")).notes) == 0
