"""Runs on a cluster whose machines come, drain, die, or lack something."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from support.provider import CountingProvider
from support.ray_nodes import HEAD, RayNodes
from support.releases import make_release
from support.runs import Onlooker, drive, question, rows, unmeasured
from trunchray.core.agent import ModelAgent, Pacing
from trunchray.core.report import Report
from trunchray.engine.progress import NodeStanding, Snapshot
from trunchray.engine.seating import Seating
from trunchray.errors import UsageError

TRIALS, IN_FLIGHT = 240, 12
SLOW, FAST = 2.0, 0.1
"""Seconds that answers take: while a test waits for a node to be at work, and afterwards."""


class Watcher(Onlooker):
    """Lets a test wait for what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = Event()

    def progress(self, snapshot: Snapshot) -> None:
        super().progress(snapshot)
        self._changed.set()

    def note(self, message: str) -> None:
        super().note(message)
        self._changed.set()

    def wait(self, run: Future[Report], seen: Callable[[], Any]) -> None:
        while not seen():
            assert not run.done(), (run.exception(), self.notes, self.warnings)
            self._changed.wait(1)
            self._changed.clear()

    @property
    def nodes(self) -> dict[str, NodeStanding]:
        """As they were last."""
        return {node.node: node for node in self.snapshots[-1].nodes} if self.snapshots else {}

    def has_work(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].shards > 0

    @property
    def ever(self) -> set[str]:
        """All nodes that had workers."""
        return {node.node for snapshot in self.snapshots for node in snapshot.nodes if node.workers}


def model(provider: CountingProvider, **fields: Any) -> ModelAgent:
    pacing = Pacing(max_in_flight=IN_FLIGHT, max_retries=0)
    return ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=pacing, **fields)


def counted_once(run: Path) -> None:
    keys = [row["trial_key"] for row in rows(run)]
    assert len(keys) == len(set(keys)) == TRIALS


def test_a_node_that_drains_takes_nothing_with_it(ray_nodes: RayNodes, tmp_path: Path):
    """A run uses all nodes; one that gets its notice stores what it has and leaves, and no answer is paid for twice."""
    leaving = ray_nodes.add()
    release, watcher = make_release(tmp_path, TRIALS), Watcher()
    with CountingProvider(latency=SLOW) as provider, ThreadPoolExecutor() as threads:
        spec = question(release, [model(provider)], shard_size=8)
        options: dict[str, Any] = {"pool": "ray", "seating": Seating()}
        run = threads.submit(drive, spec, release, tmp_path / "ray", observer=watcher, **options)
        place = leaving.node_ip_address
        watcher.wait(run, lambda: len(watcher.nodes) == 2 and watcher.has_work(place))
        ray_nodes.drain(leaving, 60)
        provider.latency = FAST
        watcher.wait(run, lambda: place not in watcher.nodes)
        report = run.result()
        assert report.complete
        assert provider.answered.total() == TRIALS, "an answer was paid for twice"
        drive(spec, release, tmp_path / "local")
    assert watcher.ever == {HEAD, place}
    assert any(node.draining for snapshot in watcher.snapshots for node in snapshot.nodes)
    assert f"node {place} is about to leave: its workers store what they have and end" in watcher.notes
    assert watcher.warnings == []
    counted_once(tmp_path / "ray" / "test")
    assert unmeasured(tmp_path / "ray" / "test") == unmeasured(tmp_path / "local" / "test")


def test_workers_follow_the_nodes_that_have_what_they_take(ray_nodes: RayNodes, tmp_path: Path):
    """A run waits for nodes with its resource, uses those that join, gets over one that vanishes, and no others."""
    release, watcher = make_release(tmp_path, TRIALS), Watcher()
    with CountingProvider(latency=SLOW) as provider, ThreadPoolExecutor() as threads:
        spec = question(release, [model(provider)], shard_size=8)
        options = {"pool": "ray", "address": ray_nodes.address, "seating": Seating(resources={"eval": 1})}
        run = threads.submit(drive, spec, release, tmp_path, observer=watcher, **options)
        watcher.wait(run, lambda: any("takes 1 'eval'" in note for note in watcher.notes))
        first = ray_nodes.add(eval=1)
        watcher.wait(run, lambda: watcher.has_work(first.node_ip_address))
        second = ray_nodes.add(eval=1)
        watcher.wait(run, lambda: watcher.has_work(second.node_ip_address))
        ray_nodes.kill(first)
        provider.latency = FAST
        report = run.result()
    assert report.complete
    assert (report.passed, report.error) == (TRIALS, 0)
    assert watcher.ever == {first.node_ip_address, second.node_ip_address}
    assert f"node {first.node_ip_address} is gone; what its workers had in hand is run elsewhere" in watcher.warnings
    counted_once(tmp_path / "test")
    assert max(provider.answered.values()) <= 2, "one loss repeated a trial twice"


def test_a_node_that_cannot_work_is_named_and_left_out(ray_nodes: RayNodes, tmp_path: Path):
    """Where a key is missing nothing runs, and others do the work; where all miss one, the command says so at once."""
    without = ray_nodes.add(environ={"TRUNCHRAY_TEST_KEY": ""})
    release, watcher = make_release(tmp_path, 24), Watcher()
    with CountingProvider(latency=0.3) as provider:
        options: dict[str, Any] = {"pool": "ray", "address": ray_nodes.address}
        spec = question(release, [model(provider, api_key_env="TRUNCHRAY_TEST_KEY")], shard_size=4)
        assert drive(spec, release, tmp_path, observer=watcher, **options).passed == 24
        assert [warning.split(": ")[0] for warning in watcher.warnings] == [
            f"node {without.node_ip_address} gets no work"
        ]
        assert "set the environment variable TRUNCHRAY_TEST_KEY where the workers run" in watcher.warnings[0]
        assert watcher.ever == {HEAD}
        nobody = question(release, [model(provider, api_key_env="TRUNCHRAY_NO_KEY")], shard_size=4, run_id="none")
        with pytest.raises(
            UsageError, match=rf"no node of the cluster can do the work: nodes {re.escape(HEAD)}, .*NO_KEY"
        ):
            drive(nobody, release, tmp_path, **options)
