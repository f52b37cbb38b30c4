"""Hands a run to a cluster as people do, kills its workers and then the whole cluster, and submits it to another one.

All the while `trunchray status --watch` looks on from a process that knows nothing but the store; it ends with 3 when
nobody drives the run any more, and another one with 0 when the run is complete.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import processes
import proof
from chaos import use_store
from drivers import Command
from nodes import SETTINGS
from ordeal import WORKERS, Toll
from question import Question, answer

from support.provider import CountingProvider
from support.s3 import BUCKET, S3Server

CLI = [sys.executable, "-m", "trunchray.cli.main"]
UP_WITHIN = 300.0
"""Seconds that a cluster may take to come up on a busy machine."""
STARTED = "Ray runtime started"
"""What `ray start` says once its node is part of the cluster."""
COMMANDS = 5
"""How often the run is given to the second cluster at most: a shard whose workers died eight times is given up."""


class Cluster:
    """A head with a dashboard, started by `ray start`, and further nodes, on loopback addresses of their own."""

    def __init__(self, number: int, nodes: int, folder: Path) -> None:
        self._place = 10 * number
        self._folder = folder / f"c{number}"  # short: Ray keeps sockets in it
        self._folder.mkdir()
        self._port, self._dashboard = free_port(), free_port()
        self._nodes = [self._start(place) for place in range(nodes)]
        wait_for(lambda: all(self._is_up(place) for place in range(nodes)), "every node is up")
        self.url = f"http://127.0.0.1:{self._dashboard}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL of everything, drivers and workers included."""
        for node in self._nodes:
            processes.kill([*processes.descendants(node.pid), node.pid])
            node.wait()

    def _is_up(self, place: int) -> bool:
        """Whether a node is there; one that gave up, because the machine was busy, is started again."""
        if self._nodes[place].poll() is not None:
            self._nodes[place] = self._start(place)
            return False
        return STARTED in self._log(place).read_text(encoding="utf-8", errors="replace")

    def _log(self, place: int) -> Path:
        return self._folder / f"node-{place}.log"

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        head = f"127.0.0.{2 + self._place}:{self._port}"
        ports = ("dashboard-agent-listen-port", "dashboard-agent-grpc-port", "metrics-export-port")
        argv = ["ray", "start", "--block", "--num-cpus=1", f"--node-ip-address=127.0.0.{2 + self._place + place}"]
        argv += [f"--{name}={free_port()}" for name in (*ports, "runtime-env-agent-port")]
        argv += ["--min-worker-port=0", "--max-worker-port=0", "--disable-usage-stats"]
        if place:
            argv += [f"--address={head}"]
            wait_for(lambda: open_port(*head.split(":")), "the head comes up")
        else:
            argv += ["--head", f"--port={self._port}", f"--temp-dir={self._folder}", "--dashboard-host=127.0.0.1"]
            argv += [f"--dashboard-port={self._dashboard}", f"--ray-client-server-port={free_port()}"]
        with self._log(place).open("wb") as log:
            return subprocess.Popen([str(Path(sys.executable).with_name(argv[0])), *argv[1:]], stdout=log, stderr=log)


class Watcher:
    """`status --watch` in a process of its own."""

    def __init__(self, run: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._out = folder / "watched.jsonl"
        with self._out.open("wb") as out:
            argv = [*CLI, "status", run, "--watch", "--json"]
            self.process = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL)

    def seen(self) -> list[dict[str, Any]]:
        """All that it has printed."""
        lines = self._out.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def rows(self) -> int:
        """How many rows it has seen last, counted or stored."""
        seen = self.seen()
        return rows_of(seen[-1]) if seen else 0


def main() -> int:
    options = _options()
    processes.adopt_orphans()
    try:
        return _run(options)
    finally:
        processes.kill([pid for pid, _ in processes.below()])


