"""Dated run folders: each command has its own, unless it goes on with one that was interrupted."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from trunchray.adapters.store import Store
from trunchray.errors import UsageError
from trunchray.frontends.skill.run_folder import begin, unfinished

NOW = datetime(2026, 11, 30, 9, 5, 7)
END = "execution-summary.json"


@pytest.fixture
def out(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "out"))


def begun(out: Store, question: str = "q", label: str = "s-quality", now: datetime = NOW) -> Store:
    def about(name: str) -> dict[str, JsonValue]:
        return {"run_id": name, "question": question}

    return begin(out, label, now, about)


def test_runs_of_one_second_have_folders_of_their_own(out: Store):
    """Numbered from the second on; none is ever taken twice, and each names itself."""
    names = [begun(out).uri.rpartition("/")[2] for _ in range(11)]
    assert names == ["20261130-090507-s-quality", *(f"20261130-090507-s-quality-{n}" for n in range(2, 12))]
    assert json.loads(out.read(f"{names[10]}/run.json"))["run_id"] == names[10]


def test_an_interrupted_run_goes_on_in_its_folder(out: Store):
    """As long as it has no summary, and asks the same."""
    folder = begun(out)
    assert unfinished(out, "s-quality", "other", END) is None
    assert unfinished(out, "s-baseline", "q", END) is None
    found = unfinished(out, "s-quality", "q", END)
    assert found is not None
    assert found.uri == folder.uri
    folder.write(END, b"{}")
    assert unfinished(out, "s-quality", "q", END) is None


@pytest.mark.parametrize(
    ("ending", "goes_on"),
    [
        ({"grading_errors": 1, "not_kept": 0}, True),
        ({"grading_errors": 0, "not_kept": 1, "graded_by": ".trunchray/regrades/r"}, True),
        ({"grading_errors": 1, "not_kept": 0, "graded_by": ".trunchray/regrades/r"}, False),
    ],
)
def test_a_run_goes_on_for_what_its_own_command_mends(out: Store, ending: dict[str, JsonValue], goes_on: bool):
    """What could not be kept, or could not be graded by its own grader; errors of a regrade are that one's affair."""
    begun(out).write(END, json.dumps(ending).encode())
    assert (unfinished(out, "s-quality", "q", END) is not None) is goes_on


def test_the_latest_run_of_a_question_decides(out: Store):
    """One that was given up before a whole one is left alone; runs that ask something else do not matter."""
    begun(out)
    later = begun(out)
    later.write(END, b"{}")
    begun(out, question="other", now=NOW.replace(hour=10))
    assert unfinished(out, "s-quality", "q", END) is None


def test_folders_of_others_are_no_runs(out: Store):
    """Neither one without `run.json` nor one whose `run.json` is none of ours."""
    for name, content in (("20261130-090507-s-quality", b"[]"), ("20261130-090508-s-quality", b"{"), ("x", b"{}")):
        out.write(f"{name}/run.json", content)
    out.write("20261130-090509-s-quality/other", b"")
    assert unfinished(out, "s-quality", "q", END) is None


def test_a_second_with_too_many_runs_is_refused(out: Store):
    """Nothing is overwritten then."""
    out.write("20261130-090507-s-quality/run.json", b"{}")
    for number in range(2, 1000):
        out.write(f"20261130-090507-s-quality-{number}/run.json", b"{}")
    with pytest.raises(UsageError, match="wait a second"):
        begun(out)
