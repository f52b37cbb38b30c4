"""The same trials through trunchray and its peers, side by side: Inspect AI, litellm alone, and aiohttp as the limit.

All ask the same server the same questions and check that the answer contains "42". Each writes what it writes by
default: Inspect AI a log of all samples (and, while it runs, a database of events for who looks on), trunchray parts,
commits and a report; the bare loops count and write nothing. Imports and the start of Ray are not counted. With
`--environment FOLDER`, Inspect AI gets an environment of its own there, made when absent; without, it is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from baseline import bare
from measure import Effort, Exertion, apart, table
from server import in_flight, serving
from subject import SYSTEM, Ran, drive, make_release, prompt, question, served

HERE = Path(__file__).parent
INSPECT = "0.3.285"
LATENCY = 0.5
"""Seconds, of a model that takes its time."""


@dataclass(frozen=True)
class Peer:
    """`run` is given the server's URL, how many trials there are, and how many requests may be in flight."""

    name: str
    run: Callable[[str, int, int], Effort]


def alone(base_url: str, trials: int, permits: int) -> Effort:
    """One bare aiohttp process."""
    found = bare(base_url, trials, processes=1, permits=permits)
    return Effort(found.requests, found.wall, found.cpu, found.peak, 0)


def litellm_alone(base_url: str, trials: int, permits: int) -> Effort:
    """litellm's own loop, as its documentation shows it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm  # noqa: PLC0415 - takes seconds, and only here

    left = iter(range(trials))

    async def lane() -> int:
        passed = 0
        for number in left:
            answer = await litellm.acompletion(
                model="hosted_vllm/fixed",
                api_base=base_url,
                api_key="not-a-key",
                messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt(number)}],
                max_tokens=4096,
                timeout=600,
                max_retries=0,
            )
            passed += "42" in answer.choices[0].message.content
        return passed

    async def all_lanes() -> int:
        return sum(await asyncio.gather(*(lane() for _ in range(permits))))

    exertion = Exertion()
    return exertion.done(asyncio.run(all_lanes()))


def run(
    base_url: str,
    trials: int,
    permits: int,
    *,
    litellm: bool = False,
    pool: Literal["local", "ray"] = "local",
    workers: int = 2,
) -> Ran:
    """A whole run, its report included."""
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", trials)
        spec = question(release, [served(base_url, permits=permits, litellm=litellm)])
        return drive(spec, release, out, pool, workers=workers)


def trunchray(base_url: str, trials: int, permits: int, *, litellm: bool = False) -> Effort:
    """In one process."""
    return run(base_url, trials, permits, litellm=litellm).effort


def inspect(python: Path, base_url: str, trials: int, permits: int, *flags: str) -> Effort:
    """Inspect AI in its own environment."""
    with tempfile.TemporaryDirectory() as temporary:
        cases = Path(temporary) / "cases.jsonl"
        with cases.open("w", encoding="utf-8") as file:
            for number in range(trials):
                case = {"id": f"case-{number:05d}", "system": SYSTEM, "prompt": prompt(number)}
                file.write(json.dumps(case) + "\n")
        command = [str(python), str(HERE / "peer_inspect.py"), str(cases), base_url, str(permits), f"{temporary}/logs"]
        done = subprocess.run([*command, *flags], stdout=subprocess.PIPE, check=True, cwd=temporary)
        return Effort(**json.loads(done.stdout.splitlines()[-1]))


def environment(folder: Path) -> Path:
    """The Python of an environment with Inspect AI, which is made when it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"inspect_ai=={INSPECT}", "openai"]
        subprocess.run(install, check=True)
    return python


def peers(folder: Path | None) -> Iterator[Peer]:
    """In the order of the table."""
    yield Peer("bare aiohttp, one process", alone)
    yield Peer(f"trunchray {version('trunchray')}, openai client", partial(apart, trunchray))
    yield Peer(f"litellm {version('litellm')} alone", partial(apart, litellm_alone))
    yield Peer(f"trunchray {version('trunchray')}, litellm client", partial(apart, trunchray, litellm=True))
    if folder:
        python = environment(folder)
        yield Peer(f"Inspect AI {INSPECT}", partial(inspect, python))
        yield Peer(f"Inspect AI {INSPECT}, no realtime log", lambda *given: inspect(python, *given, "--quiet"))


def compare(chosen: list[Peer], trials: int, permits: int, latency: float) -> dict[str, tuple[Effort, float]]:
    """Run them one after the other; with each, the requests in flight in the middle of its run."""
    found: dict[str, tuple[Effort, float]] = {}
    for peer in chosen:
        answered: list[float] = []
        with serving(round(latency * 1000), answered=answered) as base_url:
            effort = peer.run(base_url, trials, permits)
        assert effort.passed == trials == len(answered), (peer.name, effort.passed, len(answered))
        found[peer.name] = effort, in_flight(answered, latency)
    return found


def show(found: dict[str, tuple[Effort, float]], trials: int, permits: int, latency: float) -> None:
    """Ratios are to the first."""
    least = next(iter(found.values()))[0]
    head = ["", "trials/s", "CPU ms", "of bare", "in flight", "of permitted", "peak MB", "written KB", "kept KB"]
    rows: list[list[object]] = [
        [
            name,
            trials / effort.wall,
            effort.cpu / trials * 1e3,
            effort.cpu / least.cpu,
            flying if latency else None,
            flying / permits if latency else None,
            effort.peak,
            effort.written / trials / 1e3,
            effort.kept / trials / 1e3,
        ]
        for name, (effort, flying) in found.items()
    ]
    title = f"{trials:,} one-call trials, {latency:g} s a request, {permits} permits; CPU, written, kept: of one trial"
    table(title, head, rows)


def scaling(trials: int, permits: int) -> None:
    """From one worker to two, of bare processes and on Ray; rates are of the time from the first dispatch on."""
    rows: list[list[object]] = []
    few = max(1, trials // 10)
    for name, count, seconds in (
        ("bare aiohttp processes", trials, partial(_bare, trials, permits)),
        ("trunchray on Ray, openai client", trials, partial(_on_ray, trials, permits, litellm=False)),
        ("trunchray on Ray, litellm client", few, partial(_on_ray, few, permits, litellm=True)),
    ):
        rates: list[float] = []
        for workers in (1, 2):
            with serving() as base_url:
                rates.append(count / seconds(base_url, workers))
        rows.append([name, count, *rates, rates[1] / rates[0]])
    table("from one worker to two", ["", "trials", "one, trials/s", "two, trials/s", "ratio"], rows)


def _bare(trials: int, permits: int, base_url: str, workers: int) -> float:
    return bare(base_url, trials, processes=workers, permits=permits).wall


def _on_ray(trials: int, permits: int, base_url: str, workers: int, *, litellm: bool) -> float:
    return apart(run, base_url, trials, permits, litellm=litellm, pool="ray", workers=workers).work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--scaling-trials", type=int, default=20_000)
    parser.add_argument("--permits", type=int, default=500)
    parser.add_argument(
        "--environment", type=Path, metavar="FOLDER", help="where Inspect AI is, or is to be, installed"
    )
    parser.add_argument("--only", choices=("rate", "latency", "scaling"))
    options = parser.parse_args()
    chosen = list(peers(options.environment))
    for what, latency in (("rate", 0.0), ("latency", LATENCY)):
        if options.only in (None, what):
            show(compare(chosen, options.trials, options.permits, latency), options.trials, options.permits, latency)
    if options.only in (None, "scaling"):
        scaling(options.scaling_trials, options.permits)


if __name__ == "__main__":
    main()
