"""How far a run is, read from its folder alone: nothing is asked of the process that drives it.

Each look reads two small objects, however large the run is: the lease and the driver's last snapshot. Only when a
driver was killed, so that its last word may be older than its last commit, are the commits counted, once; and of a
complete run with errors that no asking mends, the report says how many of them are of grading.

Clocks of machines differ. So a heart beats as long as it is seen to beat, whatever time it shows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

from trunchray.adapters.lease import is_gone, read_lease
from trunchray.adapters.runs import RunFolder
from trunchray.core.frozen import Frozen
from trunchray.core.lease import HEARTBEAT, STALE, Lease
from trunchray.core.report import ErrorKind
from trunchray.core.run import RunSpec
from trunchray.engine.progress import Progress, Snapshot, question
from trunchray.engine.stored import counting_commits, stored_plan, stored_spec
from trunchray.errors import ReleaseError

State = Literal["complete", "running", "waiting"]

SECOND_LOOK = HEARTBEAT.total_seconds() + 1.5
"""Seconds after which a heart that beats has been seen to."""
DOUBTFUL = timedelta(days=1)
"""How far clocks may be apart: a heart that shows another time than that has stopped."""


class Status(Frozen):
    """A run as its folder shows it. Ages are in seconds and never negative."""

    run: str
    uri: str
    release_digest: str
    state: State
    """`waiting`: trials are owed and nobody drives; the same `run` command continues."""
    driver: str | None
    heartbeat: datetime | None
    """By the driver's clock."""
    heartbeat_age: float | None = None
    clock_ahead: float = 0
    """Seconds by which the driver's clock is ahead of this machine's; 0 while that makes no difference."""
    lost: str | None = None
    """A driver that seems to have ended without a word."""
    age: float | None = None
    """Of `latest`."""
    eta: float | None = None
    """Seconds that the rest will take at the present rates; None when nobody can tell."""
    committed: Snapshot
    """Rows that count."""
    latest: Snapshot | None
    """The driver's last snapshot: with rows in progress, which count once their shards are committed. None when it is
    of another plan, or there is none, or all rows count."""
    ungraded: int = 0
    """Answers of a complete run that an evaluator could not grade, as its report says."""
    regrades: str | None = None
    """The run whose answers this one grades; None when it asks models."""

    @property
    def errors(self) -> int:
        """Counted trials that ended in an error."""
        return sum(agent.counts.error for agent in self.committed.agents)

    @property
    def retryable(self) -> int:
        """Those of them that asking again could mend."""
        return sum(agent.counts.retryable for agent in self.committed.agents)

    @property
    def retry_usd(self) -> float | None:
        """What it costs to ask them again, if each takes what a trial of its model has taken; None where none has."""
        found = [
            agent.spent_usd * agent.counts.retryable / (agent.counts.passed + agent.counts.failed)
            for agent in self.committed.agents
            if agent.counts.retryable and agent.counts.passed + agent.counts.failed and agent.spent_usd
        ]
        return sum(found) if found and self.regrades is None else None


def read_status(run_uri: str, sleep: Callable[[float], None] = time.sleep) -> Status:
    """The state of the run at `run_uri`.

    Where the clocks may be to blame for a heartbeat that is old, or not due yet, it is looked at once more.

    Raises:
        UsageError: there is no run.
        ReleaseError: nothing is known but by counting commits, and its release is gone or damaged.
    """
    reader = StatusReader(run_uri)
    found = reader.read()
    if reader.doubtful:
        sleep(SECOND_LOOK)
        return reader.read()
    return found


