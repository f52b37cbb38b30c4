"""What a SKILL.md gives: its name and description, as coding tools list them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.skill_md import frontmatter, read_skill_md, skill_folder


def skill(folder: Path, text: str) -> Path:
    (folder / "SKILL.md").write_text(text, encoding="utf-8", newline="")
    return folder


@pytest.mark.parametrize(
    ("fields", "description"),
    [
        ("description: Plain text.", "Plain text."),
        ("description: Plain\n  and folded\n\n  with a gap", "Plain and folded with a gap"),
        ("description: |\n  One\n  two\n\n  three\n", "One two three"),
        ("description: >-\n  One\n  two", "One two"),
        ("description: |-\n  One: two\n   three", "One: two three"),
        ("description: 'It''s\n  fine'", "It's fine"),
        (r'description: "A \"b\"\nc\\d"', 'A "b"\nc\\d'),
        ("description: é 日本 # a comment", "é 日本"),
        ("description: 3", "3"),
        ("description: Use when: asked, or not: asked", "Use when: asked, or not: asked"),
        ("description: Use when: asked\n  or: not\nlicense: MIT", "Use when: asked or: not"),
        ("description: [draft] a text", "[draft] a text"),
        ("description: @mentions and `code`: yes", "@mentions and `code`: yes"),
        (
            r"""description: "x"
broken: a: b""",
            "x",
        ),
    ],
)
def test_the_description_is_one_text(tmp_path: Path, fields: str, description: str):
    """Its lines are joined by a blank, however YAML folds them; what is no YAML is read line by line."""
    found = read_skill_md(skill(tmp_path, f"---\nname: brief-writer\n{fields}\n---\n\n# Body\n"))
    assert (found.name, found.description) == ("brief-writer", description)


def test_lines_may_end_as_windows_ends_them(tmp_path: Path):
    """CRLF and a byte order mark change nothing."""
    text = "\ufeff---\r\nname: a\r\ndescription: |\r\n  One\r\n  two\r\n---\r\nBody\r\n"
    assert read_skill_md(skill(tmp_path, text)).description == "One two"


def test_the_frontmatter_ends_at_its_first_line_of_dashes():
    """Dashes in a text, or further down, end nothing; nested fields are none of the top level."""
    assert frontmatter("---\nname: a --- b\nmetadata:\n  name: c\n---\nx\n---\n") == {"name": "a --- b"}
    assert frontmatter("---\n---\n") == {}
    assert frontmatter("# Title\n\n---\nname: a\n---\n") is None
    assert frontmatter("---\nname: a\n") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Title\n", "has no frontmatter; begin it with a line '---'"),
        ("---\ndescription: x\n---\n", "the frontmatter has no name; write `name: …` in it"),
        ("---\nname: a\ndescription:\n---\n", "the frontmatter has no description"),
        ("---\nname: [a]\ndescription: x\n---\n", "the frontmatter has no name"),
    ],
)
def test_a_skill_without_frontmatter_or_name_is_no_traceback(tmp_path: Path, text: str, message: str):
    """It is a usage error that says what to write."""
    with pytest.raises(UsageError) as error:
        read_skill_md(skill(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'SKILL.md'}: {message}")


def test_a_skill_is_a_folder_with_a_skill_md(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is known by the name of its folder, of a link too; what is none is refused by the option's name."""
    (tmp_path / "real").mkdir()
    skill(tmp_path / "real", "x")
    (tmp_path / "linked").symlink_to("real")
    assert skill_folder(tmp_path / "linked").name == "linked"
    monkeypatch.chdir(tmp_path / "real")
    assert skill_folder(".") == tmp_path / "real"
    with pytest.raises(UsageError, match=r"--variant-path '.*': has no SKILL.md"):
        skill_folder(tmp_path, "--variant-path")
    with pytest.raises(UsageError, match="--skill-path 'nowhere': no such folder"):
        skill_folder("nowhere")


@pytest.mark.parametrize("path", [b"\xff\xfe", b"\xff/skill"])
def test_a_folder_whose_name_is_no_text(tmp_path: Path, path: bytes):
    """Runs say in UTF-8 which skill they are of, so that one is refused at once."""
    folder = tmp_path / os.fsdecode(path)
    folder.mkdir(parents=True)
    skill(folder, "---\nname: a\ndescription: b\n---\n")
    with pytest.raises(UsageError, match="is not UTF-8, which runs cannot store; rename it"):
        skill_folder(folder)
