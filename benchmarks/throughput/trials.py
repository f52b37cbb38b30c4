"""What trunchray adds to the requests themselves: one-call trials, as many as two processors can do, and dearer ones.

The dearer ones are asked through litellm, or call a tool twice before they answer. There are fewer of them.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Literal

from baseline import Bare, bare
from measure import apart, result, table
from server import MESSAGE, conversing, serving
from subject import Ran, drive, echo, make_release, question, served

WHERE = 0.2
"""Milliseconds that a request takes a bare process on the machine that budgets were written for."""


def run(pool: Literal["local", "ray"], cases: int, base_url: str | None) -> Ran:
    """A run of `cases` trials, in this process or with two workers; of a mock when there is no `base_url`."""
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", cases)
        agent = served(base_url) if base_url else echo()
        return drive(question(release, [agent]), release, out, pool)


def run_dear(base_url: str, cases: int, model: str, *, litellm: bool, tools: bool) -> Ran:
    """A run of `cases` trials in this process, with fewer requests in flight."""
    with tempfile.TemporaryDirectory() as out:
        release = make_release(f"{out}/releases", cases, tools=tools)
        agent = served(base_url, permits=32, model=model, litellm=litellm)
        return drive(question(release, [agent]), release, out, "local")


def dear(trials: int, tooled: int) -> None:
    """Ratios are to a bare aiohttp process; what tools cost is mostly the process that each trial has for them."""
    shown: list[list[object]] = []
    lines: list[tuple[str, float, float]] = []
    with serving() as base_url, serving(reply=MESSAGE) as anthropic, conversing() as script:
        least = bare(base_url, trials * 10, processes=1)
        cost = least.cpu / least.requests * 1e3
        shown.append(["bare aiohttp", least.requests, cost, 1.0, least.peak])
        for name, url, count, model, litellm, tools in (
            ("openai, one call", base_url, trials * 10, "vllm/fixed", False, False),
            (
                "litellm, one call, Anthropic's protocol",
                anthropic.removesuffix("/v1"),
                trials,
                "anthropic/fixed",
                True,
                False,
            ),
            ("litellm, one call, OpenAI's protocol", base_url, trials, "vllm/fixed", True, False),
            ("openai, three steps with a tool", script, tooled, "vllm/fixed", False, True),
            ("litellm, three steps with a tool", script, tooled, "vllm/fixed", True, True),
        ):
            ran = apart(run_dear, url, count, model, litellm=litellm, tools=tools)
            each = (ran.spent.driver + ran.spent.workers + ran.spent.others) / count * 1e3
            shown.append([name, count, each, each / cost, ran.spent.driver_peak])
            if litellm and not tools:
                lines.append((f"CPU a trial: {name}", each, cost))
    table(
        "trials in one process; CPU is per trial, tools' processes included",
        ["", "trials", "CPU ms", "of bare", "peak MB"],
        shown,
    )
    print()
    for what, each, cost in lines:
        costs(what, each, cost, most=6.0)


def costs(what: str, each: float, bare: float, *, most: float) -> None:
    """Found against a budget: milliseconds a trial, which may be `most` where a bare process takes `WHERE`."""
    budget = f"≤ {most:g} ms where bare aiohttp takes {WHERE:g} ({most / WHERE:g}×)"
    result(what, budget, f"{each:.2f} ms, {each / bare:.1f}× its {bare:.2f}", met=each / bare <= most / WHERE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=25_000)
    parser.add_argument("--litellm", type=int, default=1000, help="trials through litellm")
    parser.add_argument("--tooled", type=int, default=100, help="trials with tools")
    parser.add_argument("--only", choices=("mock", "served", "dear"))
    options = parser.parse_args()
    if options.only in (None, "dear"):
        dear(options.litellm, options.tooled)
    if options.only == "dear":
        return
    ran: list[tuple[str, Ran]] = []
    bares: list[tuple[str, Bare]] = []
    if options.only != "served":
        ran += [(f"mock/echo, {pool}", apart(run, pool, options.trials, None)) for pool in ("local", "ray")]
    if options.only != "mock":
        with serving() as base_url:
            bares.append(("bare aiohttp, 1 process", bare(base_url, options.trials, processes=1)))
            for pool in ("local", "ray"):
                bares.append(("bare aiohttp, 2 processes", bare(base_url, options.trials)))
                ran.append((f"openai, {pool}", apart(run, pool, options.trials, base_url)))
            bares.append(("bare aiohttp, 2 processes", bare(base_url, options.trials)))
    show(options.trials, bares, ran)


def show(trials: int, bares: list[tuple[str, Bare]], ran: list[tuple[str, Ran]]) -> None:
    """Rates are of the time between the first dispatch and the last commit. Ratios are to the bare processes."""
    best = max((each.requests / each.wall for _, each in bares), default=None)
    least = sum(each.cpu / trials * 1e3 for _, each in bares) / len(bares) if bares else None
    head = ["", "start s", "work s", "report s", "trials/s", "of best", "CPU ms", "of mean"]
    head += ["driver ms", "Ray ms", "peak MB", "worker MB"]
    shown: list[list[object]] = []

    def add(name: str, start: float | None, work: float, report: float | None, cpu: float, more: list[object]) -> None:
        rate, cost = trials / work, cpu / trials * 1e3
        ratios = [rate / best, cost / least] if best and least and "mock" not in name else [None, None]
        shown.append([name, start, work, report, rate, ratios[0], cost, ratios[1], *more])

    for name, each in bares:
        add(name, None, each.wall, None, each.cpu, [None, None, None, each.peak])
    for name, each in ran:
        spent = each.spent
        apiece: list[object] = [spent.driver / trials * 1e3, spent.others / trials * 1e3]
        peaks: list[object] = [spent.driver_peak, spent.worker_peak or None]
        add(name, each.start, each.work, each.report, spent.driver + spent.workers, apiece + peaks)
    table(f"{trials:,} one-call trials; CPU is per trial, driver and workers", head, shown)
    print()
    for name, each in ran:
        if best and least and "mock" not in name:
            cpu = (each.spent.driver + each.spent.workers) / trials * 1e3
            costs(f"CPU a one-call trial, {name}", cpu, least, most=0.5)
            if "ray" in name:
                share = trials / each.work / best
                result(f"rate of two bare processes, {name}", "≥ 50 %", f"{share:.0%}", met=share >= 0.5)
                peak = each.spent.worker_peak
                result(f"worker memory, {name}", "≤ 450 MB", f"{peak:.0f} MB", met=peak <= 450)


if __name__ == "__main__":
    main()
