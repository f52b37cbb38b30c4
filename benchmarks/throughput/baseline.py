"""The least that Python can do: bare aiohttp processes that send the same requests and parse the answers."""

from __future__ import annotations

import asyncio
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from typing import Any

import aiohttp
from pydantic_core import from_json, to_json
from subject import SYSTEM, prompt

_barrier: Barrier | None = None


@dataclass(frozen=True)
class Bare:
    """What the requests took: `wall` seconds together, `cpu` seconds in all processes, `peak` MB in the largest."""

    requests: int
    wall: float
    cpu: float
    peak: float


def bare(base_url: str, requests: int, *, processes: int = 2, permits: int = 256) -> Bare:
    """Send `requests` requests from `processes` processes, with at most `permits` in flight in all."""
    context = get_context("spawn")
    barrier = context.Barrier(processes)
    with ProcessPoolExecutor(processes, context, initializer=_take, initargs=(barrier,)) as pool:
        share, places = permits // processes, range(processes)
        parts = list(
            pool.map(
                _send,
                places,
                [base_url] * processes,
                [range(n, requests, processes) for n in places],
                [share] * processes,
            )
        )
    began, ended = min(part[0] for part in parts), max(part[1] for part in parts)
    return Bare(requests, ended - began, sum(part[2] for part in parts), max(part[3] for part in parts))


def _take(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603 - how a pool's processes share a barrier
    _barrier = barrier


def _send(place: int, base_url: str, numbers: range, permits: int) -> tuple[float, float, float, float]:
    assert _barrier
    _barrier.wait()
    began, used = time.time(), time.process_time()
    asyncio.run(_send_all(f"{base_url}/chat/completions", numbers, permits))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return began, time.time(), time.process_time() - used, peak


async def _send_all(url: str, numbers: range, permits: int) -> None:
    left = iter(numbers)

    async def lane(session: aiohttp.ClientSession) -> None:
        for number in left:
            async with session.post(url, data=_body(number)) as response:
                answer: Any = from_json(await response.read())
                assert answer["choices"][0]["message"]["content"]

    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    connector = aiohttp.TCPConnector(limit=permits)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(*(lane(session) for _ in range(permits)))


def _body(number: int) -> bytes:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt(number)}]
    return to_json({"model": "fixed", "messages": messages, "max_tokens": 4096})
