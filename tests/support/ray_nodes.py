"""A Ray cluster of several nodes on this machine, each at a loopback address of its own."""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pytest

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_raylet_start_wait_time_s": "180",
    "TRUNCHRAY_TEST_KEY": "of-all-nodes",
}
"""Dead nodes are found out within seconds, and a busy machine may take its time."""


NETWORK = f"127.0.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]}"
"""Each process that runs tests has one, so that their clusters do not meet."""


HEAD = f"{NETWORK}.2"
"""Where the head is."""


class RayNodes:
    """The cluster, and this process as its driver."""

    def __enter__(self) -> Self:
        self._patch = pytest.MonkeyPatch()
        for name, value in SETTINGS.items():
            self._patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        from trunchray.engine.cluster import ray  # reads the environment

        self._ray: Any = ray
        unasked = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        head = {"node_ip_address": HEAD, "num_cpus": 2, **unasked}
        self._cluster: Any = Cluster()
        self._start(**head)
        self._added: list[Any] = []
        self._next = 3
        ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ray.shutdown()
        self._cluster.shutdown()
        self._patch.undo()

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self, *, environ: dict[str, str] | None = None, cpus: int = 1, **resources: float) -> Any:
        """One more node, whose workers have the environment variables."""
        before = {name: os.environ.get(name) for name in environ or {}}
        os.environ.update(environ or {})
        try:
            place = f"{NETWORK}.{self._next}"
            self._next += 1
            self._added.append(self._start(node_ip_address=place, num_cpus=cpus, resources=resources))
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        return self._added[-1]

    def _start(self, **options: Any) -> Any:
        """A node; a busy machine may need several tries."""
        for _ in range(2):
            with suppress(Exception):
                return self._cluster.add_node(**options)
        return self._cluster.add_node(**options)

    def kill(self, node: Any) -> None:
        """SIGKILL of its raylet, as when a machine vanishes."""
        os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)

    def drain(self, node: Any, seconds: float) -> None:
        """The notice that a node will be gone in so many seconds, as a cloud gives it."""
        from ray.core.generated import autoscaler_pb2

        preemption = autoscaler_pb2.DrainNodeReason.DRAIN_NODE_REASON_PREEMPTION
        gcs = self._ray._private.worker.global_worker.gcs_client
        assert gcs.drain_node(node.node_id, preemption, "test", int((time.time() + seconds) * 1000))[0]

    def is_there(self, node: Any) -> bool:
        return any(one["Alive"] and one["NodeID"] == node.node_id for one in self._ray.nodes())

    def shrink(self) -> None:
        """Only the head is left."""
        while self._added:
            self._cluster.remove_node(self._added.pop(), allow_graceful=False)
