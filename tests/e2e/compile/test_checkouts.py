"""What is told of the checkout around a benchmark, and that asking for it runs nothing that the checkout names."""

import os
import subprocess
from pathlib import Path

import pytest

from trunchray.frontends.benchmark.site import locate
from trunchray.frontends.benchmark.source import source_of

ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, env=ALONE, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=a")
    return folder


PROGRAMS = {
    "clean filter": {"filter.evil.clean": "touch {mark}; cat"},
    "filter process": {"filter.evil.process": "touch {mark}", "filter.evil.required": "true"},
    "filter of an odd name": {"filter.e.v=il.clean": "touch {mark}; cat"},
    "file-system monitor": {"core.fsmonitor": "touch {mark}"},
}


@pytest.mark.parametrize("settings", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_no_program_of_a_checkout_is_run(checkout, tmp_path, settings):
    """Filters and monitors that the checkout's own configuration names stay off, and changes are found without them."""
    mark = tmp_path / "mark"
    driver = next(iter(settings)).removeprefix("filter.").rpartition(".")[0]
    (checkout / ".git" / "info" / "attributes").write_text(f"* filter={driver}\n")
    for name, value in settings.items():
        git(checkout, "config", name, value.format(mark=mark))
    (checkout / "a.txt").touch()
    assert source_of(locate(checkout)).dirty is False
    (checkout / "a.txt").write_text("b\n")
    assert source_of(locate(checkout)).dirty is True
    assert not mark.exists()


def test_submodules_are_not_looked_into(checkout, tmp_path):
    """Nobody asks a submodule, whose configuration names programs as well, so whether all is clean is not known."""
    git(checkout, "submodule", "--quiet", "add", str(checkout), "inner")
    assert source_of(locate(checkout)).dirty is True
    git(checkout, "commit", "--quiet", "--message=b")
    assert source_of(locate(checkout)).dirty is None


def test_linked_worktrees_tell_their_state(checkout, tmp_path):
    """A second working tree of a repository is a checkout like every other."""
    linked = tmp_path / "linked"
    git(checkout, "worktree", "add", "--quiet", str(linked))
    assert source_of(locate(linked)).dirty is False
    (linked / "a.txt").write_text("b\n")
    assert source_of(locate(linked)).dirty is True


def test_an_origin_that_is_no_address_is_left_out(checkout):
    """A remote that nobody could reach is no reason not to compile."""
    git(checkout, "config", "remote.origin.url", "https://[bad")
    assert source_of(locate(checkout)).remote is None
