"""A home that its user works in while a tool's is made of it: files come and go, and some may not be looked at."""

from __future__ import annotations

import os
from pathlib import Path, PosixPath
from typing import Any

import pytest

from trunchray.adapters.fresh_home import prepare_home
from trunchray.adapters.host import Host
from trunchray.adapters.tree import followed
from trunchray.core.harness import Harness
from trunchray.core.masking import MOST

KEY = "k9Xv72mQpL0aZr"
HARNESS = Harness(command=("tool", "{prompt}"), home_files=(".tool",))


class LivelyPath(PosixPath):
    """Somebody removes files whose names begin with "looked" or "opened" when that is done with them."""

    def is_file(self) -> bool:
        answer = super().is_file()
        if self.name.startswith("looked"):
            self.unlink(missing_ok=True)
        return answer

    def open(self, *args: Any, **kwargs: Any) -> Any:
        if self.name.startswith("opened"):
            self.unlink(missing_ok=True)
        return super().open(*args, **kwargs)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".tool"
    (folder / "deep").mkdir(parents=True)
    for name in ("auth.json", "looked", "opened", "deep/last"):
        (folder / name).write_text(f'"{KEY}-{name}"')
    (folder / "far").symlink_to("x" * 300)  # looked at, it is an error, as what is in a locked folder is
    return LivelyPath(tmp_path / "home")


def test_what_goes_while_a_home_is_copied_is_passed_over(home: Path, tmp_path: Path):
    """An attempt does not fail because the user's own session has removed a file."""
    assert prepare_home(tmp_path / "fresh", HARNESS, home) == []
    fresh = tmp_path / "fresh" / ".tool"
    assert sorted(path.name for path in fresh.rglob("*")) == ["auth.json", "deep", "last", "opened"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_passed_over(home: Path, tmp_path: Path):
    """With a warning where it was named itself."""
    (home / ".tool" / "deep" / "last").chmod(0)
    (home / ".login").touch(0)
    harness = Harness(command=("tool", "{prompt}"), home_files=(".tool", ".login"))
    said = prepare_home(tmp_path / "fresh", harness, home)
    assert said == ["home_files: '.login' is no file or folder on this machine that may be read"]


def test_what_goes_while_credentials_are_looked_for_is_passed_over(home: Path):
    """Those of the other files are masked."""
    mask = Host(variables={}, home=home).mask(HARNESS)
    assert mask.text(f"{KEY}-auth.json {KEY}-deep/last {KEY}-opened") == f"[masked] [masked] {KEY}-opened"


def test_a_folder_that_goes_or_is_locked_is_passed_over(home: Path):
    """Unless it is a skill, of which all is needed."""
    (home / ".tool" / "deep" / "last").unlink()
    found = followed(home / ".tool", strict=False)
    names = [next(found)[0], next(found)[0]]
    (home / ".tool" / "deep").rmdir()
    assert [*names, *(name for name, _ in found)] == ["auth.json", "deep", "looked", "opened"]
    with pytest.raises(OSError, match="too long"):
        list(followed(home / ".tool"))


def test_a_named_credential_is_masked_however_many_ids_come_before_it(tmp_path: Path):
    """A history of thousands of ids in one folder does not use up the places of another's token."""
    for name in (".history", ".login"):
        (tmp_path / name).mkdir()
    (tmp_path / ".history" / "ids").write_text("\n".join(f"k9Xv72mQ{n:05}pL0a" for n in range(MOST + 5)))
    (tmp_path / ".login" / "hosts.yml").write_text("oauth_token: correcthorse\n")
    harness = Harness(command=("tool", "{prompt}"), home_files=(".history", ".login"))
    mask = Host(variables={}, home=tmp_path).mask(harness)
    assert (mask.text("correcthorse"), mask.left_out) == ("[masked]", 6)
