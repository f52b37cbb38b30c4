"""Experiments in files: what is compared with, what is saved, what is refused before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.evaluations import concluded, experiment
from trunchray.errors import StoreError, UsageError
from trunchray.frontends.evaluation.experiment_file import read_experiment, save_place, write_experiment

SAVED = experiment({"a": "p", "b": "f"})


@pytest.fixture(params=["path", "file://", "memory://"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder of every kind that needs no server."""
    return {"path": str(tmp_path), "file://": f"file://{tmp_path}", "memory://": f"memory://{tmp_path}"}[request.param]


def refusal(compare: Any, name: str = "e") -> str:
    with pytest.raises(UsageError) as refused:
        read_experiment(compare, name=name)
    return str(refused.value)


def test_what_was_saved_is_compared_with(place: str):
    """Wherever files are kept; folders are made as they are needed."""
    write_experiment(f"{place}/evals/e.json", SAVED)
    assert read_experiment(f"{place}/evals/e.json", name="e") == SAVED


def test_the_same_path_is_read_first_and_then_replaced(tmp_path: Path):
    """What was compared with stays what it was."""
    path = tmp_path / "e.json"
    write_experiment(str(path), SAVED)
    before = read_experiment(path, name="e")
    after = concluded({"a": "f", "b": "f"}, compare=before)
    write_experiment(str(path), after.experiment)
    assert [each.case for each in after.flips.broke] == ["a"]
    assert read_experiment(path, name="e") == after.experiment != before


def test_the_file_is_what_the_experiment_says(tmp_path: Path):
    """Its bytes, and beside it nothing that was needed to write it whole."""
    write_experiment(str(tmp_path / "e.json"), SAVED)
    assert [path.name for path in tmp_path.iterdir()] == ["e.json"]
    assert (tmp_path / "e.json").read_bytes() == SAVED.to_bytes()


@pytest.mark.parametrize("name", ["e.json", "no/such/folder/e.json"])
def test_a_missing_file_means_no_drops(place: str, name: str):
    """The first run has nothing to be compared with."""
    assert read_experiment(f"{place}/{name}", name="e") is None


def test_nothing_to_compare_with():
    """`compare` may be left out."""
    assert read_experiment(None, name="e") is None


def test_an_experiment_is_compared_with_as_it_is():
    """`compare=before.experiment`, with no file; or its JSON."""
    assert read_experiment(SAVED, name="e") is SAVED
    assert read_experiment(SAVED.to_json(), name="e") == SAVED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "it is not JSON: Expecting value"),
        ("{", "it is not JSON: Expecting property name"),
        ("[" * 100_000, "it is not JSON: "),
        ("\xff", "it is not JSON: "),
        ("null", "None is not an experiment"),
        ("[]", "[] is not an experiment"),
        ('{"format": 1, "name": "e", "cases": {}}', "it has format 1, and only format 2 can be read"),
        ('{"name": "e", "cases": {}}', "it names no format"),
        ('{"format": 2, "name": "e", "cases": {"a": {"S": {"pass": false, "value": NaN}}}}', "it is not JSON: "),
        ('{"format": 2, "name": "e", "cases": {"a": {"S": {"pass": false, "value": 1e999}}}}', "it is not JSON: "),
        ('{"format": 2, "name": "e", "cases": {"a": {}, "a": {}}}', "it is not JSON: it has the key 'a' twice"),
        ('{"format": 2, "name": "e", "cases": {"a": {"S": {}}}}', "cases.a.S.pass: Field required"),
    ],
)
def test_what_is_no_experiment_is_refused(tmp_path: Path, content: str, why: str):
    """With the file, why, and the next step."""
    path = tmp_path / "e.json"
    path.write_bytes(content.encode("latin-1"))
    said = refusal(path)
    assert said.startswith(f"compare {str(path)!r}: {why}")
    assert said.endswith("or leave `compare` out")


