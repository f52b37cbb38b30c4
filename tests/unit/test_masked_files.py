"""Credentials taken out of what a tool has made, and fixtures that its grader finds as they were given."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trunchray.adapters.masked_files import mask_files
from trunchray.adapters.survey import TreeCaps
from trunchray.core.masking import Mask
from trunchray.core.staging import Fixture
from trunchray.evaluators.attempts.looking import fixture_state

KEY = "k9Xv72mQpL0aZr"
README = f"Set the key, {KEY}.".encode()


def put(root: Path, *paths: str) -> list[Fixture]:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(README)
    return [Fixture(path=path, sha256=hashlib.sha256(README).hexdigest()) for path in paths]


def test_a_fixture_that_was_left_alone_is_not_said_to_be_changed(tmp_path: Path):
    """Also where a credential is in its name or in that of a folder around it; the same file elsewhere is masked."""
    given = put(tmp_path, "files/README.md", f"{KEY}/{KEY}.txt")
    put(tmp_path, "files/copy.md", f"{KEY}/new/{KEY}")
    mask_files(tmp_path, Mask([KEY]), TreeCaps(), given)
    assert [fixture_state(tmp_path / each.path, each.sha256) for each in given] == ["unchanged", "unchanged"]
    assert (tmp_path / "files/copy.md").read_text() == "Set the key, [masked]."
    assert (tmp_path / f"{KEY}/new/[masked]").read_text() == "Set the key, [masked]."


def test_a_fixture_that_was_changed_is_masked(tmp_path: Path):
    """A tool that writes its key into one does not bring it out."""
    (given,) = put(tmp_path, "README.md")
    (tmp_path / "README.md").write_bytes(README + b"!")
    mask_files(tmp_path, Mask([KEY]), TreeCaps(), [given])
    assert (tmp_path / "README.md").read_text() == "Set the key, [masked].!"
    assert fixture_state(tmp_path / "README.md", given.sha256) == "changed"
