"""One-call trials, as many as two processors can do: what trunchray adds to the requests themselves."""

from __future__ import annotations

import argparse
import tempfile
from typing import Literal

from baseline import Bare, bare
from measure import apart, table
from server import serving
from subject import Ran, drive, echo, make_release, question, served


def run(pool: Literal["local", "ray"], cases: int, base_url: str | None) -> Ran:
    """A run of `cases` trials, in this process or with two workers; of a mock when there is no `base_url`."""
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", cases)
        agent = served(base_url) if base_url else echo()
        return drive(question(release, [agent]), release, out, pool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=25_000)
    parser.add_argument("--only", choices=("mock", "served"))
    options = parser.parse_args()
    ran: list[tuple[str, Ran]] = []
    bares: list[tuple[str, Bare]] = []
    if options.only != "served":
        ran += [(f"mock/echo, {pool}", apart(run, pool, options.trials, None)) for pool in ("local", "ray")]
    if options.only != "mock":
        with serving() as base_url:
            bares += [(f"bare aiohttp, {n} processes", bare(base_url, options.trials, processes=n)) for n in (1, 2)]
            ran += [(f"openai, {pool}", apart(run, pool, options.trials, base_url)) for pool in ("local", "ray")]
            bares.append(("bare aiohttp, 2 processes again", bare(base_url, options.trials)))
    show(options.trials, bares, ran)


def show(trials: int, bares: list[tuple[str, Bare]], ran: list[tuple[str, Ran]]) -> None:
    """Rates are of the time between the first dispatch and the last commit; the baseline is two bare processes."""
    best = max((each.requests / each.wall for _, each in bares), default=None)
    head = ["", "start s", "work s", "report s", "trials/s", "CPU ms", "driver ms", "Ray ms", "peak MB", "worker MB"]
    rows: list[list[object]] = []
    for name, each in bares:
        rate = each.requests / each.wall
        rows.append([name, None, each.wall, None, rate, each.cpu / trials * 1e3, None, None, None, each.peak])
    for name, each in ran:
        spent, rate = each.spent, each.trials / each.work
        cost = [seconds / trials * 1e3 for seconds in (spent.driver + spent.workers, spent.driver, spent.others)]
        rows.append(
            [name, each.start, each.work, each.report, rate, *cost, spent.driver_peak, spent.worker_peak or None]
        )
    for row in rows:
        row.append(row[4] / best if best and "mock" not in str(row[0]) else None)  # pyright: ignore[reportOperatorIssue]
    table(f"{trials:,} one-call trials; CPU is per trial, driver and workers", [*head, "of best bare"], rows)


if __name__ == "__main__":
    main()