def test_an_experiment_of_another_evaluation_is_refused(tmp_path: Path):
    """Their cases have nothing to do with each other."""
    path = tmp_path / "e.json"
    write_experiment(str(path), SAVED)
    assert refusal(path, "other").startswith(f"compare {str(path)!r}: it belongs to 'e', not to 'other'; ")
    assert refusal(SAVED, "other").startswith("compare: it belongs to 'e', not to 'other'; ")


def test_what_cannot_be_read_is_refused(tmp_path: Path):
    """A folder is no file, and that is no reason to skip drops."""
    said = refusal(tmp_path)
    assert said.startswith(f"compare {str(tmp_path)!r}: cannot be read: ")
    assert said.endswith("name another file, or leave `compare` out")


@pytest.mark.parametrize(
    ("compare", "why"),
    [
        (3, "compare: 3 is not an experiment; give a file, or a report's `.experiment`"),
        (b"e.json", "compare: b'e.json' is not an experiment"),
        ({"cases": {}}, "compare: it names no format"),
        ("", "compare: cannot open ''"),
        ("evals/", "compare: cannot open 'evals/': it names no file in a folder"),
        ("s3://bucket", "compare: cannot open 's3://bucket': it names no file in a folder"),
        ("nowhere://x/e.json", "compare: cannot open 'nowhere://x'"),
        ("a\0b", "compare: 'a\\x00b' is no path"),
    ],
)
def test_what_names_no_experiment_is_refused(compare: object, why: str):
    """Before anything runs."""
    assert refusal(compare).startswith(why)


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe")
    assert "is a device or the like; name a file" in refusal(tmp_path / "pipe")


def test_a_report_is_no_experiment():
    """But it has one."""
    assert "give a file, or a report's `.experiment`" in refusal(concluded({"a": "p"}))


@pytest.mark.parametrize(
    ("save", "why"),
    [
        (3, "save: 3 is not a file; give a path or a URI such as s3://bucket/e.json"),
        (b"x", "save: b'x' is not a file"),
        ("", "save: cannot open ''"),
        ("evals/", "save: cannot open 'evals/': it names no file in a folder"),
        ("s3://bucket", "save: cannot open 's3://bucket': it names no file in a folder"),
        ("nowhere://x/e.json", "save: cannot open 'nowhere://x'"),
    ],
)
def test_what_can_be_no_file_is_refused_before_anything_runs(save: object, why: str):
    """Results that are paid for must not be lost over a typing error."""
    with pytest.raises(UsageError) as refused:
        save_place(save)
    assert str(refused.value).startswith(why)


def test_a_folder_is_refused_as_the_file_to_save(tmp_path: Path):
    """It would be found out after the run."""
    with pytest.raises(UsageError, match="is a folder; name a file in it"):
        save_place(tmp_path)


def test_what_is_no_file_is_never_replaced(tmp_path: Path):
    """A pipe, as a device would be, is refused; of a link it is the file behind it that is written."""
    os.mkfifo(tmp_path / "pipe")
    for place in ("/dev/null", tmp_path / "pipe", "/tmp"):
        with pytest.raises(UsageError, match=r"is a (device or the like|folder)"):
            save_place(place)
    (tmp_path / "link.json").symlink_to("real.json")
    for _ in range(2):
        write_experiment(save_place(tmp_path / "link.json"), SAVED)
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "real.json").read_bytes() == SAVED.to_bytes()
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(UsageError, match="cannot be written"):
        save_place(tmp_path / "one")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path):
    """It is known before anything is paid for: a file stands where a folder should be made."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        save_place(tmp_path / "file" / "new" / "e.json")
    with pytest.raises(UsageError, match="cannot be written: File name too long"):
        save_place(tmp_path / ("x" * 5000))


def test_any_other_place_will_do(place: str):
    """Folders need not be there yet; a path means the same file when the process has gone elsewhere by then."""
    save_place(f"{place}/new/e.json")
    assert save_place(Path("e.json")) == str(Path.cwd() / "e.json")
    assert save_place("memory://bucket/e.json") == "memory://bucket/e.json"


def test_a_file_that_cannot_be_written_is_an_error_of_the_store(tmp_path: Path):
    """The same command can try again."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        write_experiment(str(tmp_path / "file" / "e.json"), SAVED)
