"""A slow model: how many of the requests that may be in flight are, in the middle of the run."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from baseline import bare
from measure import apart, result, table
from server import in_flight, serving
from subject import drive, make_release, question, rows, served


def run(pool: Literal["local", "ray"], cases: int, permits: int, base_url: str) -> float:
    """How many trials were asking, on average in the middle half of a run."""
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
    return _overlap(spans, low, high) / (high - low)


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
    permits, latency = options.permits, options.latency
    shown: list[list[object]] = []
    for processes in (1, 2):
        answered: list[float] = []
        with serving(round(latency * 1000), answered=answered) as base_url:
            bare(base_url, options.trials, processes=processes, permits=permits)
        found = in_flight(answered, latency)
        shown.append([f"bare aiohttp, {processes} processes", found, found / permits, None])
    for pool in ("local", "ray"):
        answered = []
        with serving(round(latency * 1000), answered=answered) as base_url:
            in_trials = apart(run, pool, options.trials, permits, base_url)
        found = in_flight(answered, latency)
        shown.append([pool, found, found / permits, in_trials / permits])
    title = f"{permits} permits, {latency:g} s a request, {options.trials:,} trials; middle half"
    table(title, ["", "in flight at the server", "of permitted", "trials asking, of permitted"], shown)
    print()
    for name, _, share, _ in shown[2:]:
        assert isinstance(share, float)
        what = f"in flight ÷ permitted, {latency:g} s, {permits} permits, {name}"
        result(what, "≥ 0.9", f"{share:.2f}", met=share >= 0.9)


if __name__ == "__main__":
    main()
