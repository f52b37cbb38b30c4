"""Folders that are held: whether their names still lead to them, and that nothing else is removed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from trunchray.adapters.held_folder import HeldFolder


@pytest.fixture
def held(tmp_path: Path) -> Generator[HeldFolder]:
    (tmp_path / "place" / "room").mkdir(parents=True)
    (tmp_path / "place" / "room" / "login").touch()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "place" / "room" / "link").symlink_to(tmp_path / "precious")
    with closing(HeldFolder(tmp_path / "place" / "room")) as folder:
        yield folder


def test_a_folder_that_stands_is_removed(held: HeldFolder, tmp_path: Path):
    """With all that is in it; links are not followed."""
    assert held.stands
    held.remove()
    held.remove()
    assert not held.stands
    assert sorted(tmp_path.rglob("*")) == [tmp_path / name for name in ("place", "precious", "precious/file")]


@pytest.mark.parametrize("put", ["a link", "a folder", "nothing"])
def test_a_folder_that_was_renamed_is_removed(held: HeldFolder, tmp_path: Path, put: str):
    """What stands in its place is left alone."""
    held.path.rename(held.path.with_name("other"))
    if put == "a link":
        held.path.symlink_to(tmp_path / "precious")
    elif put == "a folder":
        held.path.mkdir()
    assert not held.stands
    held.remove()
    assert [path.name for path in held.path.parent.iterdir()] == ([] if put == "nothing" else ["room"])
    assert (tmp_path / "precious" / "file").exists()


def test_a_folder_that_was_moved_elsewhere_is_emptied(held: HeldFolder, tmp_path: Path):
    """So that no login is left in it."""
    held.path.rename(tmp_path / "elsewhere")
    held.remove()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_to_a_folder_is_none(tmp_path: Path):
    """Nobody is led to something else."""
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="link"):
        HeldFolder(tmp_path / "link")
