"""Compiling from a real repository at a commit, with the real git."""

import json
import subprocess
from pathlib import Path

import pytest

from trunchray.cli.main import run_command
from trunchray.errors import UsageError
from trunchray.frontends.benchmark.compiler import compile_benchmark


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()


def eval_module(repository: Path, prompt: str) -> str:
    """Commit a benchmark with this prompt; gives back the commit."""
    folder = repository / "packages" / "b" / "evals"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.ts").write_text(
        f'export default {{ id: "a", prompt: "{prompt}", evaluate: {{ kind: "non_empty" }} }};\n'
    )
    git(repository, "add", ".")
    git(repository, "commit", "-qm", prompt)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path) -> Path:
    (tmp_path / "bench.git").mkdir()
    git(tmp_path / "bench.git", "init", "-q", "-b", "main")
    return tmp_path / "bench.git"


def test_exactly_that_commit_is_compiled(repository, tmp_path):
    """An older commit stays what it was, whatever came later, and is the same release as its checkout."""
    old = eval_module(repository, "Old.")
    checkout = compile_benchmark(repository / "packages" / "b")
    eval_module(repository, "New.")
    compiled = compile_benchmark(f"git+file://{repository}@{old}#packages/b")
    assert b'"Old."' in compiled.cases
    assert compiled.release.digest == checkout.release.digest
    source = compiled.release.source
    assert (source.commit, source.dirty, source.remote) == (old, False, None)


def test_nothing_of_the_repository_or_its_owner_runs(repository, tmp_path, monkeypatch):
    """Neither filters, nor hooks of a template, nor line ends of the user's settings have any effect."""
    (repository / ".gitattributes").write_text("* filter=evil\n")
    commit = eval_module(repository, "Same.")
    witness = tmp_path / "ran"
    hook = tmp_path / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f'[filter "evil"]\n smudge = touch {witness}; cat\n[core]\n hooksPath = {hook.parent}\n autocrlf = true\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "gitconfig").rename(tmp_path / ".gitconfig")
    assert compile_benchmark(f"git+file://{repository}@{commit}#packages/b").release.cases.count == 1
    assert not witness.exists()


def test_what_is_not_there_is_said(repository, tmp_path, monkeypatch):
    """A missing commit, path, repository and git are one clear sentence each."""
    commit = eval_module(repository, "A.")
    absent = "1" * 40
    with pytest.raises(UsageError, match=f"has no commit {absent}"):
        compile_benchmark(f"git+file://{repository}@{absent}")
    with pytest.raises(UsageError, match=f"there is no 'nowhere' in .* at commit {commit}"):
        compile_benchmark(f"git+file://{repository}@{commit}#nowhere")
    with pytest.raises(UsageError, match="is not a benchmark config") as refused:
        compile_benchmark(f"git+file://{repository}@{commit}#packages/b/evals/a.ts")
    assert "trunchray-" not in str(refused.value)
    with pytest.raises(UsageError, match=r"cannot fetch file:///.*missing"):
        compile_benchmark(f"git+file://{tmp_path}/missing@{commit}")
    with pytest.raises(UsageError, match=r"there is no 'n{300}' in"):
        compile_benchmark(f"git+file://{repository}@{commit}#{'n' * 300}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git is not installed"):
        compile_benchmark(f"git+file://{repository}@{commit}")
    (tmp_path / "git").mkdir(mode=0o755)
    with pytest.raises(UsageError, match="git cannot be run"):
        compile_benchmark(f"git+file://{repository}@{commit}")


def test_credentials_stay_out_of_failures(tmp_path):
    """What git says about an address is shown without the token in it; a closed port is no network."""
    with pytest.raises(UsageError) as refused:
        compile_benchmark(f"git+https://user:t0ken@127.0.0.1:9/x.git@{'a' * 40}")
    assert "t0ken" not in str(refused.value)
    assert "cannot fetch https://127.0.0.1:9/x.git" in str(refused.value)


def test_commands_take_git_addresses(repository, tmp_path, capsys):
    """Every command that takes a benchmark's folder takes one, and gives the same for it."""
    commit = eval_module(repository, "A.")
    address = f"git+file://{repository}@{commit}#packages/b"
    digest = compile_benchmark(repository / "packages" / "b").release.digest
    for arguments in (
        ["compile", address, "--out", str(tmp_path / "out")],
        ["inspect", address],
        ["check", address],
        ["run", address, "--model", "mock/echo", "--out", str(tmp_path / "runs"), "--run-id", "r"],
    ):
        assert run_command([*arguments, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown.get("digest", shown.get("release_digest")) == digest
    assert (tmp_path / "out").is_dir()
    assert json.loads((tmp_path / "runs" / "r" / "run.json").read_bytes())["release_digest"] == digest


@pytest.mark.parametrize(("answer", "code"), [("something", 0), (" ", 1)])
def test_answers_are_tried_on_commits(repository, answer, code):
    """`try` grades with the evaluator that a commit has."""
    commit = eval_module(repository, "A.")
    address = f"git+file://{repository}@{commit}#packages/b"
    assert run_command(["try", address, "--case", "a", "--output", answer]) == code
