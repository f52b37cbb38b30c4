"""What a coding tool finds in its clean room: workspace, skill, environment and home."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from support.attempt_bench import Bench
from support.scripted_harness import scripted_harness
from trunchray.core.harness import Harness

TEMPORARY = Path(tempfile.gettempdir()).resolve()


async def test_the_skill_is_copied_into_the_workspace(bench: Bench):
    """All of it but caches and git, executable where it was; the workspace is a git repository, which is not kept."""
    script = {"replies": [{"when": "brief", "do": [{"write": "seen", "text": "x"}, {"say": "I wrote it."}]}]}
    bench.more["variables"] = bench.variables
    skill = bench.skill(script=script)
    trace = await bench.run("write a product brief", skill=skill)
    below = "cwd/.agents/skills/briefs"
    assert [path for path in bench.files() if path.startswith(below)] == [
        f"{below}/SKILL.md",
        f"{below}/evals/scripted.json",
        f"{below}/scripts/count.sh",
    ]
    assert os.access(Path(bench.root, "skill/create-1", below, "scripts/count.sh"), os.X_OK)
    assert trace.output == "I wrote it."
    assert not any(".git" in path for path in bench.files())


async def test_bare_has_no_skill(bench: Bench):
    """It is the same tool without one."""
    trace = await bench.run("write a product brief", name="bare")
    assert trace.output == "There is no script for this."
    assert not [path for path in bench.files("bare/create-1") if path.startswith("cwd/")]


async def test_the_workspace_is_a_git_repository(bench: Bench):
    """There tools see the end of the project, and look no further up."""
    found = Harness(command=("sh", "-c", "test -d .git && pwd # {prompt}"))
    assert Path((await bench.run("x", harness=found)).output).name == "cwd"


async def test_without_git_a_run_goes_on(bench: Bench):
    """Where git is not installed, or refuses, the workspace is just no repository."""
    bench.variables["PATH"] = str(bench.home)
    found = Harness(command=("/bin/sh", "-c", "test -d .git || echo no repository # {prompt}"))
    assert (await bench.run("x", harness=found)).output == "no repository"


async def test_repositories_in_the_workspace_are_kept_without_their_git(bench: Bench):
    """At any depth: what git has there is not what the skill has made."""
    await bench.does({"write": "sub/.git/config"}, {"write": "sub/x.md"})
    assert [path for path in bench.files() if path.startswith("cwd/")] == ["cwd/sub/x.md"]


async def test_rooms_are_not_in_the_project(bench: Bench):
    """No tool finds the instructions of a project that lies above its workspace."""
    bench.more["rooms"] = None
    where = Path((await bench.run("x", harness=Harness(command=("sh", "-c", "pwd # {prompt}")))).output)
    assert where.is_relative_to(TEMPORARY)
    assert not where.is_relative_to(Path(__file__).parents[3])
    assert not where.parent.exists()


async def test_the_environment_is_exactly_as_said(bench: Bench):
    """PATH, a fresh HOME, and what the harness says: no LANG, no proxy, no secret of the host that it does not name."""
    env = {"A": "1", "B": "~", "C": "~/.tool", "REGION": "", "ABSENT": ""}
    program = "import os,json,sys; print(json.dumps({**os.environ, 'home': os.listdir(os.environ['HOME'])}))"
    harness = Harness(command=(sys.executable, "-S", "-X", "utf8=1", "-c", program, "{prompt}"), env=env)
    found = json.loads((await bench.run("x", harness=harness)).output)
    home = found.pop("HOME")
    found.pop("LC_CTYPE", None)  # Python's own, where there is no locale
    assert Path(home).name == ".home"
    assert Path(home).is_relative_to(bench.rooms)
    assert found == {
        "PATH": bench.variables["PATH"],
        "A": "1",
        "B": home,
        "C": f"{home}/.tool",
        "REGION": "of the host",
        "home": [".tool"],
    }


async def test_home_files_are_copied(bench: Bench):
    """Files and, except on macOS, folders: a run cannot write to the host's home through them."""
    (bench.home / ".tool" / "deep").mkdir(parents=True)
    (bench.home / ".tool" / "deep" / "auth.json").write_text("login")
    (bench.home / ".token").write_text("t")
    (bench.home / ".token").chmod(0o600)
    os.mkfifo(bench.home / ".tool" / "agent.sock")
    script = "cat $HOME/.tool/deep/auth.json $HOME/.token; echo x > $HOME/.tool/deep/auth.json; stat -c %a $HOME/.token"
    harness = Harness(command=("sh", "-c", f"{script} # {{prompt}}"), home_files=("~/.tool", ".token"))
    trace = await bench.run("x", harness=harness)
    assert trace.output == "logint600"
    assert (bench.home / ".tool" / "deep" / "auth.json").read_text() == "login"


async def test_home_folders_are_links_on_macos(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Its keychains work in their place only."""
    (bench.home / "Library" / "Keychains").mkdir(parents=True)
    (bench.home / ".token").write_text("t")
    monkeypatch.setattr(sys, "platform", "darwin")
    script = "readlink $HOME/Library/Keychains; test -L $HOME/.token || echo copied"
    harness = Harness(command=("sh", "-c", f"{script} # {{prompt}}"), home_files=("Library/Keychains", ".token"))
    assert (await bench.run("x", harness=harness)).output == f"{bench.home}/Library/Keychains\ncopied"
    assert (bench.home / "Library" / "Keychains").is_dir()


async def test_missing_home_files_are_a_warning_only(bench: Bench):
    """The run goes on; its error stream says what was not there."""
    await bench.does({"stderr": "x"}, harness=scripted_harness(home_files=("~/.nothing",)))
    warning = "trunchray: home_files: '.nothing' is no file or folder on this machine that may be read\n"
    assert bench.text("stderr.txt") == f"{warning}x"


async def test_nothing_of_the_home_is_kept(bench: Bench):
    """Logins stay where they are."""
    (bench.home / ".token").write_text("secret login")
    await bench.does({"say": "x"}, harness=scripted_harness(home_files=("~/.token",)))
    assert all("secret login" not in bench.text(path) for path in bench.files())


async def test_cwd_within_the_users_prompt_is_not_replaced(bench: Bench):
    """The original put the workspace's path there."""
    trace = await bench.run("explain {cwd} and {query}", harness=Harness(command=("echo", "{prompt}")))
    assert trace.output == "explain {cwd} and {query}"
