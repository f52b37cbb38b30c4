"""An evaluation as a run of the engine: which one it is, what it runs, and what came of it."""

from __future__ import annotations

import re
import sys
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import get_args

from pydantic import JsonValue

from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.signals import ending_signals, stopping_at
from trunchray.adapters.store import Store
from trunchray.core.agent import Pacing, PythonAgent
from trunchray.core.digest import digest
from trunchray.core.evaluation import EvaluationReport, conclude
from trunchray.core.release import slug
from trunchray.core.run import SHARD_SIZE, RunSpec
from trunchray.engine.launch import Launch, launch
from trunchray.engine.program import Program
from trunchray.engine.rows import open_rows
from trunchray.engine.seating import PoolName
from trunchray.engine.status import read_status
from trunchray.errors import Interrupted, UsageError
from trunchray.frontends.evaluation.code import modules_of, named, program_digest
from trunchray.frontends.evaluation.compiled import compile_cases
from trunchray.frontends.evaluation.outcomes import read_outcomes
from trunchray.frontends.evaluation.spec import Spec
from trunchray.frontends.evaluation.watching import Watching

EXPERIMENT = "experiment.json"
"""What was found, in the run's folder: written last, so that a call that has not come to its end is continued."""

SHARDS = 16
"""Parts that cases are given out in, where there are enough of them: so many Ray workers have something to do."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call. `code` is what the caller wrote: the task and the checks."""

    spec: Spec
    code: Sequence[object]
    pool: PoolName
    address: str | None
    out: str
    quiet: bool
    """Whether nothing but warnings is said while it runs."""

    def run(self, loop: AbstractEventLoop | None, stop: Event) -> EvaluationReport:
        """Run what earlier calls of the same question have left, and judge all of it.

        Raises:
            UsageError: there is no such pool, or it cannot run this code.
            Interrupted: not all cases could be run; the same call continues.
        """
        if self.pool not in get_args(PoolName):
            raise UsageError(f"pool: there is no {self.pool!r}; choose one of {', '.join(get_args(PoolName))}")
        spec, root = self.spec, Store(self.out)
        checks = {name: scorer.digest for name, scorer in spec.scorers.items()}
        release = compile_cases(spec.name, spec.source, spec.cases, checks, root.child(".releases"))
        run = self._run(release, root)
        with Watching(sys.stderr, quiet=self.quiet) as watching:
            how = Launch(
                root.uri,
                watching,
                pool=self.pool,
                address=self.address,
                command=f"evaluate(name={spec.name!r}, …)",
                program=Program(spec.task, spec.scorers, spec.judge, spec.timeout, modules_of(self.code)),
                loop=loop,
                stop=stop,
            )
            say = partial(watching.note, "stopping: storing what is finished …")
            try:
                with stopping_at(ending_signals(), stop, say):
                    launch(run, release, {}, how)
            except Interrupted:
                if not stop.is_set():
                    raise  # else what is stored says how far it came
        return self._conclude(f"{root.uri}/{run.run_id}", stopped=stop.is_set())

    def end(self, report: EvaluationReport) -> None:
        """Keep what was found with the run: from now on the same call begins another one.

        Raises:
            StoreError: it cannot be written; the same call continues.
        """
        Store(report.run).write(EXPERIMENT, report.experiment.to_bytes())

    def _conclude(self, run_uri: str, *, stopped: bool) -> EvaluationReport:
        spec = self.spec
        rows = open_rows(run_uri)
        trials, counted = rows.plan.trials, read_status(run_uri).committed.rows
        if counted < trials:
            why = "stopped" if stopped else "incomplete"
            raise Interrupted(
                f"{why}: {counted:,} of {trials:,} runs of {spec.name!r} are stored; the same call continues"
            )
        outcomes = read_outcomes(rows, spec.cases, list(spec.scorers))
        return conclude(
            spec.name,
            spec.about,
            outcomes,
            scorers=list(spec.scorers),
            allow=spec.allow,
            compare=spec.compare,
            run=run_uri,
        )

    def _run(self, release: StoredRelease, root: Store) -> RunSpec:
        spec = self.spec
        task = named(self.code[0])
        agent = PythonAgent(
            kind="python",
            name=task.rpartition(":")[2] or task,
            task=task,
            code=program_digest(self.code),
            timeout=spec.timeout,
            pacing=Pacing(max_in_flight=spec.concurrency),
        )
        judge = spec.judge.identity if spec.judge else None
        question: list[JsonValue] = [release.release.digest, agent.digest, judge, spec.repeats, spec.about]
        return RunSpec(
            run_id=_next_id(root, f"{slug(spec.name)}-{digest(question)[:10]}"),
            title=spec.name,
            release=release.uri,
            release_digest=release.release.digest,
            agents=(agent,),
            attempts=spec.repeats,
            shard_size=max(1, min(SHARD_SIZE, -(-len(spec.cases) // SHARDS))),
        )


def _next_id(root: Store, stem: str) -> str:
    """The run of this question whose call has not come to its end, or else the next one."""
    pattern = re.compile(rf"{re.escape(stem)}-(\d{{3,}})")
    numbers = sorted(int(match[1]) for name in root.names() if (match := pattern.fullmatch(name.rstrip("/"))))
    if not numbers:
        return f"{stem}-001"
    last = f"{stem}-{numbers[-1]:03d}"
    ended = not root.exists(f"{last}/run.json") or root.exists(f"{last}/{EXPERIMENT}")
    return f"{stem}-{numbers[-1] + 1:03d}" if ended else last
