"""A slow model: how many of the requests that may be in flight are, in the middle of the run."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from baseline import bare
from measure import apart, table
from server import serving
from subject import drive, make_release, question, rows, served


def run(pool: Literal["local", "ray"], cases: int, permits: int, latency: float, base_url: str) -> tuple[float, float]:
    """Requests in flight in the middle of a run: as the server has them, and as the trials do."""
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", cases)
        drive(question(release, [served(base_url, permits=permits)]), release, out, pool)
        times = rows(out, ["started_at", "latency"])
        model = [latency["model"] for latency in times["latency"]]
        spans = [
            (_seconds(began), _seconds(began) + took) for began, took in zip(times["started_at"], model, strict=True)
        ]
    first, last = min(began for began, _ in spans), max(ended for _, ended in spans)
    low, high = first + (last - first) * 0.25, first + (last - first) * 0.75
    answered = sum(low <= ended < high for _, ended in spans)
    return answered * latency / (high - low), _overlap(spans, low, high) / (high - low)


def _overlap(spans: Iterable[tuple[float, float]], low: float, high: float) -> float:
    return sum(max(0.0, min(ended, high) - max(began, low)) for began, ended in spans)


def _seconds(instant: datetime) -> float:
    return instant.timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--permits", type=int, default=500)
    parser.add_argument("--latency", type=float, default=0.5, metavar="SECONDS")
    options = parser.parse_args()
    shown: list[list[object]] = []
    with serving(round(options.latency * 1000)) as base_url:
        for processes in (1, 2):
            baseline = bare(base_url, options.trials, processes=processes, permits=options.permits)
            at_server = baseline.requests * options.latency / baseline.wall
            name = f"bare aiohttp, {processes} processes, whole run"
            shown.append([name, at_server, at_server / options.permits, None])
    for pool in ("local", "ray"):
        with serving(round(options.latency * 1000)) as base_url:
            at_server, in_trials = apart(run, pool, options.trials, options.permits, options.latency, base_url)
        shown.append([pool, at_server, at_server / options.permits, in_trials / options.permits])
    title = f"{options.permits} permits, {options.latency:g} s a request, {options.trials:,} trials; middle half"
    table(title, ["", "in flight at the server", "of permitted", "trials asking, of permitted"], shown)


if __name__ == "__main__":
    main()
