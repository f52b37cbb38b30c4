"""`trunchray view` of skill runs: what its pages get of attempts."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from support.commands import CommandLine
from support.skill_project import GRADES, LOADS, SkillProject, case

pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'trunchray[view]'`")


@pytest.fixture
def trunchray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.fixture
def project(tmp_path: Path) -> SkillProject:
    return SkillProject(tmp_path / "project", str(tmp_path / "out"))


class Site:
    """A viewer that serves one run."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(self, question: str, **query: str | int) -> Any:
        with urllib.request.urlopen(f"{self._address}/api/{question}?{urlencode(query)}") as response:
            return json.load(response)

    def answers(self) -> dict[str, Any]:
        """The answer page of each trial that is listed, by the title of its case, its model and its attempt."""
        found: dict[str, Any] = {}
        for trial in self("trials")["trials"]:
            named = {"run": trial["run"], "id": trial["case"], "model": trial["model"], "attempt": trial["attempt"]}
            (asked,) = self("case", id=trial["case"])["versions"]
            found[f"{asked['title']} {trial['model']} {trial['attempt']}"] = self("answer", **named)
        return found


@contextmanager
def served(run: str, *options: str) -> Generator[Site]:
    """`trunchray view` of the run, as a process of its own."""
    command = [sys.executable, "-m", "trunchray.cli.main", "view", run, "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            said = "".join(iter(process.stdout.readline, "}\n")) + "}"
            yield Site(json.loads(said)["url"].rstrip("/"))
        finally:
            process.terminate()


def test_every_trial_of_a_skill_run_can_be_opened(project: SkillProject, trunchray: CommandLine):
    """Graded, failed or not: its folder, its status, what it called, what it said, and what is wrong with it."""
    project.cases(case("first", rubric=["first is good", "it is short"]), case("bad", {"exit": 2}))
    grader = project.grader(GRADES)
    done = trunchray("skills", "run", *project.options("--grader-harness", grader, "--pool", "local"))
    assert done.code == 1
    with served(project.run().uri) as site:
        found = site.answers()
    good, bad = found["first skill 1"], found["bad skill 1"]
    folder = f"{project.run().uri}/skill"
    first, *called, last = good["passages"]
    assert first == passage("attempt", "skill", f"status  ok\nfolder  {folder}/first")
    assert [(each["role"], each["name"]) for each in called] == [
        ("call", "Skill"),
        ("call", "Write"),
        ("result", "Write"),
    ]
    assert (last["role"], last["text"]) == ("answer", "wrote a.txt")
    assert (good["outcome"], good["remarks"], good["count"]) == ("failed", [], 5)
    assert bad["passages"][0] == passage("attempt", "skill", f"status  error\nfolder  {folder}/bad")
    assert (bad["outcome"], bad["failure"]) == ("error", "harness/error")
    assert "exit code 2" in bad["remarks"][0]["text"]


def test_lines_of_rubrics_are_shown_with_verdict_and_evidence(project: SkillProject, trunchray: CommandLine):
    """To those who ask for what only grading knows; in the order of the rubric, and not only those that failed."""
    lines = ["first is good", *(f"first has part {number}" for number in range(2, 11)), "it is short"]
    project.cases(case("first", rubric=lines))
    options = project.options("--grader-harness", project.grader(GRADES), "--pool", "local")
    assert trunchray("skills", "run", *options).code == 0
    with served(project.run().uri, "--show-private") as site:
        (answer,) = site.answers().values()
        named = {"run": site("trials")["trials"][0]["run"], "model": "skill", "attempt": 1}
        whole = site("passage", **named, id=site("trials")["trials"][0]["case"], start=10, remarks="")
    assert [each["name"] for each in answer["remarks"]] == [
        *(f"rubric-{number} passed" for number in range(1, 11)),
        "rubric-11 failed",
    ]
    assert answer["remarks"][0] == passage("check", "rubric-1 passed", "first is good\n\nseen")
    assert whole == "it is short\n\nseen"


def test_runs_of_trigger_queries_say_whether_the_skill_was_loaded(project: SkillProject, trunchray: CommandLine):
    """On the page of each."""
    project.queries((LOADS, True), ("Sum up the taxes.", True))
    assert trunchray("skills", "triggers", *project.options("--runs-per-query", 1, "--pool", "local")).code == 0
    folder = f"{project.run().uri}/queries"
    with served(project.run().uri, "--show-private") as site:
        found = site.answers()
    loaded, not_loaded = found[f"{LOADS} skill 1"], found["Sum up the taxes. skill 1"]
    assert loaded["passages"][0]["text"] == f"status  ok\nfolder  {folder}/q000-r0\nskill   loaded"
    assert loaded["remarks"] == [passage("check", "triggered passed", "the skill was loaded")]
    assert not_loaded["passages"][0]["text"] == f"status  ok\nfolder  {folder}/q001-r0\nskill   not loaded"
    assert not_loaded["remarks"] == [passage("check", "triggered failed", "the skill was not loaded")]


def passage(role: str, name: str, text: str) -> dict[str, Any]:
    return {"role": role, "name": name, "text": text, "length": len(text)}
