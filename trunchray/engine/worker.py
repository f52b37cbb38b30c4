"""What happens to a shard, wherever the worker runs: in this process or in a Ray actor.

parts already stored ─▶ what is missing ─▶ trials, many in flight ─▶ shelf ─▶ parts ─▶ receipt
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from pydantic_core import to_json

from trunchray.adapters import parts
from trunchray.adapters.calling import hanging
from trunchray.adapters.models.connect import load_clients
from trunchray.adapters.releases import CaseTable, StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.launcher import Requirement, require, sandbox_level
from trunchray.adapters.telemetry.connect import connect
from trunchray.agents.base import Agent
from trunchray.agents.unasked import Unasked
from trunchray.core.agent import AgentSpec, ModelAgent
from trunchray.core.budget import nanodollars
from trunchray.core.digest import sha256
from trunchray.core.plan import Plan, Shard, keys_digest, make_plan
from trunchray.core.receipt import Counts, InHand, Mark, Marks, PartRef, Receipt, owes
from trunchray.core.run import Aim
from trunchray.core.telemetry import Fact, Observe, Span
from trunchray.core.trial import Asked, Result, Trial
from trunchray.engine.admission import Admissions, AgentAdmission, Exchange
from trunchray.engine.answers import StoredAnswers
from trunchray.engine.cast import Cast
from trunchray.engine.program import Program, unpacked
from trunchray.engine.semaphore import ResizableSemaphore
from trunchray.engine.shelf import FLUSH_SECONDS, SOON, Shelf
from trunchray.engine.trial import Generation, TrialRunner
from trunchray.errors import Interrupted, StoreError, UsageError

YOUNG_OBJECTS = 100_000
"""How many new objects set off Python's search for garbage while a worker is open, in place of 700.

