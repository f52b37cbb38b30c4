"""The harness files that come with trunchray."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trunchray.frontends.skill.harness_file import read_harness

CONFIGS = Path(__file__).parents[2] / "configs"
FILES = sorted((CONFIGS / "harness").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_is_a_harness(file: Path):
    """It can be read, gets a prompt as one argument of its own, and asks for a format of events."""
    harness = read_harness(str(file))
    argv = harness.argv("do {cwd}", "/room")
    assert argv.count("do {cwd}") == 1
    assert any("json" in token for token in argv) or file.stem == "scripted"


def test_the_guide_names_them_all():
    """Whoever looks for a tool finds its file, and the example there is one."""
    guide = (CONFIGS / "README.md").read_text(encoding="utf-8").partition("## Coding tools for skill evals")[2]
    assert [file.stem for file in FILES if f"`{file.stem}`" not in guide and f"{file.stem}.json" not in guide] == []
    example = json.loads(guide.partition("```json")[2].partition("```")[0])
    claude = json.loads((CONFIGS / "harness" / "claude-code.json").read_text(encoding="utf-8"))
    assert (example["command"], example["skill_dir"]) == (claude["command"], claude["skill_dir"])
