"""How busy an evaluation keeps its `concurrency`: a thousand cases of a function that only sleeps.

Busy is the time that runs took altogether, over `concurrency` times the time from the first run's start to the last
one's end.

    python benchmarks/throughput/evaluation.py [--cases 1000] [--concurrency 50] [--seconds 0.5]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from trunchray import RunRecord, evaluate


class Sleeper:
    """Sleeps, and writes down when it began and ended: to one file a process, or that would be half of the work."""

    def __init__(self, seconds: float, folder: str) -> None:
        self._seconds, self._folder = seconds, folder
        self._file: int | None = None

    async def run(self, number: int) -> int:
        began = time.time()
        await asyncio.sleep(self._seconds)
        self._note(began)
        return number

    def _note(self, began: float) -> None:
        if self._file is None:
            self._file = os.open(f"{self._folder}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._file, f"{began} {time.time()}\n".encode())


def is_number(r: RunRecord) -> bool:
    return r.output == r.input


def busy(cases: int, concurrency: int, seconds: float, pool: str) -> tuple[float, float]:
    """The share of `concurrency` that was in use, from 0 to 1, and the seconds that the whole call took."""
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder, "marks")
        marks.mkdir()
        began = time.perf_counter()
        evaluate(
            name="sleeper",
            task=Sleeper(seconds, str(marks)).run,
            data=[{"input": number} for number in range(cases)],
            scorers={"number": is_number},
            concurrency=concurrency,
            pool=pool,
            out=f"{folder}/runs",
            quiet=True,
        )
        took = time.perf_counter() - began
        lines = [line for path in marks.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
        spans = [(float(start), float(end)) for start, end in map(str.split, lines)]
    span = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(end - start for start, end in spans) / concurrency / span, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--pool", choices=["local", "ray"], action="append")
    options = parser.parse_args()
    for pool in options.pool or ["local", "ray"]:
        share, took = busy(options.cases, options.concurrency, options.seconds, pool)
        print(f"{pool:<6} {share:.3f} of {options.concurrency} places busy; the whole call took {took:.1f} s")


if __name__ == "__main__":
    main()
