"""How far a run is, read from its folder alone: nothing is asked of the process that drives it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from trunchray.adapters.lease import is_driven
from trunchray.core.frozen import Frozen
from trunchray.engine.aggregate import counting_commits
from trunchray.engine.launch import open_run
from trunchray.engine.progress import Progress, Snapshot

State = Literal["complete", "running", "waiting"]


class Status(Frozen):
    """A run as its folder shows it."""

    run: str
    uri: str
    release_digest: str
    state: State
    """`waiting`: trials are owed and nobody drives; the same `run` command continues."""
    driver: str | None
    heartbeat: datetime | None
    committed: Snapshot
    """Rows that count."""
    latest: Snapshot | None
    """The driver's last snapshot: with rows in progress, which count once their shards are committed. None when it is
    of another plan, or there is none, or all rows count."""


def read_status(run_uri: str) -> Status:
    """The state of the run at `run_uri`.

    Raises:
        UsageError: there is no run.
    """
    folder, plan = open_run(run_uri)
    committed = Progress(plan, counting_commits(plan, folder)).snapshot({})
    lease = is_driven(folder.store)
    state: State = "complete" if committed.rows == committed.planned else "running" if lease else "waiting"
    return Status(
        run=plan.spec.run_id,
        uri=folder.uri,
        release_digest=plan.spec.release_digest,
        state=state,
        driver=lease.driver if lease else None,
        heartbeat=lease.heartbeat if lease else None,
        committed=committed,
        latest=None if state == "complete" else Snapshot.read(folder.progress()),
    )
