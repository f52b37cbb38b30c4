"""The guide to skill evals is true: its commands run one after another, and it leaves nothing out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from trunchray.cli.main import app
from trunchray.core.attempt import Status
from trunchray.core.harness import Harness
from trunchray.frontends.skill.case_file import SkillCase, read_cases
from trunchray.frontends.skill.trigger_file import read_queries

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, flags=re.M | re.S)
EXAMPLE = ROOT / "examples" / "skills" / "release-notes"


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What a reader has who has followed the page, and what was printed."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples" / "skills", folder / "examples" / "skills")
    shutil.copytree(ROOT / "configs", folder / "configs")
    path = [str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-euc", "\n".join(blocks("sh"))],
        cwd=folder,
        env=os.environ | {"PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_the_commands_print_what_the_page_shows(clone: tuple[Path, str]):
    """But for times and the names of runs, which are an ellipsis there."""
    printed = [line.split() for line in clone[1].splitlines()]
    for block in blocks("text"):
        for line in block.splitlines() if "run.json" not in block else []:
            wanted = [re.compile(re.escape(word).replace("…", ".*")) for word in line.split()]
            assert any(
                len(words) == len(wanted) and all(map(re.Pattern.fullmatch, wanted, words)) for words in printed
            ), line


def test_the_run_folder_is_as_the_page_draws_it(clone: tuple[Path, str]):
    """All that is named is there, and there is nothing else."""
    (drawn,) = [block for block in blocks("text") if "run.json" in block]
    of_run, _, of_attempt = drawn.partition("skill/minor-version/run-1/")
    of_attempt = of_attempt.partition(".trunchray")[0]
    (run,) = (clone[0] / "evals-out").glob("*-release-notes-baseline")
    files = re.compile(r"[\w-]+\.(?:jsonl|json|txt)|\bcwd")
    attempt = run / "skill" / "minor-version" / "run-1"
    assert {path.name for path in attempt.iterdir()} == set(files.findall(of_attempt))
    assert {path.name for path in run.iterdir()} == {*files.findall(of_run), "skill", "bare", ".trunchray"}


def test_the_converted_cases_are_the_same(clone: tuple[Path, str]):
    """To skill-creator and back."""
    files = (clone[0] / "evals-out" / "cases.json", EXAMPLE / "evals" / "cases.json")
    converted, original = (
        [case.model_dump(exclude={"place", "written"}) for case in read_cases(path)] for path in files
    )
    assert converted == original


def test_every_key_and_option_is_explained():
    """What cases and harness files may hold, all options of the two commands, and how attempts end."""
    fields = set(SkillCase.model_fields) - {"place", "folder", "written"}
    named = set(re.findall(r"`([\w-]+)`", GUIDE))
    assert fields | set(Harness.model_fields) <= named
    assert set(get_args(Status)) <= named
    root: Any = typer.main.get_command(app)
    skills = root.commands["skills"]
    everywhere = {"--help", "--quiet", "--json"}
    options = {
        option
        for name in ("run", "triggers")
        for parameter in skills.commands[name].params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert [option for option in sorted(options - everywhere) if option not in GUIDE] == []


def test_the_example_files_are_read(tmp_path: Path):
    """The JSON on the page is what those who read it accept."""
    cases, queries = blocks("json")
    for name, text in (("cases.json", cases), ("triggers.json", queries)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [case.id for case in read_cases(tmp_path / "cases.json")] == ["minor-version"]
    assert [query.should_trigger for query in read_queries(tmp_path / "triggers.json")] == [True, False]


def test_links_lead_somewhere():
    """Every file that the page points at is there."""
    for target in re.findall(r"\]\(([^)#]+)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
