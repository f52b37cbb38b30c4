"""A skill with cases and queries for the scripted coding tool, and what its runs leave."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from support.scripted_harness import COMMAND
from trunchray.adapters.store import Store

DESCRIPTION = "Describes purple elephants for children."
LOADS = "Describe an elephant, purple and happy."
"""A query that makes the scripted tool load the skill."""
REPLIES = [
    {"when": "first", "do": [{"write": "out/a.txt", "text": "one"}, {"say": "wrote a.txt"}]},
    {"when": "second", "do": [{"read": "files/in.txt"}, {"say": "read it"}]},
]


class SkillProject:
    """A project folder with the skill `elephants`, a harness file, and a place for runs."""

    def __init__(self, folder: Path, out: str) -> None:
        self.folder, self.out = folder, out
        self.skill, self.harness = folder / "elephants", folder / "harness.json"
        evals = self.skill / "evals"
        (evals / "files").mkdir(parents=True)
        (evals / "files" / "in.txt").write_text("input")
        self.write_skill(self.skill)
        (evals / "scripted.json").write_text(json.dumps({"replies": REPLIES}))
        self.cases(case("first"), case("second", files=["files/in.txt"], state_prefix="So far so good. \n"))
        self.queries((LOADS, True), ("Sum up the taxes.", False))
        self.use({"command": list(COMMAND)})

    def write_skill(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: elephants\ndescription: {DESCRIPTION}\n---\n\nSay what they do.\n"
        )

    def cases(self, *cases: dict[str, Any]) -> None:
        """Write the case file."""
        (self.skill / "evals" / "cases.json").write_text(json.dumps({"cases": cases}))

    def queries(self, *queries: tuple[str, bool]) -> None:
        """Write the trigger file."""
        listed = [{"query": query, "should_trigger": should} for query, should in queries]
        (self.skill / "evals" / "triggers.json").write_text(json.dumps(listed))

    def use(self, harness: dict[str, Any]) -> None:
        """Write the harness file."""
        self.harness.write_text(json.dumps(harness))

    def grader(self, body: str) -> Path:
        """The harness file of a grader that runs this code, in which `rubric` is the list of lines."""
        code = "import json, pathlib\nrubric = json.loads(pathlib.Path('attempt/rubric.json').read_text())\n"
        path = self.folder / "grader.json"
        path.write_text(json.dumps({"command": [sys.executable, "-c", code + body, "{prompt}"]}))
        return path

    def options(self, *more: object, harness: bool = True) -> list[object]:
        """Of a command; runs are kept in `out`."""
        given = ["--skill-path", self.skill, "--output-dir", self.out, "--quiet", "--json"]
        return [*given, *(["--harness", self.harness] if harness else []), *more]

    def runs(self) -> list[str]:
        """The names of the run folders."""
        return sorted(Store(self.out).names())

    def run(self) -> Store:
        """The only run folder there is."""
        (name,) = self.runs()
        return Store(f"{self.out}/{name}")


def case(name: str, *does: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A case that is called so; `does` is what the tool does, in place of what the skill's script says."""
    asked = json.dumps(does) if does else f"Describe the {name} purple elephant."
    return {"id": name, "input": asked, "rubric": [f"{name} is good"], **more}


def files(run: Store) -> set[str]:
    """The documented files of a run folder: all but those of the engine's own run, and of git."""
    return {path for path in run.find() if not path.startswith(".trunchray/")}


def complete(run: Store) -> dict[str, dict[str, str]]:
    """By the path of each attempt that is complete, the hash of each of its files, but not of its grades.

    A process that is killed just then leaves behind what it needed on the way, whose names begin with a point.
    """
    paths = run.find()
    folders = [path.removesuffix("/timing.json") for path in paths if path.endswith("/timing.json")]
    return {
        folder: {
            path: hashlib.sha256(run.read(path)).hexdigest()
            for path in paths
            if path.startswith(f"{folder}/") and not path.startswith((f"{folder}/grading", f"{folder}/."))
        }
        for folder in folders
    }


GRADES = """
grades = [{"text": line, "passed": line.startswith("first"), "evidence": "seen"} for line in rubric]
pathlib.Path("grading.json").write_text(json.dumps({"expectations": grades}))
"""
"""The code of a grader that lets the lines of the case `first` pass, and no other."""
