"""Driving runs in tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq

from trunchray.adapters.parts import MEASURED
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import ModelAgent
from trunchray.core.report import Report
from trunchray.core.run import RunSpec
from trunchray.core.telemetry import Observe
from trunchray.engine.launch import Launch, launch
from trunchray.engine.progress import Snapshot
from trunchray.engine.seating import Seating
from trunchray.engine.spending import Spending


@dataclass
class Onlooker:
    """An observer that remembers."""

    snapshots: list[Snapshot] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def progress(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def question(release: StoredRelease, agents: Sequence[ModelAgent], **changes: Any) -> RunSpec:
    fields = {
        "run_id": "test",
        "title": release.release.title,
        "release": release.uri,
        "release_digest": release.release.digest,
        "agents": tuple(agents),
        "shard_size": 16,
    }
    return RunSpec.model_validate(fields | changes)


def drive(
    spec: RunSpec,
    release: StoredRelease,
    out: Path | str,
    *,
    pool: Any = "local",
    inputs: dict[str, bytes] | None = None,
    observer: Onlooker | None = None,
    stop: Event | None = None,
    takeover: bool = False,
    address: str | None = None,
    seating: Seating | None = None,
    cache: str | None = None,
    spending: Spending | None = None,
    observe: Observe | None = None,
) -> Report:
    """Launch the run. A Ray of our own gets one worker unless `seating` says otherwise: they take long to start."""
    how = Launch(
        str(out),
        observer or Onlooker(),
        pool=pool,
        stop=stop or Event(),
        takeover=takeover,
        address=address,
        seating=seating or Seating(workers=None if address else 1),
        cache=cache,
        spending=spending or Spending(),
        observe=observe or Observe(),
    )
    return launch(spec, release, inputs or {}, how)


def rows(run: Path) -> list[dict[str, Any]]:
    """The counted rows of a run."""
    return pq.read_table(run / "report" / "results.parquet").to_pylist()


def unmeasured(run: Path) -> list[dict[str, Any]]:
    """The counted rows without what two runs of the same work may measure differently."""
    return [{name: value for name, value in row.items() if name not in MEASURED} for row in rows(run)]
