"""The main flow with a pool that does nothing; what real ones do is in tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from threading import Event

from support.releases import make_release
from support.runs import Onlooker, question
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.ledger import Dispatch, Finished
from trunchray.core.plan import make_plan
from trunchray.core.receipt import Counts, InHand, Receipt
from trunchray.core.telemetry import SILENCE, Fact, Kind, Span
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding
from trunchray.engine.run import Run


class IdlePool:
    """Gives each shard back without a row, while its machines are those of `seen`, one after another."""

    workers = 1

    def __init__(self, seen: Iterator[tuple[NodeStanding, ...]]) -> None:
        self._out: list[Dispatch] = []
        self._seen = seen

    def submit(self, work: Dispatch) -> None:
        self._out.append(work)

    def next_event(self, timeout: float) -> Finished[Receipt] | None:
        work = self._out.pop(0)
        receipt = Receipt(shard=work.shard, attempt=work.attempt, parts=(), keys_digest="", counts=Counts())
        return Finished(work.shard, work.attempt, receipt, 0)

    def progress(self) -> dict[str, InHand]:
        return {}

    def standing(self) -> dict[str, Standing]:
        return {}

    def nodes(self) -> tuple[NodeStanding, ...]:
        return next(self._seen)

    def stop(self, grace: float) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""


class Ear:
    """Telemetry that remembers what was told of machines."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Fact]] = []

    def span(self, kind: Kind, **facts: Fact) -> AbstractContextManager[Span]:
        return SILENCE.span(kind)

    def event(self, kind: Kind, **facts: Fact) -> None:
        if kind == "node":
            self.heard.append(facts)

    def close(self) -> None:
        """Nothing is kept back."""


def test_machines_that_come_change_and_go_are_told(tmp_path: Path):
    """Each once, whatever work they have in between."""
    release = make_release(tmp_path / "releases", 5)
    spec = question(release, [ModelAgent(name="echo", model="mock/echo")], shard_size=1)
    folder, ear, seconds = RunFolder(str(tmp_path / "run")), Ear(), count()
    one, other = NodeStanding(node="one", workers=2), NodeStanding(node="other", workers=1)
    busy, down = one.model_copy(update={"shards": 3}), one.model_copy(update={"down": 1})
    seen = iter([(), (one,), (busy, other), (down, other), (other,), (other,)])
    Run(
        make_plan(spec, release.cases().index),
        folder,
        lease=HeldLease.take(folder.store),
        open_pool=lambda: IdlePool(seen),
        wanted=["echo"],
        observer=Onlooker(),
        stop=Event(),
        telemetry=ear,
        clock=lambda: float(next(seconds)),
    )()
    assert ear.heard == [
        {"node": "one", "workers": 2, "down": 0, "draining": False},
        {"node": "other", "workers": 1, "down": 0, "draining": False},
        {"node": "one", "workers": 2, "down": 1, "draining": False},
        {"node": "one", "workers": 0, "down": 0, "draining": False},
    ]
