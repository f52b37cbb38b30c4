"""A provider that limits its rate: how much of it is used by four workers on two models, and how much is refused."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Literal

from aiohttp import web
from measure import apart, table
from subject import drive, make_release, question

from trunchray.adapters.models.rate_limit import Limiter, RateLimit
from trunchray.core.agent import ModelAgent, Pacing, Quota
from trunchray.engine.cluster import ray

LATENCY = 0.5
SETTLING = 30.0
"""Seconds that are not counted: until a limit that nobody told is known."""
ANSWER = {
    "id": "r",
    "model": "limited",
    "choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 250, "completion_tokens": 2},
}


@dataclass(frozen=True)
class Asked:
    """Every request that came: Unix time, and whether it was refused."""

    times: list[tuple[float, bool]]

    def settled(self) -> tuple[float, float]:
        """Requests answered a second, and the share refused, after the time to settle."""
        first, last = self.times[0][0] + SETTLING, self.times[-1][0]
        later = [refused for at, refused in self.times if at >= first]
        return (len(later) - sum(later)) / (last - first), sum(later) / len(later)

    @property
    def refused(self) -> int:
        """All that were."""
        return sum(refused for _, refused in self.times)


def _serve(ready: Connection, per_minute: float, pause: float, *, names_wait: bool) -> None:
    """Answer until something is sent; `pause`: the 101st request is refused for so many seconds, and nothing else."""
    times: list[tuple[float, bool]] = []

    async def main() -> None:
        limiter = Limiter(RateLimit(per_minute, names_wait)) if per_minute else None

        async def answer(_request: web.Request) -> web.Response:
            refused, wait = limiter.refuses() if limiter else (len(times) == 100, round(pause))
            times.append((time.time(), refused))
            if refused:
                return web.json_response({}, status=429, headers={} if wait is None else {"Retry-After": str(wait)})
            await asyncio.sleep(LATENCY)
            return web.json_response(ANSWER)

        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        ready.send(runner.addresses[0][1])
        await asyncio.to_thread(ready.recv)
        await runner.cleanup()

    asyncio.run(main())
    ready.send(times)


@contextmanager
def provider(per_minute: float = 0, *, names_wait: bool = True, pause: float = 0) -> Generator[tuple[str, list[Asked]]]:
    """A base URL, and what was asked, once the block has ended."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(
        target=_serve, args=(there, per_minute, pause), kwargs={"names_wait": names_wait}
    )
    process.start()
    asked: list[Asked] = []
    yield f"http://127.0.0.1:{here.recv()}/v1", asked
    here.send(None)
    asked.append(Asked(here.recv()))
    process.join()


def run(pool: Literal["local", "ray"], trials: int, base_url: str, told: float | None, permits: int) -> float:
    """Seconds of work of four workers on two models of one quota."""
    quota = Quota(name="shared", requests_per_minute=told)
    agents = [
        ModelAgent(
            name=name,
            model=f"openai-compatible/{name}",
            base_url=base_url,
            pacing=Pacing(max_in_flight=permits),
            quota=quota,
        )
        for name in ("first", "second")
    ]
    if pool == "ray":
        # More workers than processors, which mostly wait.
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", trials // 2)
        return drive(question(release, agents), release, out, pool, workers=4).work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--requests-per-minute", type=float, default=600)
    parser.add_argument("--pool", choices=("local", "ray"), default="ray")
    parser.add_argument("--only", choices=("told", "untold", "silent", "pause"))
    options = parser.parse_args()
    limit = options.requests_per_minute
    shown: list[list[object]] = []
    for case in ("told", "untold", "silent"):
        if options.only in (None, case):
            with provider(limit, names_wait=case != "silent") as (base_url, asked):
                told = limit if case == "told" else None
                work = apart(run, options.pool, options.trials, base_url, told, 128)
            rate, refused = asked[0].settled()
            shown.append([case, work, 60 * rate, 60 * rate / limit, f"{refused:.2%}", asked[0].refused])
    if shown:
        title = f"{limit:g} requests a minute allowed, {options.trials:,} trials, {options.pool}; after {SETTLING:g} s"
        table(title, ["the limit is", "work s", "answered/min", "of allowed", "refused", "refused in all"], shown)
    if options.only in (None, "pause"):
        show_pause(options.pool, 60.0)


def show_pause(pool: Literal["local", "ray"], seconds: float) -> None:
    """How long after a Retry-After requests still come."""
    with provider(pause=seconds) as (base_url, asked):
        apart(run, pool, 1000, base_url, None, 32)
    refused = next(at for at, bad in asked[0].times if bad)
    after = [at - refused for at, _ in asked[0].times if refused < at < refused + seconds - 1]
    again = min(at - refused for at, _ in asked[0].times if at >= refused + seconds - 1)
    row: list[object] = [pool, len(after), max(after, default=0.0), again]
    table(f"one Retry-After of {seconds:g} s", ["", "requests after it", "the last after s", "the next after s"], [row])


if __name__ == "__main__":
    main()