With hundreds of trials in flight most young objects are still in use, and looking through them again and again takes a
quarter of all processor time. What waits longer to be freed is some 10 MB.
"""

MOST_HANGING = 32
"""Threads with calls that ran out of time and go on, beside which a worker begins no further trial."""
LOOK_AGAIN = 0.2
"""Seconds between two looks at whether there are fewer."""
HUNG = (
    f"{MOST_HANGING} calls that ran out of time go on in threads of this process, where nothing can end them, so no "
    "further run is begun; what is finished is stored, and the same call continues in a new process. Give such calls a "
    "time limit of their own, have them look at `signal.aborted`, or use pool='ray', whose workers are ended"
)


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How all workers of a command work, which changes nothing of what is asked."""

    require: Requirement = "none"
    """The walls without which it runs no author code."""
    cache: str | None = None
    """The store of answers that need not be asked for again."""
    observe: Observe = field(default_factory=Observe)
    """What it tells of its work, and to whom."""
    aim: Aim = "run"
    """Which trials it does."""
    program: Program | bytes | None = None
    """The code of a Python evaluation, pickled where workers are in other processes; None where models are asked."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which worker this is: the `index`-th (from 0) of `count`, with `slots` evaluators at a time."""

    name: str
    config: WorkerConfig = field(default_factory=WorkerConfig)
    index: int = 0
    count: int = 1
    slots: int = 1
    on_ray: bool = False
    """Its process is part of a Ray cluster, whose agents export metrics."""

    def part_of(self, permits: int) -> int:
        """The part of `permits`, which all workers have together, that falls to this one; at least 1."""
        return max(1, permits // self.count + (self.index < permits % self.count))


@dataclass(slots=True)
class _InWork:
    """A shard that is being run: the rows it has so far, and the trials that are under way."""

    rows: Marks
    answers: dict[str, Asked]
    """By trial key, those that are stored and only graded now."""
    in_flight: int = 0
    again: int = 0
    """Rows that are asked for once more."""
    undone: int = 0
    """Trials that are to be done."""


@dataclass(slots=True)
class _Stored:
    """What there is of a shard."""

    kept: list[PartRef] = field(default_factory=list[PartRef])
    """Its readable parts."""
    rows: Marks = field(default_factory=Marks)
    """The planned rows they hold."""
    answers: dict[str, Asked] = field(default_factory=dict[str, Asked])
    """By trial key, those of rows that only have to be graded again, and those that another run has."""
    owed: list[Trial] = field(default_factory=list[Trial])
    """What is to be done."""
    damaged: list[str] = field(default_factory=list[str])
    """The paths of unreadable parts."""
    warnings: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class _Desk:
    """What all trials of one agent share. `places` bounds how many are in memory at a time.

    A model's trials need a place only to be asked, so that no slow evaluator keeps the model waiting. Other trials,
    whose checks are part of what is under way, have it for the `whole` of it.
    """

    agent: Agent
    runner: TrialRunner
    admission: AgentAdmission
    permits: int
    places: ResizableSemaphore
    whole: bool = False

    def turn(self) -> AbstractAsyncContextManager[None]:
        return self.places if self.whole else nullcontext()

    def asking(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self.whole else self.places


class Worker:
    """Runs shards of one run. Everything it needs is read from the store and the environment; rows go to the store."""

    def __init__(self, folder: RunFolder, release: StoredRelease, place: Place, exchange: Exchange) -> None:
        require(place.config.require)
        spec = folder.spec()
        if spec is None:
            raise UsageError(
                f"{folder.uri} holds no run.json there; keep runs where every node sees them: give an address such as "
                "s3://… as `out`, or a folder that all nodes mount at the same path"
            )
        self._source = StoredAnswers(spec.regrades.run) if spec.regrades else None
        self._asks = self._source is None and place.config.aim != "regrade"
        if self._asks:
            load_clients(spec.agents)
        self._folder, self._place = folder, place
        self._begun = folder.begun()
        self._cases: CaseTable = release.cases()
        self._plan: Plan = make_plan(spec, self._cases.index)
        self._shards = {shard.id: shard for shard in self._plan.shards}
        self._telemetry = connect(place.config.observe, run=spec.run_id, worker=place.name, on_ray=place.on_ray)
        self._cast = Cast(
            folder,
            release,
            spec,
            program=unpacked(place.config.program),
            cache=place.config.cache,
            telemetry=self._telemetry,
            watched=place.config.observe.anything,
            slots=place.slots,
        )
        self._desks: dict[str, _Desk] = {}
        self._admissions = Admissions(exchange)
        versions = {name: version(name) for name in ("trunchray", "deno")}
        self._versions = to_json(versions | {"sandbox": sandbox_level()}).decode()
        self._in_work: dict[str, _InWork] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._collector = gc.get_threshold()
        if 0 < self._collector[0] < YOUNG_OBJECTS:
            gc.set_threshold(YOUNG_OBJECTS, *self._collector[1:])

    @classmethod
    async def open(cls, run_uri: str, release_uri: str, place: Place, exchange: Exchange) -> Worker:
        """Read the run and its release; `exchange` is how it asks what it may do."""
        return await asyncio.to_thread(lambda: cls(RunFolder(run_uri), open_release(release_uri), place, exchange))

    async def work(self, shard_id: str, attempt: int) -> Receipt:
        """Run what no stored part of the shard holds yet, and say which parts hold it all.

        Which trials those are, the worker's aim says. Errors that asking again could mend are asked again; the new row
        counts, because its part is listed later. An answer that is stored and has no verdict is graded, not asked for.

        Raises:
            StoreError: rows could not be stored; those that were are found by the next attempt.
        """
        shard = self._shards[shard_id]
        told: dict[str, Fact] = {"shard": shard_id, "model": shard.agent.name, "attempt": shard.attempt}
        with self._telemetry.span("shard", **told, dispatch=attempt) as span:
            return await self._work(shard, attempt, span)

    async def _work(self, shard: Shard, attempt: int, span: Span) -> Receipt:
        shard_id = shard.id
        stored = await asyncio.to_thread(self._look_up, shard, attempt)
        owed, rows = stored.owed, stored.rows
        work = self._in_work[shard_id] = _InWork(rows, stored.answers, undone=len(owed))
        try:
            desk = self._desk(shard.agent)
            async with Shelf(self._folder, shard_id, every=FLUSH_SECONDS if attempt == 1 else SOON) as shelf:
                work.again = sum(trial.key in rows.newest for trial in owed)
                await self._all(self._one(trial, desk, shelf, work) for trial in owed)
        finally:
            self._in_work.pop(shard_id, None)
        counts, missing = Counts.of(rows.newest.values()), len(shard.case_ids) - len(rows.newest)
        span.add(rows=counts.rows, errors=counts.error, missing=missing, parts=len(shelf.parts))
        return Receipt(
            shard=shard_id,
            attempt=attempt,
            parts=(*stored.kept, *shelf.parts),
            keys_digest=keys_digest(rows.newest),
            plan_digest=shard.keys_digest(),
            counts=counts,
            replaced=rows.replaced,
            missing=missing,
            undone=work.undone,
            damaged=tuple(stored.damaged),
            warnings=(*stored.warnings, *self._cast.warnings),
        )

    def progress(self) -> dict[str, InHand]:
        """For each shard in work what there is of it."""
        # Copied first: the driver may ask from another thread.
        return {
            shard: InHand(Counts.of(tuple(work.rows.newest.values())), work.in_flight, work.again)
            for shard, work in tuple(self._in_work.items())
        }

    def check(self, agents: Collection[str]) -> None:
        """Find out before the first trial whether these agents can be asked from here, and who grades them.

        Raises:
            UsageError: a key is missing, say.
        """
        for spec in self._plan.spec.agents:
            if spec.name in agents:
                self._cast.check(spec, asks=self._asks)

    def renumber(self, index: int, count: int) -> None:
        """It is now the `index`-th (from 0) of `count` workers."""
        self._place = replace(self._place, index=index, count=count)
        for desk in self._desks.values():
            desk.places.resize(self._place.part_of(desk.permits))

    def closed(self, shard_id: str) -> str | None:
        """Why no further trial of a shard's agent begins; None while they do."""
        return self._admissions.closed(self._shards[shard_id].agent.name)

    async def stop(self, grace: float) -> None:
        """Begin no further trial; cancel those that are still in flight after `grace` seconds."""
        self._stopping = True
        self._admissions.shut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Give back connections and sandboxes; the worker is not used afterwards."""
        gc.set_threshold(*self._collector)
        await self._admissions.close()
        for desk in self._desks.values():
            await desk.agent.close()
        await self._cast.close()
        await asyncio.to_thread(self._telemetry.close)

    async def _one(self, trial: Trial, desk: _Desk, shelf: Shelf, work: _InWork) -> None:
        async with desk.turn():
            result = await self._result(trial, desk, work)
        if result is None:
            return
        digest = self._plan.spec.release_digest
        await shelf.add(parts.row(result, release_digest=digest, versions=self._versions))
        work.again -= trial.key in work.rows.newest
        work.undone -= 1
        work.rows.put(trial.key, _mark(result))

    async def _result(self, trial: Trial, desk: _Desk, work: _InWork) -> Result | None:
        """Ask and grade; None when the trial may not begin."""
        with ExitStack() as told:
            begun = await self._begin(trial, desk, work, told)
            if begun is None:
                return None
            generation, span = begun
            # Graded without a place, and after the trial that takes it has asked: neither a slow evaluator nor our own
            # work keeps the model waiting.
            await asyncio.sleep(0)
            result = await desk.runner.grade(generation)
            _tell(span, result)
            return result

    async def _begin(self, trial: Trial, desk: _Desk, work: _InWork, told: ExitStack) -> tuple[Generation, Span] | None:
        """The stored answer, or else what the agent says when it is the trial's turn; None when it may not begin."""
        runner, errors = desk.runner, work.rows.errors[trial.key]
        if stored := work.answers.pop(trial.key, None):
            if self._stopping:
                return None
            span = told.enter_context(self._telemetry.span("trial", queued=0.0, **_about(trial)))
            return Generation(trial, self._cases[trial.case_id], stored, reused=True, earlier_errors=errors), span
        queued_from = runner.clock()
        async with desk.asking():
            await self._room()
            if self._stopping or (number := await desk.admission.begin()) is None:
                return None
            work.in_flight += 1
            queued = runner.clock() - queued_from
            span = told.enter_context(self._telemetry.span("trial", queued=queued, **_about(trial)))
            try:
                case = self._cases[trial.case_id]
                asked = await runner.generate(trial, case, queued=queued)
            finally:
                work.in_flight -= 1
                desk.admission.end(number)
        return Generation(trial, case, asked, earlier_errors=errors), span

    async def _room(self) -> None:
        """Wait while too many threads hang: on Ray, a worker that holds such threads is replaced.

        Raises:
            Interrupted: they are threads of the program that drives the run, which nobody can end.
        """
        while hanging(0) >= MOST_HANGING and not self._stopping:
            if not self._place.on_ray and hanging() >= MOST_HANGING:
                raise Interrupted(HUNG)
            await asyncio.sleep(LOOK_AGAIN)

    async def _all(self, trials: Iterable[Any]) -> None:
        """Run the trials to their ends, then raise what broke one of them down; a stopped one is just not run."""
        tasks = [asyncio.create_task(trial) for trial in trials]
        self._tasks.update(tasks)
        try:
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome
        finally:
            for task in tasks:
                task.cancel()
            self._tasks.difference_update(tasks)

    def _desk(self, spec: AgentSpec) -> _Desk:
        if spec.name not in self._desks:
            admission = self._admissions.of(spec)
            agent = self._cast.agent(spec, admission) if self._asks else Unasked()
            grader = self._cast.grader(admission)
            self._desks[spec.name] = _Desk(
                agent,
                TrialRunner(agent, spec.digest, grader, self._place.name, telemetry=self._telemetry),
                admission,
                spec.pacing.max_in_flight,
                ResizableSemaphore(self._place.part_of(spec.pacing.max_in_flight)),
                whole=not isinstance(spec, ModelAgent),
            )
        return self._desks[spec.name]

    def _look_up(self, shard: Shard, attempt: int) -> _Stored:
        """What there is of a shard, and what is to be done; of the answers only what is needed for that."""
        stored = self._stored(shard, attempt)
        newest, answers = stored.rows.newest, stored.answers
        owed = [trial for trial in shard.trials() if owes(self._place.config.aim, newest.get(trial.key))]
        if self._source and owed:
            found = self._source.of(shard)
            lost = "missing or damaged, the answers there are not graded"
            stored.warnings += [f"{path}: {lost}" for path in found.damaged]
            for trial in owed:
                asked = found.asked.get(trial.case_id)
                if asked and not (asked.failure and trial.key in newest):  # what is an error there still is no news
                    answers.setdefault(trial.key, asked)
        if not self._asks:
            owed = [trial for trial in owed if trial.key in answers]
        stored.owed = owed
        stored.answers = {trial.key: answers[trial.key] for trial in owed if trial.key in answers}
        return stored

    def _stored(self, shard: Shard, attempt: int) -> _Stored:
        planned, stored = set(shard.trial_keys()), _Stored()
        if attempt == 1 and shard.id not in self._begun:  # asking for every new shard would be a third of all requests
            return stored
        last = self._folder.last_commit(shard.id)
        committed = {part.path: part.sha256 for part in last.parts} if last else {}
        names = self._folder.part_names(shard.id)
        for path in _in_order(list(committed), names):
            try:
                sha, found, answers = self._folder.decoded(path, partial(_part, expected=committed.get(path)))
            except StoreError:
                stored.damaged.append(path)
                continue
            stored.kept.append(PartRef(path=path, rows=len(found), sha256=sha))
            stored.answers |= answers
            for key, mark in found:
                if key in planned:
                    stored.rows.put(key, mark)
        newest = stored.rows.newest
        known = {key: asked for key, asked in stored.answers.items() if key in newest and newest[key].gradable}
        return replace(stored, answers=known)


def _in_order(committed: Sequence[str], stored: Sequence[str]) -> list[str]:
    """The stored parts of a shard in the order in which their rows replace each other: as committed, then as they came.

    A part that came before the last committed one and was not listed is of a worker that had been given up: whatever
    counts already replaces its rows. Names sort as parts came.
    """
    last, listed, there = max(committed, default=""), set(committed), set(stored)
    others = [path for path in stored if path not in listed]
    return [
        *(path for path in others if path < last),
        *(path for path in committed if path in there),
        *(path for path in others if path > last),
    ]


def _part(content: bytes, expected: str | None) -> tuple[str, list[tuple[str, Mark]], dict[str, Asked]]:
    """A part's SHA-256, which has to be the expected one, its rows, and the answers that only grading failed on.

    Raises:
        StoreError: it is damaged.
    """
    sha = sha256(content)
    if expected not in {None, sha}:
        raise StoreError("not what was committed")
    rows = parts.decode(content)
    found = parts.marks(rows)
    gradable = [place for place, (_, mark) in enumerate(found) if mark.gradable]
    return sha, found, dict(parts.answers(rows, gradable)) if gradable else {}


def _about(trial: Trial) -> dict[str, Fact]:
    return {"trial": trial.key, "case": trial.case_id, "model": trial.agent, "attempt": trial.attempt}


def _tell(span: Span, result: Result) -> None:
    trace, failure = result.trace, result.failure
    span.add(outcome=result.outcome, failure=failure.type if failure else None)
    if failure:
        span.add(boundary=failure.boundary)
    if trace and not result.reused:
        span.add(tokens=trace.spent_tokens, cost=trace.cost_usd, retries=trace.retries)


def _mark(result: Result) -> Mark:
    trace, failure = result.trace, result.failure
    tokens, cost = (trace.spent_tokens, nanodollars(trace.cost_usd)) if trace and not result.reused else (0, 0)
    retryable = bool(failure and failure.retryable)
    return Mark(result.outcome, tokens, retryable, cost, result.gradable, result.not_graded)
