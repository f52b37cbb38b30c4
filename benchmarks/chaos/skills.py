"""Attempts of a skill eval that behave as badly as coding tools can, while the command that runs them is killed.

They sleep, leave processes behind, pipes, sockets and links, print 50 MB, do not end when they are asked to, or fail.
When a share of them is complete the command is killed, and given again at once. Afterwards every attempt has to be
complete and to be what it was bound to become, those that were complete before untouched, and nothing may be left:
no process, no clean room, no lock, no file that is not documented.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import processes
import proof
from nodes import SETTINGS

from support.scripted_harness import COMMAND

CLI = [sys.executable, "-m", "trunchray.cli.main", "skills", "run"]
CONFIGS = ("skill", "bare")
ENDS_WITHIN = 1800.0
"""Seconds that one command may take."""
ATTEMPT = {"case.json", "prompt.txt", "transcript.jsonl", "stderr.txt", "timing.json"}
"""The files of an attempt, beside its workspace."""
_SUPERVISOR = "harness_supervisor.py"


@dataclass(frozen=True)
class Kind:
    """One way to behave, and what has to come of it."""

    steps: list[dict[str, Any]]
    """For the scripted tool."""
    status: str = "ok"
    kept: frozenset[str] = frozenset()
    """What is in its workspace, the skill aside."""
    left_out: frozenset[str] = frozenset()
    """What is not, although the tool made it."""
    most: float | None = None
    """Seconds it may take; None: as the run says."""
    printed: int = 0
    """Bytes that its transcript has at least."""

    @property
    def error(self) -> str:
        """Of its row, which has no verdict in any case: nobody grades."""
        return "evaluator/not_graded" if self.status == "ok" else f"harness/{self.status}"


LATE = [{"sleep": 4}, {"write": "late.txt"}]
DEAF = [{"ignore": "SIGTERM"}, {"sleep": 600}]
KINDS: dict[str, Kind] = {
    "writes": Kind([{"say": "done"}, {"write": "a/b.txt", "text": "x"}], kept=frozenset({"a/b.txt"})),
    "sleeps": Kind([{"sleep": 3}, {"say": "done"}]),
    "forks": Kind([{"fork": LATE}, {"fork": LATE, "detached": True}, {"fork": [{"fork": LATE}, *LATE]}]),
    "leaves specials": Kind(
        [
            {"fifo": "pipe"},
            {"socket": "socket"},
            {"link": "out", "to": "/etc/passwd"},
            {"link": "up", "to": "../.home"},
            {"link": "loop", "to": "loop"},
            {"write": "real.txt", "text": "x"},
            {"link": "inside", "to": "real.txt"},
        ],
        kept=frozenset({"real.txt", "inside"}),
        left_out=frozenset({"pipe", "socket", "out", "up"}),
    ),
    "prints": Kind([{"print": "0123456789" * 100 + "\n", "times": 50_000}], printed=50_000_000),
    "is deaf": Kind([{"say": "never"}, *DEAF], status="timeout", most=3),
    "leaves deaf ones": Kind([{"fork": DEAF, "detached": True}, {"fork": [{"fork": DEAF, "detached": True}, *DEAF]}]),
    "fails": Kind([{"stderr": "it broke\n"}, {"exit": 7}], status="error"),
}


@dataclass
class Ordeal:
    """The runs of one command, and what was seen of them."""

    folder: Path
    options: argparse.Namespace
    problems: list[str] = field(default_factory=list[str])
    busiest: int = 0
    """Harnesses of one command under way at a time, at most."""
    dying: set[int] = field(default_factory=set[int])
    """Those of a command that was killed: they end when they notice."""
    commands: int = 0
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the last command printed."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        """Where clean rooms are, and nothing else."""
        return self.folder / "tmp"

    @property
    def rooms(self) -> list[str]:
        return sorted(path.name for path in self.temporary.glob("trunchray-*/*"))

    def prepare(self) -> None:
        """A skill, its cases, and the harness."""
        skill = self.folder / "skill"
        skill.mkdir()
        (skill / "SKILL.md").write_text("---\nname: skill\ndescription: Nothing.\n---\n\nDo nothing.\n")
        (self.folder / "cases.json").write_text(json.dumps([self._case(n) for n in range(self.options.attempts // 2)]))
        (self.folder / "harness.json").write_text(json.dumps({"command": list(COMMAND)}))
        self.temporary.mkdir()
        self.out.mkdir()

    def _case(self, number: int) -> dict[str, Any]:
        kind = KINDS[kind_of(number)]
        most = {} if kind.most is None else {"timeout": kind.most}
        return {"id": f"case-{number:03d}", "input": json.dumps(kind.steps), **most}

    def run(self, until: int | None = None) -> int:
        """Give the command, and kill it once so many attempts are complete; its exit code."""
        self.commands += 1
        command = [*CLI, "--skill-path", "skill", "--cases", "cases.json", "--harness", "harness.json"]
        command += ["--output-dir", str(self.out), "--mode", "baseline", "--timeout", "120", "--label", "chaos"]
        command += ["--workers", str(self.options.workers), "--pool", self.options.pool, "--quiet", "--json"]
        said, told = (self.folder / f"{self.commands}.{name}" for name in ("out", "err"))
        settings = SETTINGS | {"TMPDIR": str(self.temporary), "RAY_TMPDIR": str(self.folder / "ray")}
        with said.open("wb") as out, told.open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        ends = time.monotonic() + ENDS_WITHIN
        while process.poll() is None:
            self.busiest = max(self.busiest, len(_harnesses() - self.dying))
            if time.monotonic() > ends or (until is not None and len(self.complete()) >= until):
                process.kill()
                process.wait()
                self.dying = _harnesses()
            time.sleep(0.1)
        if time.monotonic() > ends:
            self.problems.append("the command did not end")
        if "Traceback" in (errors := told.read_text(errors="replace")):
            self.problems.append(f"the command said {errors[-2000:]}")
        if process.returncode >= 0 and said.stat().st_size:
            self.answer = json.loads(said.read_text())
        return process.returncode

    def complete(self) -> set[Path]:
        """The folders of attempts that are."""
        return {path.parent for path in self.out.glob("*/*/case-*/timing.json")}

    def fingerprints(self, folders: set[Path]) -> dict[Path, str]:
        """All that there is of these attempts: names, kinds, times of change and content."""
        return {folder: _fingerprint(folder) for folder in sorted(folders)}

    def wrong(self, before: dict[Path, str]) -> Iterator[str]:
        """What is not as it has to be; `before` is of the attempts that were complete when the command was killed."""
        runs = [path.name for path in self.out.iterdir()]
        if len(runs) != 1:
            yield f"there are {len(runs)} run folders: {runs}"
            return
        for folder, was in before.items():
            if _fingerprint(folder) != was:
                yield f"{folder.name}, which was complete, is not what it was"
        yield from self._attempts(self.out / runs[0])
        yield from self._summary()
        yield from self._rows(self.out / runs[0])
        if self.busiest > self.options.workers:
            yield f"{self.busiest} harnesses were under way at a time, and {self.options.workers} may be"

    def left(self) -> Iterator[str]:
        """What is still there although nobody needs it."""
        yield from proof.orphans(set())
        for name in self.rooms:
            yield f"of a clean room {name} is left"
        for lease in self.out.glob("*/.trunchray/lease.json"):
            if not json.loads(lease.read_text())["ended"]:
                yield "the run is still locked"

    def _attempts(self, run: Path) -> Iterator[str]:
        planned = {run / config / f"case-{number:03d}": number for number, config in self._planned()}
        found = {path for config in CONFIGS for path in (run / config).iterdir()}
        if found != set(planned):
            yield f"{len(found)} attempt folders, and {len(planned)} were planned"
        if others := {path.name for path in run.iterdir()} - {
            *CONFIGS,
            ".trunchray",
            "run.json",
            "execution-summary.json",
        }:
            yield f"the run folder has {sorted(others)} as well"
        for folder, number in planned.items():
            if problem := _attempt(folder, KINDS[kind_of(number)]):
                yield f"{folder.parent.name}/{folder.name} ({kind_of(number)}): {problem}"

    def _planned(self) -> list[tuple[int, str]]:
        return [(number, config) for config in CONFIGS for number in range(self.options.attempts // 2)]

    def _summary(self) -> Iterator[str]:
        results = [(result["config"], result["case_id"], result["status"]) for result in self.answer["results"]]
        if results != [
            (config, f"case-{number:03d}", KINDS[kind_of(number)].status) for number, config in self._planned()
        ]:
            yield "the summary's results are not those of all attempts in their order"
        if (self.answer["total"], self.answer["skipped"]) != (self.options.attempts, 0):
            yield f"the summary counts {self.answer['total']} attempts"

    def _rows(self, run: Path) -> Iterator[str]:
        command = [sys.executable, "-m", "trunchray.cli.main", "report", str(run), "--json"]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        wanted = Counter((config, KINDS[kind_of(number)].error) for number, config in self._planned())
        found = Counter(
            {(model["name"], error["kind"]): error["count"] for model in told["models"] for error in model["errors"]}
        )
        if found != wanted or told["error"] != told["planned"]:
            yield f"the report counts {dict(found)}, not {dict(wanted)}"


def kind_of(number: int) -> str:
    return [*KINDS][number % len(KINDS)]


def _harnesses() -> set[int]:
    """Harnesses that are under way at one moment: those that are seen in two looks, as a look takes its time."""
    return _seen() & _seen()


def _seen() -> set[int]:
    """The first of the two processes that supervise each harness; the other one is its child, or ours when it ends."""
    found = {pid for pid, name in processes.below() if _SUPERVISOR in name}
    return {pid for pid in found if processes.parent(pid) not in {*found, os.getpid()}}


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        digest.update(f"{path.relative_to(folder)} {found.st_mode} {found.st_mtime_ns} {found.st_ino}".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _attempt(folder: Path, kind: Kind) -> str | None:
    """What is wrong with one attempt."""
    if not (folder / "timing.json").exists():
        return "has no timing.json"
    timing = json.loads((folder / "timing.json").read_text())
    if timing["status"] != kind.status:
        return f"its status is {timing['status']}: {timing.get('reason')}"
    names = {path.name for path in folder.iterdir()}
    if names != ATTEMPT | {"cwd"}:
        return f"it has {sorted(names ^ (ATTEMPT | {'cwd'}))} more or less than is documented"
    kept = {str(path.relative_to(folder / "cwd")) for path in (folder / "cwd").rglob("*") if not path.is_dir()}
    if {path for path in kept if not path.startswith(".agents/")} - {"loop"} != set(kind.kept):
        return f"its workspace has {sorted(kept)}"
    if missing := kind.left_out - {re.sub(": .*", "", said) for said in timing["left_out"]}:
        return f"it does not say that {sorted(missing)} are not kept"
    if (folder / "transcript.jsonl").stat().st_size < kind.printed and not timing["truncated"]:
        return f"of its {kind.printed:,} bytes {(folder / 'transcript.jsonl').stat().st_size:,} are there"
    return None


def main() -> int:
    options = _options()
    processes.adopt_orphans()
    try:
        with tempfile.TemporaryDirectory(prefix="tk-") as folder:
            ordeal = Ordeal(Path(options.keep or folder), options)
            return _run(ordeal)
    finally:
        processes.kill([pid for pid, _ in processes.below()])  # whatever went wrong: all of them are ours


def _run(ordeal: Ordeal) -> int:
    options, began = ordeal.options, time.monotonic()
    ordeal.folder.mkdir(parents=True, exist_ok=True)
    ordeal.prepare()
    planned = Counter(kind_of(number) for number in range(options.attempts // 2))
    print(f"{options.attempts} attempts: {', '.join(f'{2 * count} {name}' for name, count in planned.items())}")
    code = ordeal.run(until=round(options.killed_at * options.attempts))
    if code >= 0:
        ordeal.problems.append(f"the command ended with {code} before it was killed")
    before = ordeal.fingerprints(ordeal.complete())
    print(f"killed with {len(before)} attempts complete; the same command goes on at once", flush=True)
    code = ordeal.run()
    if code != 1:
        ordeal.problems.append(f"the command ended with {code}, not with 1")
    ordeal.problems += (left := list(ordeal.left()))
    print(f"checked: {left or 'no process, clean room or lock'} is left", flush=True)
    if ordeal.answer:
        ordeal.problems += ordeal.wrong(before)
        print(f"checked: {len(ordeal.complete())} attempts are complete, each is what it had to become; "
              f"{len(before)} were not touched again; summary and report agree", flush=True)  # fmt: skip
    for problem in ordeal.problems:
        print(f"  WRONG: {problem}")
    statuses = Counter(result["status"] for result in ordeal.answer.get("results", []))
    print(
        f"{'FAILED' if ordeal.problems else 'all as it has to be'}: {options.attempts} attempts on {options.pool}, at "
        f"most {ordeal.busiest} at a time, {ordeal.commands} commands, {time.monotonic() - began:.0f} s; "
        f"{dict(statuses)}",
        flush=True,
    )
    return 1 if ordeal.problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=200, help="an even number: half of them without the skill")
    parser.add_argument("--workers", type=int, default=16, help="attempts under way at a time")
    parser.add_argument("--pool", choices=("ray", "local"), default="ray")
    parser.add_argument("--killed-at", type=float, default=0.4, help="share of the attempts at which it is killed")
    parser.add_argument("--keep", help="a folder that is not there yet, for all that is written; it stays")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
