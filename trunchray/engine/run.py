"""The main flow. Read this file first.

plan ─▶ ledger ─▶ pool (workers write parts) ─▶ commit ─▶ aggregate ─▶ report
          ▲                    │
          └──── events ────────┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from threading import Event as Flag
from typing import Protocol

from trunchray.adapters.lease import HeldLease
from trunchray.adapters.runs import RunFolder
from trunchray.core.closing import FORESEEN, remedy
from trunchray.core.ledger import (
    Abandon,
    Close,
    Commit,
    Dispatch,
    Ended,
    Finished,
    Instruction,
    Ledger,
    Lost,
    Resize,
    Stop,
)
from trunchray.core.plan import Plan
from trunchray.core.receipt import Counts, InHand, Receipt
from trunchray.core.report import Report
from trunchray.core.run import Aim
from trunchray.core.telemetry import SILENCE, Telemetry
from trunchray.core.trial import BLOCKING
from trunchray.core.wording import way_to_run_again
from trunchray.engine.aggregate import Aggregate, aggregate, publish
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding, Progress, Snapshot, Terms
from trunchray.engine.rates import Rates
from trunchray.engine.stored import counting_commits
from trunchray.errors import Interrupted

TICK = 0.5
"""Seconds between two looks at the clock, the stop flag and the workers' counts."""
PROGRESS_EVERY = 5.0
"""Seconds between two stored snapshots."""
GRACE = 5.0
"""Seconds that trials in flight get when the run is stopped."""
FLUSH = 3.0
"""Seconds that workers get after that to store what they have."""
COUNTED_WHEN_STOPPED = 20_000
"""Rows up to which a stopped run still writes its report: about a second's work."""


class Pool(Protocol):
    """Somewhere to run shards: this process, or a Ray cluster. Nothing of what is run passes through it."""

    @property
    def workers(self) -> int:
        """Those that work now, or will in a moment; more or fewer while machines come and go."""
        ...

    def submit(self, work: Dispatch) -> None:
        """Give a shard to a worker; its end comes as an event."""
        ...

    def next_event(self, timeout: float) -> Ended[Receipt] | None:
        """What happened next; None when nothing did within `timeout` seconds.

        Raises:
            UsageError: no machine can do the work, and nothing was run.
            Interrupted: nobody has worked for a long time, or the limits of the run cannot be kept.
            StoreError: a worker could not store its rows, whatever it tried; going on would be paying for nothing.
        """
        ...

    def progress(self) -> dict[str, InHand]:
        """For each shard in work what its worker has of it; may be some seconds old."""
        ...

    def standing(self) -> dict[str, Standing]:
        """How each agent fares with its limits; may be some seconds old, and empty before anything is known."""
        ...

    def nodes(self) -> tuple[NodeStanding, ...]:
        """The machines that have workers, and how they fare; may be some seconds old."""
        ...

    def stop(self, grace: float) -> None:
        """Begin no further trial, cancel what is in flight after `grace` seconds, store what there is.

        Returns at once; the ends come as events.
        """
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Observer(Protocol):
    """Somebody who looks on."""

    def progress(self, snapshot: Snapshot) -> None:
        """How far the run is; told about twice a second."""
        ...

    def note(self, message: str) -> None:
        """Something takes its time."""
        ...

    def warn(self, message: str) -> None:
        """Something went wrong that the run gets over by itself."""
        ...


