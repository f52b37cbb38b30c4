"""What happens to a shard, wherever the worker runs: in this process or in a Ray actor.

parts already stored ─▶ what is missing ─▶ trials, many in flight ─▶ shelf ─▶ parts ─▶ receipt
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic_core import to_json

from trunchray.adapters import parts
from trunchray.adapters.models.base import ToolDefinition
from trunchray.adapters.models.cache import ReplyCache
from trunchray.adapters.models.connect import build_client
from trunchray.adapters.releases import CaseTable, StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.adapters.sandbox.launcher import Requirement, require, sandbox_level
from trunchray.adapters.sandbox.tools import ToolModule
from trunchray.adapters.store import Store
from trunchray.agents.base import Agent, build_agent
from trunchray.agents.toolbox import Tool, Toolbox
from trunchray.core.agent import AgentSpec
from trunchray.core.budget import nanodollars
from trunchray.core.digest import sha256
from trunchray.core.plan import Plan, Shard, keys_digest, make_plan
from trunchray.core.receipt import Counts, Mark, Marks, PartRef, Receipt
from trunchray.core.trial import Result, Trial
from trunchray.engine.shelf import Shelf
from trunchray.engine.trial import TrialRunner
from trunchray.errors import StoreError, UsageError
from trunchray.evaluators.grade import Grader

YOUNG_OBJECTS = 100_000
"""How many new objects set off Python's search for garbage while a worker is open, in place of 700.

