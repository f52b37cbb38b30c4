"""The skill that is there to see whether a tool loads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.agents.harness.skill_text import SyntheticSkill
from trunchray.core.agent import TriggerSkill
from trunchray.frontends.skill.skill_md import read_skill_md

DIGITS, SECRET = "0badcafe", "5eed0bad"


def made(name: str = "briefs", description: str = "Writes briefs.") -> SyntheticSkill:
    return SyntheticSkill.of(TriggerSkill(name=name, description=description), DIGITS, SECRET)


@pytest.mark.parametrize(
    "description",
    [
        "Writes briefs.",
        "a: b # c",
        "--- no end",
        "'quoted' \"twice\"",
        "  indented",
        "多言語 ✓",
        "- a list",
        "%x",
        "{y}",
        "yes",
        "null",
        "Two lines.\nOne text.",
        "Ends with a colon:",
        "It's (really) plain/simple; x, y.",
        "ends in a comment # here",
    ],
)
def test_a_tool_reads_the_real_description(description: str, tmp_path: Path):
    """Whatever is in it, under a name that belongs to this attempt."""
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "SKILL.md").write_text(made(description=description).text, encoding="utf-8")
    found = read_skill_md(folder)
    assert (found.name, found.description) == (f"briefs-trig-{DIGITS}", " ".join(description.split("\n")).strip())


@pytest.mark.parametrize("description", ["Writes briefs.", "a: b # c", "x" * 500])
def test_a_description_of_one_line_stays_on_one_line(description: str):
    """Some tools read front matter line by line."""
    (line,) = (line for line in made(description=description).text.splitlines() if line.startswith("description:"))
    assert description in line


def test_the_token_is_in_the_body_alone_and_cannot_be_told_from_the_name():
    """A description may ask for "TRIGGER-LOADED- and the end of my name": the name, which listings show, has others."""
    skill = made()
    assert skill.token == f"TRIGGER-LOADED-{SECRET}"
    assert SECRET not in skill.text.split("---")[1]
    assert SECRET not in skill.name
    assert f"Begin your reply with the exact token `{skill.token}`, then continue." in skill.text


@pytest.mark.parametrize(
    ("name", "folder"), [("../up", "_up"), ("a/b c", "a_b_c"), ("..", "unnamed"), ("x" * 80, "x" * 50)]
)
def test_its_name_is_one_folder(name: str, folder: str):
    """Whatever the skill is called; with room for the digits in the 64 characters that tools allow."""
    assert made(name=name).name == f"{folder}-trig-{DIGITS}"