def _run(options: argparse.Namespace) -> int:
    chance = random.Random(options.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ts-")))
        use_store(stack.enter_context(S3Server()).url)
        os.environ |= SETTINGS | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # nodes find `trunchray` on it
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
        }
        provider = stack.enter_context(CountingProvider(answer=answer))
        question = Question(
            options.trials, options.models, options.permits, 64, f"s3://{BUCKET}/submitted", provider.base_url
        )
        release = question.compile()
        calm = Command(question.config(folder, "calm", release, "local"), [], {}).start()
        if calm.process.wait():
            raise SystemExit(f"the undisturbed run fails: {calm.said()}")
        undisturbed = proof.rows(f"{question.uri}/calm"), proof.summary(calm.answer())
        provider.asked.clear()
        provider.latency = options.latency

        config, run, toll = question.config(folder, "handed", release, "ray"), f"{question.uri}/handed", Toll()
        with Cluster(1, options.nodes, folder) as first:
            submit(config, first)
            watcher = Watcher(run, folder)
            harass(watcher, options.lost_at * question.trials, options.kill_every, chance, toll)
            first.kill()
            toll.blows["driver killed"] += 1
            toll.blows["worker"] += options.nodes
        print(f"the cluster is gone; {watcher.rows():,} of {question.trials:,} rows are seen", flush=True)
        wait_for(lambda: watcher.seen()[-1]["state"] == "waiting", "the watcher sees that nobody drives")
        print(subprocess.run([*CLI, "status", run], capture_output=True, text=True, check=False).stdout, flush=True)
        with Cluster(2, options.nodes, folder) as second:
            submit(config, second)
            wait_for(lambda: state(run) == "running", "a driver is at work")
            watchers = [watcher]
            while watchers[-1].process.wait() and len(watchers) <= COMMANDS:
                if len(watchers) > 1:  # shards that lost their workers again and again were given up
                    submit(config, second)
                    wait_for(lambda: state(run) == "running", "a driver is at work")
                watchers.append(Watcher(run, folder / f"watched-{len(watchers)}"))
                harass(watchers[-1], question.trials, options.kill_every, chance, toll)
        return _proven(question, run, undisturbed, toll, provider, watchers)


def _proven(
    question: Question,
    run: str,
    undisturbed: tuple[list[dict[str, Any]], object],
    toll: Toll,
    provider: CountingProvider,
    watchers: list[Watcher],
) -> int:
    told = subprocess.run([*CLI, "report", run, "--json"], capture_output=True, text=True, check=True)
    toll.answer = told.stdout
    problems = list(proof.wrong(question, run, undisturbed, toll))
    asked, (bound, allowed) = provider.asked.total(), proof.calls(question, provider.latency, toll)
    if asked > allowed:
        problems.append(f"the provider was asked {asked:,} times, and {allowed:,} were allowed")
    states = [line["state"] for watcher in watchers for line in watcher.seen()]
    changes = [state for place, state in enumerate(states) if place == 0 or states[place - 1] != state]
    codes = " and ".join(str(watcher.process.returncode) for watcher in watchers)
    print(
        f"{'FAILED' if problems else 'ok'}: {question.trials:,} trials counted once, {asked:,} calls, {bound:,} if a "
        f"loss costs what is in flight; {dict(toll.blows)}\n"
        f"the watchers saw {len(states)} states ({' → '.join(changes)}) and ended with {codes}",
        flush=True,
    )
    for problem in problems:
        print(f"  WRONG: {problem}", flush=True)
    return 1 if problems else 0


def submit(config: Path, cluster: Cluster) -> None:
    """Hand the run over, once the cluster is up: until then its dashboard is not there, or answers half of the time."""
    refused = Counter[str]()

    def accepted() -> bool:
        told = subprocess.run(
            [*CLI, "submit", str(config), "--address", cluster.url, "--takeover"],
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode == 0:
            print(told.stdout, flush=True)
        else:
            refused[told.stderr.strip()] += 1
        return told.returncode == 0

    wait_for(accepted, "the cluster takes the run", refused)


def harass(watcher: Watcher, until: float, every: float, chance: random.Random, toll: Toll) -> None:
    """Kill a random worker every so many seconds until the watcher has seen so many rows, or has ended."""
    due = time.monotonic() + every
    while watcher.rows() < until and watcher.process.poll() is None:
        time.sleep(0.2)
        if time.monotonic() >= due:
            due = time.monotonic() + every
            if workers := processes.named(WORKERS):
                toll.blows["worker"] += processes.kill([chance.choice(workers)])


def state(run: str) -> str:
    """What `status` says of it."""
    told = subprocess.run([*CLI, "status", run, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)["state"]


def rows_of(status: dict[str, Any]) -> int:
    """Rows in what `status --json` says."""
    latest = [status["latest"]] if status["latest"] else []
    return max(
        sum(sum(agent["counts"][name] for name in ("passed", "failed", "error")) for agent in snapshot["agents"])
        for snapshot in [status["committed"], *latest]
    )


def wait_for(happened: Callable[[], bool], what: str, said: Counter[str] | None = None) -> None:
    until = time.monotonic() + UP_WITHIN
    while not happened():
        if time.monotonic() > until:
            raise SystemExit(f"waited {UP_WITHIN:.0f} s in vain until {what}; {dict(said or {})}")
        time.sleep(1)


def open_port(host: str, port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5000, help="cases, each asked of each model")
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that an answer takes")
    parser.add_argument("--permits", type=int, default=48, help="requests in flight of each model")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--kill-every", type=float, default=5, help="seconds between two kills of a worker")
    parser.add_argument("--lost-at", type=float, default=0.4, help="share of the rows at which the cluster is lost")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