With hundreds of trials in flight most young objects are still in use, and looking through them again and again takes a
quarter of all processor time. What waits longer to be freed is some 10 MB.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Which worker this is: the `index`-th (from 0) of `count`, with `slots` processors for evaluators."""

    name: str
    index: int = 0
    count: int = 1
    slots: int = 1
    require: Requirement = "none"
    """The walls without which it runs no author code."""
    cache: str | None = None
    """The store of answers that need not be asked for again."""

    def share(self, permits: int) -> int:
        """The part of `permits`, which all workers have together, that falls to this one; at least 1."""
        return max(1, permits // self.count + (self.index < permits % self.count))


@dataclass(slots=True)
class _InWork:
    """A shard that is being run: the rows it has so far, and the trials that are under way."""

    rows: Marks
    in_flight: int = 0


class Worker:
    """Runs shards of one run. Everything it needs is read from the store and the environment; rows go to the store."""

    def __init__(self, folder: RunFolder, release: StoredRelease, place: Place) -> None:
        require(place.require)
        spec = folder.spec()
        if spec is None:
            raise UsageError(f"{folder.uri} holds no run.json; start the run with `trunchray run`")
        self._folder, self._place = folder, place
        self._cases: CaseTable = release.cases()
        self._plan: Plan = make_plan(spec, self._cases.index)
        self._shards = {shard.id: shard for shard in self._plan.shards}
        self._sandbox = EvaluatorSandbox(slots=place.slots)
        self._grader = Grader(_modules(release), self._sandbox)
        self._toolbox = Toolbox(_tools(release))
        self._cache = ReplyCache(Store(place.cache)) if place.cache else None
        self._agents: dict[str, Agent] = {}
        self._runners: dict[str, TrialRunner] = {}
        self._permits: dict[str, asyncio.Semaphore] = {}
        versions = {name: version(name) for name in ("trunchray", "deno")}
        self._versions = to_json(versions | {"sandbox": sandbox_level()}).decode()
        self._in_work: dict[str, _InWork] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._collector = gc.get_threshold()
        if 0 < self._collector[0] < YOUNG_OBJECTS:
            gc.set_threshold(YOUNG_OBJECTS, *self._collector[1:])

    @classmethod
    async def open(cls, run_uri: str, release_uri: str, place: Place) -> Worker:
        """Read the run and its release."""
        return await asyncio.to_thread(lambda: cls(RunFolder(run_uri), open_release(release_uri), place))

    async def work(self, shard_id: str, attempt: int) -> Receipt:
        """Run what no stored part of the shard holds yet, and say which parts hold it all.

        Errors that asking again could mend are asked again; the new row counts, because its part is listed later.

        Raises:
            StoreError: rows could not be stored; those that were are found by the next attempt.
        """
        shard = self._shards[shard_id]
        kept, rows, damaged = await asyncio.to_thread(self._stored, shard)
        work = self._in_work[shard_id] = _InWork(rows)
        try:
            runner, permits = self._runner(shard.agent), self._permits[shard.agent.name]
            async with Shelf(self._folder, shard_id) as shelf:
                stored = rows.newest
                owed = [trial for trial in shard.trials() if trial.key not in stored or stored[trial.key].retryable]
                await self._all(self._one(trial, runner, permits, shelf, work) for trial in owed)
        finally:
            self._in_work.pop(shard_id, None)
        return Receipt(
            shard=shard_id,
            attempt=attempt,
            parts=(*kept, *shelf.parts),
            keys_digest=keys_digest(rows.newest),
            counts=Counts.of(rows.newest.values()),
            replaced=rows.replaced,
            missing=len(shard.case_ids) - len(rows.newest),
            damaged=tuple(damaged),
            warnings=self._cache.warnings if self._cache else (),
        )

    def progress(self) -> dict[str, tuple[Counts, int]]:
        """For each shard in work the rows it has so far, and how many of its trials are in flight."""
        # Copied first: the driver may ask from another thread.
        return {
            shard: (Counts.of(tuple(work.rows.newest.values())), work.in_flight)
            for shard, work in tuple(self._in_work.items())
        }

    async def stop(self, grace: float) -> None:
        """Begin no further trial; cancel those that are still in flight after `grace` seconds."""
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Give back connections and sandboxes; the worker is not used afterwards."""
        gc.set_threshold(*self._collector)
        for agent in self._agents.values():
            await agent.close()
        if self._cache:
            self._cache.close()
        await self._sandbox.close()

    async def _one(
        self, trial: Trial, runner: TrialRunner, permits: asyncio.Semaphore, shelf: Shelf, work: _InWork
    ) -> None:
        queued_from = runner.clock()
        async with permits:
            if self._stopping:
                return
            work.in_flight += 1
            try:
                case = self._cases[trial.case_id]
                generation = await runner.generate(trial, case, queued=runner.clock() - queued_from)
            finally:
                work.in_flight -= 1
        # Graded without a permit: a slow evaluator must not keep the model waiting.
        result = await runner.grade(generation)
        digest = self._plan.spec.release_digest
        await shelf.add(parts.row(result, release_digest=digest, versions=self._versions))
        work.rows.put(trial.key, _mark(result))

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

    def _runner(self, spec: AgentSpec) -> TrialRunner:
        if spec.name not in self._runners:
            replay = self._folder.input(spec.mock.replay) if spec.mock and spec.mock.replay else None
            client = build_client(spec, environ=os.environ, replay=replay)
            agent = build_agent(spec, client, self._toolbox, cache=self._cache)
            self._agents[spec.name] = agent
            self._permits[spec.name] = asyncio.Semaphore(self._place.share(spec.pacing.max_in_flight))
            self._runners[spec.name] = TrialRunner(agent, spec.digest, self._grader, self._place.name)
        return self._runners[spec.name]

    def _stored(self, shard: Shard) -> tuple[list[PartRef], Marks, list[str]]:
        """The shard's readable parts, the planned rows they hold, and the paths of unreadable ones."""
        planned = set(shard.trial_keys())
        kept: list[PartRef] = []
        rows = Marks()
        damaged: list[str] = []
        last = self._folder.last_commit(shard.id)
        committed = {part.path: part.sha256 for part in last.parts} if last else {}
        names = self._folder.part_names(shard.id)
        # In the order in which rows replace each other: as committed, then as they came since.
        for path in [
            *(path for path in committed if path in names),
            *(path for path in names if path not in committed),
        ]:
            content = self._folder.store.read(path)
            sha = sha256(content)
            try:
                if committed.get(path, sha) != sha:
                    raise StoreError("not what was committed")
                found = parts.marks(parts.decode(content))
            except StoreError:
                damaged.append(path)
                continue
            kept.append(PartRef(path=path, rows=len(found), sha256=sha))
            for key, mark in found:
                if key in planned:
                    rows.put(key, mark)
        return kept, rows, damaged


def _mark(result: Result) -> Mark:
    trace, failure = result.trace, result.failure
    tokens, cost = (trace.spent_tokens, nanodollars(trace.cost_usd)) if trace else (0, 0)
    return Mark(result.outcome, tokens, bool(failure and failure.retryable), cost)


def _tools(release: StoredRelease) -> Mapping[str, Tool]:
    codes = {sha: release.module(sha) for sha in {entry.module for entry in release.release.tools}}
    return {
        entry.name: Tool(
            ToolDefinition(entry.name, entry.description, entry.input_schema),
            ToolModule(entry.module, codes[entry.module]),
        )
        for entry in release.release.tools
    }


def _modules(release: StoredRelease) -> Mapping[str, SandboxModule]:
    return {
        key: SandboxModule(key=key, code=release.module(sha), export=export)
        for key, (sha, export) in release.evaluators.items()
    }
