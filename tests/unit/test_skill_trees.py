"""Skills as workers get them: the same content is the same bytes, and nothing from outside is in them."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from trunchray.adapters.tree import TreeError, pack


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: x\n---\n")
    (folder / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "scripts" / "run.sh").chmod(0o755)
    return folder


def names(content: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return tar.getnames()


def test_the_same_content_is_the_same_bytes(skill: Path, tmp_path: Path):
    """Whenever it was written, whoever owns it, and what it is called."""
    before = pack(skill)
    os.utime(skill / "SKILL.md", (1, 1))
    (skill / "__pycache__").mkdir()
    (skill / "__pycache__" / "x.pyc").touch()
    (skill / ".git").mkdir()
    skill.rename(tmp_path / "other")
    assert pack(tmp_path / "other") == before
    assert names(before) == ["SKILL.md", "scripts", "scripts/run.sh"]
    (tmp_path / "other" / "scripts" / "run.sh").chmod(0o644)
    assert pack(tmp_path / "other") != before


def test_links_inside_are_followed(skill: Path):
    """A worker gets a copy of what they lead to."""
    (skill / "also.sh").symlink_to("scripts/run.sh")
    with tarfile.open(fileobj=io.BytesIO(pack(skill))) as tar:
        assert tar.extractfile("also.sh").read() == b"#!/bin/sh\n"  # pyright: ignore[reportOptionalMemberAccess]
        assert tar.getmember("also.sh").isfile()


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "nowhere", "."])
def test_links_that_lead_elsewhere_are_refused(skill: Path, target: str):
    """Nothing of the author's machine is packed by accident, and nothing without end."""
    (skill.parent / "secret").write_text("key")
    (skill / "link").symlink_to(target)
    with pytest.raises(TreeError, match=r"is a link|neither a file nor a folder"):
        pack(skill)


def test_what_is_no_file_is_refused(skill: Path):
    """A pipe would be read for ever."""
    os.mkfifo(skill / "pipe")
    with pytest.raises(TreeError, match="neither a file nor a folder"):
        pack(skill)


def test_files_that_are_not_for_the_tool_are_left_out(skill: Path, tmp_path: Path):
    """Also under another name; what else is in the folder stays, and leaving out what is not there changes nothing."""
    before = pack(skill)
    cases = skill / "cases.json"
    cases.write_text("[]")
    (skill / "again.json").symlink_to("cases.json")
    assert pack(skill, leave_out=[cases, tmp_path / "none.json"]) == before
