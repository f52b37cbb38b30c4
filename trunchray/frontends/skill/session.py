"""A skill eval as a run of the engine: where it is kept, what workers need, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Literal

from pydantic import JsonValue

from trunchray.adapters.models.reachable import check_reachable
from trunchray.adapters.store import Store
from trunchray.core.agent import HarnessAgent
from trunchray.core.case import Case
from trunchray.core.digest import canonical, digest, sha256
from trunchray.core.grader_spec import GraderSpec, ModelGrader
from trunchray.core.release import slug
from trunchray.core.run import SHARD_SIZE, RunSpec
from trunchray.core.staging import StagedCase, Staging
from trunchray.engine.launch import Launch, launch
from trunchray.engine.run import Observer
from trunchray.errors import Interrupted
from trunchray.evaluators.attempts.build import build_grader
from trunchray.frontends.case_release import store_cases
from trunchray.frontends.skill.run_folder import ENGINE, QUESTION, begin, unfinished

SEMANTICS = {"completed": "completed/1", "rubric": "rubric/1", "triggered": "triggered/1"}
"""The rules by which the checks of such a release are read."""
SHARDS = 64
"""Parts that cases are given out in, where there are enough of them: an attempt may take minutes."""


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
    agents: Sequence[HarnessAgent]
    """Their `staging` is not known yet."""
    attempts: int
    grading: GraderSpec | None
    inputs: Mapping[str, bytes]
    """What workers need besides, by SHA-256."""
    ending: str
    """The file that is written last."""

    @property
    def digest(self) -> str:
        """64 hex digits: two commands with the same one are one run."""
        agents: list[JsonValue] = [agent.digest for agent in self.agents]
        staged: dict[str, JsonValue] = {name: case.model_dump(mode="json") for name, case in self.staged.items()}
        cases: list[JsonValue] = [case.model_dump(mode="json") for case in self.cases]
        grading = self.grading.asked if self.grading else None
        return digest([self.label, cases, staged, agents, self.attempts, grading])


@dataclass(frozen=True, slots=True)
class How:
    """How a run is carried out, as opposed to what it asks. `now` is local time."""

    out: Store
    """The folder of run folders."""
    observer: Observer
    now: datetime
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


def carry_out(question: Question, how: How, about: Mapping[str, JsonValue]) -> Ran:
    """Run what is missing: of the latest run that asks the same and was interrupted, or else of a new one.

    `about` is what `run.json` holds besides what is known here.

    Raises:
        UsageError: it cannot be carried out as asked.
        StoreError: the store refused or lost something; finished attempts are kept.
        Interrupted: not all attempts have ended; the same command continues.
    """
    if question.grading and how.address is None:
        _check_grader(question.grading)
    folder = unfinished(how.out, question.label, question.digest, question.ending)
    if folder:
        how.observer.note(f"going on with {folder.uri}")
    else:
        started = how.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known: dict[str, JsonValue] = {QUESTION: question.digest, "started_at": started}
        folder = begin(how.out, question.label, how.now, lambda name: {"run_id": name, **about, **known})
    staging = Staging(root=folder.uri, layout=question.layout, runs=question.attempts, cases=dict(question.staged))
    _launch(question, how, Ran(folder, staging))
    return Ran(folder, staging)


def _check_grader(spec: GraderSpec) -> None:
    """Find out before there is a run that a key or a command is missing, or that nobody listens."""
    build_grader(spec).check()
    if isinstance(spec, ModelGrader):
        check_reachable(spec.model)


def _launch(question: Question, how: How, ran: Ran) -> None:
    staged = canonical(ran.staging.model_dump(mode="json"))
    engine = Store(ran.engine)
    release = store_cases(
        question.title, question.source, question.cases, engine.child(".releases"), semantics=SEMANTICS
    )
    agents = tuple(agent.model_copy(update={"staging": sha256(staged)}) for agent in question.agents)
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
            f"{report.not_run:,} of {report.planned:,} attempts are still owed; the same command goes on in "
            f"{ran.folder.uri}"
        )
