"""The page on tools and graders of one's own is true: its scripts and commands do what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from trunchray.core import harness_events
from trunchray.core.disarmed import DISARMED
from trunchray.core.rubric import read_grades
from trunchray.evaluators.attempts.harness import PLACES

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "harness.md").read_text(encoding="utf-8")
SCRIPTS: list[tuple[str, str]] = re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)^```", GUIDE, flags=re.M | re.S)
COMMANDS: list[str] = re.findall(r"^```sh\n(.*?)^```", GUIDE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs are of a reader who has followed the page."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples" / "skills", folder / "examples" / "skills")
    for name, text in SCRIPTS:
        (folder / name).write_text(text, encoding="utf-8")
    path = [str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-euc", "\n".join(COMMANDS)],
        cwd=folder,
        env=os.environ | {"PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "own-out"


def read(made: Path, pattern: str) -> Any:
    (file,) = made.glob(pattern)
    return json.loads(file.read_text(encoding="utf-8"))


def test_what_the_tool_prints_is_read(made: Path):
    """Tokens, tool calls and the final message are those of its events."""
    timing = read(made, "*-release-notes-quality/skill/minor-version/timing.json")
    assert timing["tool_calls"] == {"Skill": 1, "Write": 1}
    assert (timing["input_tokens"], timing["output_tokens"], timing["tokens_reported"]) == (9, 3, True)
    assert timing["total_steps"] == 3


def test_what_the_grader_writes_counts(made: Path):
    """Line by line, with its evidence."""
    grading = read(made, "*-release-notes-quality/skill/minor-version/grading.json")
    assert [grade["passed"] for grade in grading["expectations"]] == [True, False, True]
    assert grading["expectations"][2]["evidence"] == "in NOTES.md: {'refactor': False}"


def test_the_tool_is_measured_for_triggers(made: Path):
    """It loads the skill for queries that speak of release notes, which the word in what it has read shows."""
    for result in read(made, "*-release-notes-triggers/triggers-result.json")["results"]:
        assert result["triggers"] == int("release notes" in result["query"].lower()), result
        assert result["runs"] == 1


def test_all_events_and_places_are_named():
    """Every kind of event that is read, every file that a grader finds, and the shape of its answer."""
    named = set(re.findall(r"`([^`\n]+)`", GUIDE))
    kinds = re.findall(
        r'^    "([\w.]+)": _\w+,$', Path(harness_events.__file__).read_text(encoding="utf-8"), flags=re.M
    )
    assert len(kinds) > 10
    assert [kind for kind in ("assistant", *kinds) if kind not in named] == []
    assert [f for f in re.findall(r"[\w-]+\.(?:json|jsonl|txt)\b", PLACES) if f"attempt/{f}" not in named] == []
    assert DISARMED in named
    (answer,) = re.findall(r"^```json\n(.*?)^```", GUIDE, flags=re.M | re.S)
    assert read_grades(["NOTES.md names the version"], answer).grades


def test_links_lead_somewhere():
    """Every file that the page points at is there, and the guide points at the page."""
    for target in re.findall(r"\]\(([^)#]+)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
    assert "](harness.md" in (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
