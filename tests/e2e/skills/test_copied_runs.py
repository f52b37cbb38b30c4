"""Runs of skills that are looked at elsewhere than where they were made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.commands import CommandLine
from support.skill_project import GRADES, SkillProject
from trunchray.adapters.store import Store


@pytest.fixture
def trunchray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_a_copy_is_graded_in_its_own_folder(trunchray: CommandLine, tmp_path: Path):
    """Stored rows name the folder of the original, which stays as it is: a row is no leave to write anywhere."""
    project = SkillProject(tmp_path / "project", str(tmp_path / "out"))
    assert trunchray("skills", "run", *project.options("--pool", "local")).code == 0
    run, copy = project.run(), tmp_path / "copy"
    shutil.copytree(run.uri, copy)
    before = {path: run.read(path) for path in run.find()}
    done = trunchray("regrade", copy, "--grader-harness", project.grader(GRADES), "--pool", "local", "--json")
    assert done.code == 0
    assert {path: run.read(path) for path in run.find()} == before
    kept = [json.loads(Store(str(copy)).read(f"skill/{name}/grading.json")) for name in ("first", "second")]
    assert [each["summary"]["passed"] for each in kept] == [1, 0]