class StatusReader:
    """Looks at one run again and again. `now` is the time of this machine, `clock` counts its seconds from anywhere."""

    def __init__(
        self,
        run_uri: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = RunFolder(run_uri)
        self._now, self._clock = now, clock
        self._spec: RunSpec | None = None
        self._pulse: tuple[int, datetime] | None = None
        self._pulse_since = 0.0
        self._beat_seen: float | None = None
        self._recount: tuple[object, Snapshot] | None = None
        self.doubtful = False
        """The last look could not tell whether a driver is gone or its clock is wrong."""

    def read(self) -> Status:
        """One look.

        Raises:
            UsageError: there is no run.
            ReleaseError: nothing is known but by counting commits, and its release is gone or damaged.
        """
        last = read_lease(self._folder.store)
        lease = None if last and last.ended else last
        driven = lease is not None and self._beats(lease)
        latest = Snapshot.read(self._folder.progress())
        spec = self._question(latest)
        if latest and latest.question != question(spec):
            latest = None
        final = latest is not None and latest.final
        self.doubtful = lease is not None and not driven and not final and self._doubtful(lease)
        sure = driven or final or self.doubtful
        committed = latest.committed() if latest and sure else self._counted(spec, last, latest)
        whole = committed.rows == committed.planned
        driven &= not (whole and final)
        unended = lease is not None and not driven and not final and not whole
        ahead = self._ahead(lease) if lease and driven else 0.0
        return Status(
            run=spec.run_id,
            uri=self._folder.uri,
            release_digest=spec.release_digest,
            state="running" if driven else "complete" if whole else "waiting",
            driver=lease.driver if lease and driven else None,
            heartbeat=lease.heartbeat if lease and (driven or unended) else None,
            heartbeat_age=self._heart_age(lease, ahead) if lease and (driven or unended) else None,
            clock_ahead=ahead,
            lost=lease.driver if lease and unended else None,
            age=self._age(latest.at, ahead) if latest and latest.at else None,
            eta=latest.eta if latest and driven else None,
            committed=committed,
            latest=latest if driven or not whole else None,
            ungraded=0 if driven or not whole else self._ungraded(committed),
            regrades=spec.regrades.run if spec.regrades else None,
        )

    def _question(self, latest: Snapshot | None) -> RunSpec:
        """What is asked; read again when the driver speaks of something else, as after models were added."""
        if self._spec is None or (latest and latest.question != question(self._spec)):
            self._spec = stored_spec(self._folder)
        return self._spec

    def _counted(self, spec: RunSpec, lease: Lease | None, latest: Snapshot | None) -> Snapshot:
        """The commits, counted anew only when somebody has driven since."""
        moment = (lease, latest, spec)
        if self._recount is None or self._recount[0] != moment:
            try:
                plan = stored_plan(spec)
            except ReleaseError:  # it may be kept where only the driver's machine finds it
                if latest is None:
                    raise
                self._recount = moment, latest.committed()
            else:
                self._recount = moment, Progress(plan, counting_commits(plan, self._folder)).snapshot({})
        return self._recount[1]

    def _ungraded(self, committed: Snapshot) -> int:
        """By the report, which is not asked when all errors are known to be of another kind."""
        errors, retryable = (
            sum(getattr(one.counts, kind) for one in committed.agents) for kind in ("error", "retryable")
        )
        return _reported_ungraded(self._folder) if errors > retryable else 0

    def _beats(self, lease: Lease) -> bool:
        """Whether its driver is at work: as far as can be told from its clock, or because the lease has changed."""
        before, self._pulse = self._pulse, (lease.epoch, lease.heartbeat)
        if self._pulse != before:
            self._pulse_since = self._clock()
        if before is not None and self._pulse != before:
            self._beat_seen = self._clock() if self._pulse > before else None
        seen = self._beat_seen is not None and self._clock() - self._beat_seen <= STALE.total_seconds()
        return not is_gone(lease) and (seen or abs(self._now() - lease.heartbeat) <= STALE)

    def _doubtful(self, lease: Lease) -> bool:
        """Whether a heart that seems to stand still has not been looked at for long enough."""
        away = abs(self._now() - lease.heartbeat)
        young = self._clock() - self._pulse_since < SECOND_LOOK
        return young and STALE < away < DOUBTFUL and not is_gone(lease)

    def _ahead(self, lease: Lease) -> float:
        ahead = (lease.heartbeat - self._now()).total_seconds()
        return ahead if abs(ahead) > STALE.total_seconds() else 0.0

    def _heart_age(self, lease: Lease, ahead: float) -> float:
        if ahead and self._beat_seen is not None:
            return self._clock() - self._beat_seen
        return self._age(lease.heartbeat, ahead)

    def _age(self, at: datetime, ahead: float) -> float:
        return max(0.0, (self._now() - at).total_seconds() + ahead)


def _reported_ungraded(folder: RunFolder) -> int:
    """How many answers no evaluator could grade; 0 where there is no report that says."""
    try:
        models = json.loads(folder.store.read("report/summary.json"))["models"]
        kinds = [ErrorKind.model_validate(kind) for model in models for kind in model["errors"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
    return sum(kind.count for kind in kinds if kind.of_grading)
