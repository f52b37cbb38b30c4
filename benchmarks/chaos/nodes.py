"""A Ray cluster of several nodes on loopback addresses, whose raylets may be killed and are replaced."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import processes

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
}
"""Dead nodes are found out within seconds, no idle workers are started, and a busy machine may take its time."""
PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")
JOINS_WITHIN = 300.0
"""Seconds that a node may take to come up, in place of Ray's thirty: starting one costs a busy machine a lot."""


def _free_ports() -> Iterator[int]:
    """Ports outside of the range from which the system gives some away: they stay free until somebody listens."""
    for port in range(23_000 + os.getpid() % 4000, 30_000):
        with suppress(OSError):
            with socket.socket() as probe:
                probe.bind(("", port))
            yield port


@dataclass
class Nodes:
    """A head and `count - 1` further nodes with `cpus` processors each; ends with the block."""

    count: int
    cpus: int
    folder: Path
    """Short: Ray keeps sockets in it."""
    _nodes: list[Any] = field(default_factory=list[Any])
    _next: int = 2
    _ports: Iterator[int] = field(default_factory=_free_ports)
    _joining: threading.Thread | None = None

    def __enter__(self) -> Self:
        os.environ |= SETTINGS | {"RAY_TMPDIR": str(self.folder)}
        (self.folder / "ray").mkdir()  # where Ray notes which cluster was started last
        from ray._private import node, services  # noqa: PLC0415 - reads the environment
        from ray.cluster_utils import Cluster  # noqa: PLC0415

        services.get_node = _patiently(services.get_node)
        node.Node.start_raylet = _telling_ports(node.Node.start_raylet)
        self._cluster = Cluster()
        try:
            self._fill()
            # Further ones come up in a thread, where Ray cannot handle signals; should we be killed, what the first
            # ones have running ends them all.
            self._cluster._shutdown_at_exit = False  # noqa: SLF001
        except BaseException:
            self._cluster.shutdown()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.settle()
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        return self._cluster.address

    def settle(self) -> None:
        """Wait for nodes that are on their way."""
        if self._joining:
            self._joining.join()

    def _fill(self) -> None:
        """Add nodes until there are as many as there should be; a busy machine may need several tries."""
        for _ in range(3 * self.count):
            if len(self._nodes) == self.count:
                return
            try:
                self._add()
            except Exception as e:  # what Ray raises when a node does not come up
                print(f"  a node did not come up ({e}); trying again", flush=True)
        raise RuntimeError("the cluster does not come up")

    def _add(self) -> None:
        """One more node, under an address that none had before."""
        place = {"node_ip_address": f"127.0.0.{self._next}", "num_cpus": self.cpus}
        self._next += 1
        ports = {name: next(self._ports) for name in (*PORTS, *(() if self._nodes else ("gcs_server_port",)))}
        head = {} if self._nodes else {"include_dashboard": False}
        self._nodes.append(self._cluster.add_node(**place, **ports, **head, temp_dir=str(self.folder)))

    def pids(self) -> set[int]:
        """Of everything that makes up the nodes, without the workers."""
        return {each.process.pid for node in self._nodes for kind in node.all_processes.values() for each in kind}

    def kill_raylet(self, chance: random.Random) -> bool:
        """SIGKILL the raylet of some node that is not the head, and have another one join; False while one joins."""
        if self._joining and self._joining.is_alive():
            return False
        if len(self._nodes) == 1:
            return False
        node = chance.choice(self._nodes[1:])
        self._nodes.remove(node)
        processes.kill([node.all_processes["raylet"][0].process.pid])

        def replace() -> None:
            self._cluster.remove_node(node, allow_graceful=False)
            self._fill()

        self._joining = threading.Thread(target=replace, name="joining node")
        self._joining.start()
        return True


def _telling_ports(start_raylet: Callable[..., None]) -> Callable[..., None]:
    """A raylet gives up agents that do not say within fifteen seconds where they listen, which is known before."""
    from ray._raylet import persist_port  # noqa: PLC0415

    def start(node: Any, *args: Any, **kwargs: Any) -> None:
        for name in PORTS:
            persist_port(node.get_session_dir_path(), node.node_id, name, getattr(node._ray_params, name))  # noqa: SLF001
        start_raylet(node, *args, **kwargs)

    return start


def _patiently(get_node: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    def ask(gcs_address: str, node_id: str) -> Any:
        until = time.monotonic() + JOINS_WITHIN
        while True:
            try:
                return get_node(gcs_address, node_id)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    return ask
