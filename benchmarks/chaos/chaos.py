"""Kills workers, drivers and raylets of runs on a cluster and breaks their store, then proves that nothing is wrong."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import processes
import proof
from drivers import Command
from nodes import Nodes
from ordeal import Hail, Ordeal
from question import Question, answer
from weather import Weather

from support.provider import CountingProvider
from support.s3 import BUCKET, KEY, SECRET, S3Server, environment
from support.s3_faults import FaultyStore


@dataclass
class Scene:
    """Everything that stays while runs come and go."""

    folder: Path
    proxy: FaultyStore
    provider: CountingProvider
    nodes: Nodes | None
    question: Question
    release: str
    standing: set[int]
    """The processes that belong to it."""
    calm: tuple[list[dict[str, Any]], object] = ([], None)

    def command(self, run_id: str, pool: str) -> Command:
        config = self.question.config(self.folder, run_id, self.release, pool)
        address = ["--address", self.nodes.address] if self.nodes and pool == "ray" else []
        return Command(config, address, {})


def main() -> int:
    options = _options()
    processes.adopt_orphans()
    try:
        return _run(options)
    finally:
        processes.kill([pid for pid, _ in processes.below()])  # whatever went wrong: all of them are ours


def _run(options: argparse.Namespace) -> int:
    logging.getLogger("aiohttp.server").disabled = True  # whoever is killed hangs up on the proxy
    failed = 0
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        scene = _set(stack, options)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
        ends = time.monotonic() + options.minutes * 60
        for number in range(options.seeds):
            seed = options.seed + number
            share = (ends - time.monotonic()) / (options.seeds - number) if options.minutes else float("inf")
            until, turn = time.monotonic() + share, 0
            while turn == 0 or (options.minutes and until - time.monotonic() > options.another):
                failed += not _suffer(scene, options, seed, turn, until - time.monotonic(), totals)
                turn += 1
    said = ", ".join(f"{count:,} {name}" for name, count in totals.items())
    print(f"{'FAILED' if failed else 'all as it has to be'}: {said}", flush=True)
    if left := [name for _, name in processes.below()]:
        print(f"left behind: {left}")
    return 1 if failed or left else 0


def _set(stack: ExitStack, options: argparse.Namespace) -> Scene:
    """Bring up the store, the provider and the cluster, and let one run pass undisturbed."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tc-")))
    proxy = stack.enter_context(FaultyStore(KEY, SECRET))
    use_store(proxy.url)
    proxy.upstream = stack.enter_context(S3Server()).url
    provider = stack.enter_context(CountingProvider(answer=answer))
    nodes = stack.enter_context(Nodes(options.nodes, options.cpus, folder)) if options.pool == "ray" else None
    question = Question(
        options.trials, options.models, options.permits, options.shard_size, f"s3://{BUCKET}/chaos", provider.base_url
    )
    scene = Scene(folder, proxy, provider, nodes, question, question.compile(), set())
    scene.standing = {pid for pid, _ in processes.below()}
    began = time.monotonic()
    driver = scene.command("calm", "local").start()
    if driver.process.wait():
        raise SystemExit(f"the undisturbed run fails: {driver.said()}")
    scene.calm = proof.rows(f"{question.uri}/calm"), proof.summary(driver.answer())
    print(f"undisturbed: {question.trials:,} trials in {time.monotonic() - began:.0f} s", flush=True)
    return scene


def use_store(url: str) -> None:
    """Make everything that is started from now on find S3 there."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= environment(url)


def _suffer(scene: Scene, options: argparse.Namespace, seed: int, turn: int, left: float, totals: Counter[str]) -> bool:
    """One run; whether everything about it is as it has to be."""
    run_id, question, provider = f"seed-{seed}-{turn}", scene.question, scene.provider
    provider.asked.clear()
    provider.asked_of.clear()
    provider.latency = options.latency
    weather = Weather(scene.proxy, options.bad_requests, seed)
    lasts = min(left, options.lasts)
    hail = Hail(
        *(options.kill_every, options.raylet_every, options.driver_every, options.outage_every),
        *(options.raylets, options.drivers, lasts, tuple(options.driver_blows)),
    )
    toll = Ordeal(scene.command(run_id, options.pool), scene.nodes, weather, hail, seed * 1000 + turn)()
    weather.clear_up()
    problems = [*toll.problems, *proof.wrong(question, f"{question.uri}/{run_id}", scene.calm, toll)]
    asked, (bound, allowed) = provider.asked.total(), proof.calls(question, options.latency, toll)
    if asked > allowed:
        problems.append(f"the provider was asked {asked:,} times, and {allowed:,} were allowed")
    if missing := question.trials - len(provider.asked_of):
        problems.append(f"{missing} trials were counted without the provider being asked")
    if scene.nodes:
        scene.nodes.settle()
    standing = scene.standing | (scene.nodes.pids() if scene.nodes else set())
    problems += proof.orphans(standing)
    blows = ", ".join(f"{count} {name}" for name, count in sorted(toll.blows.items()))
    exits = ", ".join(f"{count} {name}" for name, count in sorted(toll.exits.items()))
    faults = weather.faults()
    print(
        f"{run_id}: {'FAILED' if problems else 'ok'}  {question.trials:,} trials counted once, {asked:,} calls of "
        f"{bound:,} when losses cost what is in flight, {allowed:,} with what is not stored yet (most for one trial: "
        f"{max(provider.asked_of.values())}), {toll.seconds:.0f} s\n"
        f"  {blows}\n  drivers: {exits}; slowest SIGTERM {toll.slowest_stop:.1f} s\n"
        f"  store: {weather.requests:,} requests, {faults.total():,} spoilt ({dict(faults)})",
        flush=True,
    )
    for problem in problems:
        print(f"  WRONG: {problem}", flush=True)
    totals.update({"runs": 1, "trials": question.trials, "calls": asked, "spoilt requests": faults.total()})
    totals.update(toll.blows)
    return not problems


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="runs with different moments and victims")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--minutes", type=float, default=0, help="for all seeds together; 0: one run for each")
    parser.add_argument("--another", type=float, default=60, help="seconds that must be left to begin another run")
    parser.add_argument("--lasts", type=float, default=600, help="seconds after which a run is left in peace")
    parser.add_argument("--trials", type=int, default=600, help="cases, each asked of each model")
    parser.add_argument("--models", type=int, default=2)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that an answer takes")
    parser.add_argument("--permits", type=int, default=48, help="requests in flight of each model")
    parser.add_argument("--shard-size", type=int, default=64)
    parser.add_argument("--pool", choices=("local", "ray"), default="ray")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=1, help="workers on each node")
    parser.add_argument("--kill-every", type=float, default=4, help="seconds between two kills of a worker")
    parser.add_argument("--raylet-every", type=float, default=30)
    parser.add_argument("--raylets", type=int, help="the most that are killed in a run")
    parser.add_argument("--driver-every", type=float, default=25)
    parser.add_argument("--drivers", type=int, help="the most blows to drivers in a run")
    parser.add_argument(
        "--driver-blows",
        nargs="+",
        choices=("killed", "stopped", "napping", "passed"),
        default=Hail.driver_blows,
        help="by SIGKILL, by SIGTERM, suspended for a while, suspended and passed by another driver",
    )
    parser.add_argument("--outage-every", type=float, default=30, help="seconds between two outages of the store")
    parser.add_argument("--bad-requests", type=float, default=0.05, help="the share that is spoilt at any time")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
