"""A skill eval as a run of the engine: where it is kept, what workers need, and what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Literal

from pydantic import JsonValue

from trunchray.adapters.clean_room import check_rooms
from trunchray.adapters.location import is_uri
from trunchray.adapters.store import Store
from trunchray.core.agent import HarnessAgent, Pacing, Quota, SkillTree, TriggerSkill
from trunchray.core.case import Case
from trunchray.core.digest import canonical, digest, sha256
from trunchray.core.excerpt import excerpt
from trunchray.core.grader_spec import GraderSpec
from trunchray.core.harness import Harness
from trunchray.core.release import slug
from trunchray.core.run import SHARD_SIZE, RunSpec
from trunchray.core.staging import ENGINE, StagedCase, Staging
from trunchray.core.timestamp import timestamp
from trunchray.engine.launch import Launch, check_grader, launch
from trunchray.engine.run import Observer
from trunchray.errors import Interrupted, UsageError
from trunchray.frontends.case_release import store_cases
from trunchray.frontends.skill.harness_file import FoundHarness
from trunchray.frontends.skill.run_folder import QUESTION, begin, unfinished

SEMANTICS = {"completed": "completed/2", "rubric": "rubric/1", "triggered": "triggered/1"}
"""The rules by which the checks of such a release are read."""
SHARDS = 64
"""Parts that cases are given out in, where there are enough of them: an attempt may take minutes."""
TOGETHER = "harness"
"""The name of what bounds the runs of all configs."""


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """A coding tool with a skill, or without one, before there is a run for it."""

    name: str
    harness: Harness | None
    timeout: float
    """Seconds that one attempt may take."""
    workers: int
    """Attempts under way at a time, of all configs together."""
    skill: SkillTree | None = None
    trigger: TriggerSkill | None = None

    def agent(self, staging: str) -> HarnessAgent:
        """It in a run, whose `Staging` has that SHA-256."""
        return HarnessAgent(
            name=self.name,
            harness=self.harness,
            skill=self.skill,
            trigger=self.trigger,
            timeout=self.timeout,
            staging=staging,
            pacing=Pacing(max_in_flight=self.workers),
            quota=Quota(name=TOGETHER, max_in_flight=self.workers),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What a run asks."""

    label: str
    """What its folder is called after the date."""
    title: str
    source: str
    """Where its cases are written."""
    cases: Sequence[Case]
    staged: Mapping[str, StagedCase]
    """By the ids of the cases."""
    layout: Literal["cases", "queries"]
    configs: Sequence[HarnessConfig]
    attempts: int
    grading: GraderSpec | None
    inputs: Mapping[str, bytes]
    """What workers need besides, by SHA-256."""
    ending: str
    """The file that is written last."""
    threshold: float | None = None
    """Of the rates of trigger queries; None where there are none."""

    @property
    def digest(self) -> str:
        """64 hex digits: two commands with the same one are one run."""
        staged: dict[str, JsonValue] = {name: case.model_dump(mode="json") for name, case in self.staged.items()}
        agents: list[JsonValue] = [config.agent(digest(staged)).digest for config in self.configs]
        cases: list[JsonValue] = [case.model_dump(mode="json") for case in self.cases]
        grading = self.grading.asked if self.grading else None
        return digest([self.label, cases, staged, agents, self.attempts, grading, self.threshold])


@dataclass(frozen=True, slots=True)
class How:
    """How a run is carried out, as opposed to what it asks. `now` is local time."""

    out: Store
    """The folder of run folders."""
    observer: Observer
    now: Callable[[], datetime]
    pool: Literal["auto", "local", "ray"] = "auto"
    address: str | None = None
    takeover: bool = False
    """Go on with an interrupted run even when another process seems to be at work on it."""
    command: str = ""
    """How to give the command again."""
    stop: Event = field(default_factory=Event)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run all of whose attempts have ended."""

    folder: Store
    staging: Staging

    @property
    def run_id(self) -> str:
        return self.folder.uri.rpartition("/")[2]

    @property
    def engine(self) -> str:
        """The URI of the engine's run."""
        return f"{self.folder.uri}/{ENGINE}"


def check_outside(out: Store, skills: Sequence[Path]) -> None:
    """Make sure that runs are not kept in a skill: they would be copied with it, and it would never be the same again.

    Raises:
        UsageError: they would be.
    """
    place = None if is_uri(out.uri) else Path(out.uri).resolve()
    for skill in skills:
        if place and place.is_relative_to(skill.resolve()):
            raise UsageError(
                f"runs would be kept in {out.uri!r}, which is in the skill {str(skill)!r}, and each would be copied "
                "with it into later ones; give --output-dir with a folder outside of it"
            )


def told_of(found: FoundHarness) -> dict[str, JsonValue]:
    """What `run.json` says of the tool, and of us."""
    command: list[JsonValue] | None = [*found.harness.command] if found.harness else None
    return {"harness": found.source, "command": command, "trunchray": version("trunchray")}


def announce(observer: Observer, file: Path | None, found: FoundHarness | None) -> None:
    """Say what nobody has named, before it is used: the file of cases, and the tool; None for what was named."""
    if file:
        observer.note(f"taking {file}")
    if found and found.harness:
        observer.note(f"{found.source} runs {excerpt(shlex.join(found.harness.command), 400)}")


def carry_out(question: Question, how: How, about: Mapping[str, JsonValue]) -> Ran:
    """Run what is missing: of the latest run that asks the same and was interrupted, or else of a new one.

    `about` is what `run.json` holds besides what is known here.

    Raises:
        UsageError: it cannot be carried out as asked.
        StoreError: the store refused or lost something; finished attempts are kept.
        Interrupted: not all attempts have ended; the same command continues.
    """
    if question.grading and how.address is None:
        check_grader(question.grading)
    if how.address is None and any(config.harness for config in question.configs):
        check_rooms()
    folder = unfinished(how.out, question.label, question.digest, question.ending)
    if folder:
        how.observer.note(f"going on with {folder.uri}")
    else:
        now = how.now()
        known: dict[str, JsonValue] = {QUESTION: question.digest, "started_at": timestamp(now)}
        folder = begin(how.out, question.label, now, lambda name: {"run_id": name, **about, **known})
    staging = Staging(root=folder.uri, layout=question.layout, runs=question.attempts, cases=dict(question.staged))
    _launch(question, how, Ran(folder, staging))
    return Ran(folder, staging)


def _launch(question: Question, how: How, ran: Ran) -> None:
    staged = canonical(ran.staging.model_dump(mode="json"))
    engine = Store(ran.engine)
    release = store_cases(
        question.title, question.source, question.cases, engine.child(".releases"), semantics=SEMANTICS
    )
    agents = tuple(config.agent(sha256(staged)) for config in question.configs)
    spec = RunSpec(
        run_id=slug(ran.run_id),
        title=question.title,
        release=release.uri,
        release_digest=release.release.digest,
        agents=agents,
        attempts=question.attempts,
        shard_size=max(1, min(SHARD_SIZE, len(question.cases) // SHARDS)),
        grading=question.grading,
    )
    inputs = {**question.inputs, sha256(staged): staged}
    drive = Launch(
        ran.folder.uri,
        how.observer,
        pool=how.pool,
        address=how.address,
        takeover=how.takeover,
        command=how.command,
        at=ran.engine,
        stop=how.stop,
    )
    report = launch(spec, release, inputs, drive)
    if report.not_run:
        raise Interrupted(
            f"{report.not_run:,} of {report.planned:,} attempts are still to be run or graded; the same command goes "
            f"on in {ran.folder.uri}"
        )
