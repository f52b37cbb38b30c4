"""A Ray cluster of several nodes on loopback addresses, whose raylets may be killed and are replaced."""

from __future__ import annotations

import os
import random
import socket
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import processes

HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
}
"""So that a dead node is found out within seconds."""


@dataclass
class Nodes:
    """A head and `count - 1` further nodes with `cpus` processors each; ends with the block."""

    count: int
    cpus: int
    folder: Path
    """Short: Ray keeps sockets in it."""
    _nodes: list[Any] = field(default_factory=list[Any])
    _next: int = 2

    def __enter__(self) -> Self:
        os.environ |= HEALTH | {"RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0"}
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - reads the environment

        self._cluster = Cluster()
        try:
            for _ in range(self.count):
                self.add()
        except BaseException:
            self._cluster.shutdown()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self) -> None:
        """One more node, under an address that none had before."""
        place = {"node_ip_address": f"127.0.0.{self._next}", "num_cpus": self.cpus}
        self._next += 1
        head = {} if self._nodes else {"include_dashboard": False, "gcs_server_port": _free_port()}
        self._nodes.append(self._cluster.add_node(**place, **head, temp_dir=str(self.folder)))

    def pids(self) -> set[int]:
        """Of everything that makes up the nodes, without the workers."""
        return {each.process.pid for node in self._nodes for kind in node.all_processes.values() for each in kind}

    def kill_raylet(self, chance: random.Random) -> int:
        """SIGKILL the raylet of some node that is not the head; how many workers it had."""
        node = chance.choice(self._nodes[1:])
        raylet = node.all_processes["raylet"][0].process.pid
        workers = len(set(processes.named("ray::_Actor")) & processes.descendants(raylet))
        processes.kill([raylet])
        self._nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)
        return workers


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        return probe.getsockname()[1]