class Run:
    """One command's drive of a run: everything owed is run and committed, then everything counted is reported.

    `wanted` names the agents to run; others of the plan are only reported. Setting `stop` ends the run early: what is
    finished is kept, and the same command goes on from there. `stored` counts, by shard, rows that are known to be
    stored without a commit. Of the `closed` agents nothing is run, for the reason given. `terms` are for those who look
    on. `aim` says which trials are done; when it is not all that are owed, `reasons` says by agent why others have no
    row. `clock` counts seconds from anywhere.
    """

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        *,
        lease: HeldLease,
        open_pool: Callable[[], Pool],
        wanted: Collection[str],
        observer: Observer,
        stop: Flag,
        stored: Mapping[str, Counts] | None = None,
        closed: Mapping[str, str] | None = None,
        terms: Terms | None = None,
        telemetry: Telemetry = SILENCE,
        aim: Aim = "run",
        reasons: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._folder, self._lease = plan, folder, lease
        self._open_pool, self._observer = open_pool, observer
        open_ = set(wanted).difference(closed or ())
        self._may_run = {shard.id for shard in plan.shards if shard.agent.name in open_}
        self._stop, self._clock = stop, clock
        self._progress, self._rates, self._terms = Progress(plan, {}), Rates(), terms or Terms()
        self._standing: Mapping[str, Standing] = {}
        self._warned: set[str] = set()
        self._telemetry = telemetry
        self._aim: Aim = aim
        self._reasons = dict(reasons or {})
        self._nodes: Mapping[str, NodeStanding] = {}
        self._closed, self._stored = dict(closed or {}), stored or {}
        self._workers = 0
        self._look_due = self._snapshot_due = float("-inf")

    def __call__(self) -> Report:
        """Run what is not yet counted; the report covers the whole plan.

        Raises:
            Interrupted: the run was stopped, and counting what it has would take longer than a stop may.
        """
        with self._telemetry.span("run", planned=self._plan.trials) as span:
            report = self._report()
            span.add(planned=report.planned, not_run=report.not_run)
            return report

    def _report(self) -> Report:
        commits = counting_commits(self._plan, self._folder)
        again = {shard for shard, receipt in commits.items() if shard in self._may_run and self._is_redone(receipt)}
        self._say_what_is_there(commits, again)
        self._run(commits, again)
        if self._stop.is_set():
            return self._stopped_report()
        result = self._aggregate()
        if result.damaged:
            self._say_damaged(result.damaged)
        if result.damaged and self._aim == "run":
            self._repair(result.damaged)
            result = self._aggregate()
        self._lease.check()
        report = publish(result.report, self._folder)
        self._conclude()
        return report

    def _aggregate(self) -> Aggregate:
        return aggregate(self._plan, self._folder, closed=self._reasons | self._closed, stop=self._stop)

    def _is_redone(self, receipt: Receipt) -> bool:
        """Whether a shard has counted rows that are done again."""
        match self._aim:
            case "run":  # what is missing is run anyhow
                return receipt.counts.retryable > 0 and not receipt.missing
            case "retry":
                return receipt.counts.retryable > 0
            case "regrade":  # which of them its worker sees
                return receipt.counts.error > 0

    def _say_what_is_there(self, commits: Mapping[str, Receipt], again: Collection[str]) -> None:
        found = Progress(self._plan, commits).snapshot({})
        asks = self._aim != "regrade" and self._plan.spec.regrades is None
        errors = sum(commits[shard].counts.retryable for shard in again) if asks else 0
        if found.rows == found.planned and not again:
            self._observer.note(f"complete: all {found.planned:,} trials are counted already")
        elif found.rows:
            asked_again = f"; {errors:,} that ended in an error are asked again" if errors else ""
            self._observer.note(f"{found.rows:,} of {found.planned:,} trials are counted already{asked_again}")

    def _stopped_report(self) -> Report:
        rows, held, planned = self._progress.counted, self._progress.held, self._plan.trials
        if held:
            self._observer.note(f"{held:,} more trials are finished and stored; they count when the run goes on")
        self._lease.check()
        self._conclude()
        if rows > COUNTED_WHEN_STOPPED:
            raise Interrupted(
                f"stopped: {rows:,} of {planned:,} trials are counted; the same command continues, "
                f"and `trunchray report {self._folder.uri}` reports on what there is"
            )
        missing = "cancelled" if self._aim == "run" else None
        result = aggregate(self._plan, self._folder, missing=missing, closed=self._reasons | self._closed)
        return publish(result.report, self._folder)

    def _run(self, committed: Mapping[str, Receipt], again: Collection[str] = ()) -> None:
        """Run the wanted shards that are asked `again`, or, if that is the aim, not whole among the committed ones."""
        whole = {id_ for id_, receipt in committed.items() if not receipt.missing} if self._aim == "run" else None
        owed = [
            (shard.id, shard.agent.name)
            for shard in self._plan.shards
            if (shard.id in again or (whole is not None and shard.id not in whole))
            and shard.id in self._may_run
            and shard.agent.name not in self._closed
        ]
        self._progress = Progress(self._plan, committed, self._stored, [shard for shard, _ in owed], self._terms)
        if owed and not self._stop.is_set():
            self._dispatch(owed)
        elif self._closed:
            self._show(self._at_rest(), store=True)

    def _at_rest(self) -> Snapshot:
        """The run without anybody at work."""
        closed = self._reasons | self._closed
        closed = {name: Standing(permits=0, closed=reason) for name, reason in closed.items()}
        standing = closed | {name: one for name, one in self._standing.items() if one.closed}
        return self._progress.snapshot({}, standing, datetime.now(UTC))

    def _conclude(self) -> None:
        """Tell those who read the folder that nothing more comes of this command."""
        self._folder.write_progress(self._at_rest().model_copy(update={"final": True}).model_dump(mode="json"))

    def _say_damaged(self, damaged: Mapping[str, list[str]]) -> None:
        for shard, paths in damaged.items():
            again = "its trials are run again" if shard in self._may_run else "run the command with its model again"
            if self._aim != "run":
                again = f"its trials are not counted; {way_to_run_again(self._plan.spec)}"
            self._observer.warn(f"shard {shard}: {'; '.join(paths)}: missing or damaged, {again}")

    def _repair(self, damaged: Mapping[str, list[str]]) -> None:
        """Stored rows that are gone or damaged are owed again."""
        commits = counting_commits(self._plan, self._folder)
        self._run({shard: receipt for shard, receipt in commits.items() if shard not in damaged})

    def _dispatch(self, owed: list[tuple[str, str]]) -> None:
        pool = self._open_pool()
        self._workers = pool.workers
        ledger = Ledger[Receipt](owed, self._widths(self._workers), after=self._plan.turns())
        try:
            self._drive(ledger, pool)
        except BaseException:
            self._wind_down(ledger, pool, grace=0, commit=False)
            raise
        finally:
            pool.close()

    def _drive(self, ledger: Ledger[Receipt], pool: Pool) -> None:
        self._carry_out(ledger.start(), pool)
        while not ledger.finished:
            if self._stop.is_set():
                self._wind_down(ledger, pool, grace=GRACE)
                break
            if event := pool.next_event(TICK):
                if isinstance(event, Lost):
                    self._telemetry.event("lost", shard=event.shard, dispatch=event.attempt)
                self._carry_out(ledger.handle(event), pool)
                if isinstance(event, Finished) and event.missing and event.closed:
                    self._commit(event.receipt)
            self._look(pool, ledger)
        self._look(pool, ledger, last=True)

    def _wind_down(self, ledger: Ledger[Receipt], pool: Pool, *, grace: float, commit: bool = True) -> None:
        """Begin nothing more, wait a little for the workers to store what they have, and let that count."""
        ledger.handle(Stop())
        pool.stop(grace)
        until = self._clock() + grace + FLUSH
        while not ledger.finished and self._clock() < until:
            if event := pool.next_event(TICK):
                self._carry_out(ledger.handle(event), pool)
                if commit and isinstance(event, Finished) and event.missing:
                    self._commit(event.receipt)

    def _carry_out(self, instructions: list[Instruction[Receipt]], pool: Pool) -> None:
        for instruction in instructions:
            match instruction:
                case Dispatch():
                    pool.submit(instruction)
                case Commit(receipt=receipt):
                    self._commit(receipt)
                case Abandon(shard=shard, reason=reason):
                    self._telemetry.event("abandoned", shard=shard)
                    self._observer.warn(
                        f"shard {shard} was given up after repeated losses ({reason}); its trials stay owed"
                    )

    def _commit(self, receipt: Receipt) -> None:
        """Let the rows of a receipt count, be it of a whole shard or of one that ends early."""
        again = "were run again" if self._aim == "run" else "do not count"
        for path in receipt.damaged:
            self._observer.warn(f"{path} cannot be read; the trials it held {again}")
        self._warn_once(receipt.warnings)
        if receipt.parts:
            self._lease.confirm()
            counts = self._folder.commit(receipt)
            self._progress.settle(counts)
            self._telemetry.event("commit", shard=counts.shard, rows=counts.counts.rows, missing=counts.missing)

    def _warn_once(self, warnings: Collection[str]) -> None:
        """Every worker says it again with every shard."""
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._observer.warn(warning)

    def _look(self, pool: Pool, ledger: Ledger[Receipt], *, last: bool = False) -> None:
        """Keep the lease warm, close lanes and show how far the run is, when that is due."""
        if self._clock() < self._look_due and not last:
            return
        self._look_due = self._clock() + TICK
        self._lease.beat()
        self._resize(ledger, pool)
        standing = self._standing = pool.standing()
        self._close_lanes(ledger, standing)
        snapshot = self._progress.snapshot(pool.progress(), standing, datetime.now(UTC), pool.nodes())
        self._tell(snapshot)
        self._show(self._rates.rated(self._clock(), snapshot), store=last)

    def _resize(self, ledger: Ledger[Receipt], pool: Pool) -> None:
        """Dispatch as much as the workers that there are now can take."""
        if (workers := pool.workers) != self._workers:
            self._workers = workers
            self._carry_out(ledger.handle(Resize(self._widths(workers))), pool)

    def _tell(self, snapshot: Snapshot) -> None:
        """How models stand, and which machines have come, gone or changed."""
        for agent in snapshot.agents:
            if one := agent.standing:
                told = {"permits": one.permits, "in_flight": one.in_flight, "waiting": one.waiting}
                self._telemetry.event("standing", model=agent.name, **told)
        # How many shards they have changes all the time, and is no news.
        before, self._nodes = self._nodes, {node.node: node.model_copy(update={"shards": 0}) for node in snapshot.nodes}
        gone = {name: node.model_copy(update={"workers": 0, "down": 0}) for name, node in before.items()}
        for name, node in (gone | self._nodes).items():
            if before.get(name) != node:
                told = {"workers": node.workers, "down": node.down, "draining": node.draining}
                self._telemetry.event("node", node=name, **told)

    def _show(self, snapshot: Snapshot, *, store: bool) -> None:
        """Tell who looks on, and those who read the folder when that is due."""
        self._observer.progress(snapshot)
        if self._clock() >= self._snapshot_due or store:
            self._snapshot_due = self._clock() + PROGRESS_EVERY
            self._folder.write_progress(snapshot.model_dump(mode="json"))

    def _close_lanes(self, ledger: Ledger[Receipt], standing: Mapping[str, Standing]) -> None:
        """Dispatch nothing more of agents that may begin nothing more, and say why."""
        for name, one in standing.items():
            if one.closed:
                ledger.handle(Close(name, one.closed))
        for name, reason in ledger.closed.items():
            if name not in self._closed and reason not in FORESEEN:
                one = standing.get(name)
                error = (one and (one.why or (one.error if reason in BLOCKING else None))) or reason
                why = error if error.startswith(reason) else f"{reason} ({error})"
                self._observer.warn(
                    f"model {name!r} is not asked any more: {why}; its trials stay owed, and {remedy(reason)}"
                )
        for name in ledger.closed.keys() - self._closed.keys():
            self._telemetry.event("closed", model=name, reason=ledger.closed[name])
        self._closed |= ledger.closed

    def _widths(self, workers: int) -> dict[str, int]:
        """How many shards of each agent may be out: of twice as many trials as it has permits, and one for each worker.

        So there are trials to begin while the last ones of other shards end. Never more than permits, because every
        shard that is out may have a trial in flight.
        """
        size = self._plan.spec.shard_size
        permits = {agent.name: agent.pacing.max_in_flight for agent in self._plan.spec.agents}
        return {name: min(number, -(-2 * number // size) + workers) for name, number in permits.items()}
