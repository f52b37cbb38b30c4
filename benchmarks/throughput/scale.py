"""What a driver does for runs of 5,000, 50,000 and 500,000 trials: whether a trial of a large run costs it more.

The workers make the answers up (see `made_up.py`): nobody is asked. Measured are planning, dispatch and commits, then
the report, then how soon a further model's first shard is dispatched in a run of which all else is finished.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from made_up import MadeUpPool, stored_spec
from measure import apart, result, table, usage
from subject import carry_out, echo, make_release, question

from trunchray.adapters.releases import open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.ledger import Dispatch
from trunchray.core.run import extend
from trunchray.engine.run import Pool

MODELS = 20
MB = 1e6


@dataclass(frozen=True)
class Driven:
    """What the driver used, in seconds and megabytes: until its pool opened, until the last commit, for the report."""

    trials: int
    plan_cpu: float
    work: float
    """As long as the workers take."""
    work_cpu: float
    work_peak: float
    report: float
    report_cpu: float
    report_peak: float

    def each(self, seconds: float) -> float:
        """Microseconds a trial."""
        return seconds / self.trials * 1e6


@dataclass(frozen=True)
class Finished:
    """A run that was read again; seconds and megabytes."""

    reading: float
    """To hash and decode every part one after the other, which is the least that a report can take."""
    stored: int
    """Bytes of the parts."""
    results: int
    """Bytes of the report's table."""
    resume: float
    """From the start of a command that adds a model until the model's first dispatch."""
    resume_peak: float


class _Watched(MadeUpPool):
    """Remembers when it was opened and when it was given up, and what the driver had used by then."""

    def __init__(self, run_uri: str) -> None:
        super().__init__(run_uri)
        self.opened = time.monotonic(), time.process_time()

    def close(self) -> None:
        self.closed, self.peak = (time.monotonic(), time.process_time()), usage().driver_peak
        super().close()


def drive(run_uri: str) -> Driven:
    """Run all that is planned, as `trunchray run` does."""
    began = time.process_time()
    pools: list[_Watched] = []

    def open_pool() -> Pool:
        pools.append(_Watched(run_uri))
        return pools[-1]

    spec = stored_spec(run_uri)
    report = carry_out(spec, open_release(spec.release), run_uri, open_pool)
    assert report.complete, report.not_run
    (opened, opened_cpu), (closed, closed_cpu) = pools[0].opened, pools[0].closed
    return Driven(
        trials=report.planned,
        plan_cpu=opened_cpu - began,
        work=closed - opened,
        work_cpu=closed_cpu - opened_cpu,
        work_peak=pools[0].peak,
        report=time.monotonic() - closed,
        report_cpu=time.process_time() - closed_cpu,
        report_peak=usage().driver_peak,
    )


class _DispatchedError(Exception):
    """The first shard has reached a worker, which is all that was to be seen."""


class _Stopwatch(MadeUpPool):
    def submit(self, work: Dispatch) -> None:
        self.reached = time.monotonic()
        raise _DispatchedError


def resume(run_uri: str) -> tuple[float, float]:
    """Seconds until a shard of an added model is dispatched, and peak megabytes."""
    began = time.monotonic()
    pools: list[_Stopwatch] = []

    def open_pool() -> Pool:
        pools.append(_Stopwatch(run_uri))
        return pools[-1]

    spec = stored_spec(run_uri)
    whole = extend(spec, spec.model_copy(update={"agents": (echo("added", seed=MODELS),)}))
    with suppress(_DispatchedError):
        carry_out(whole, open_release(spec.release), run_uri, open_pool)
    took, peak = pools[0].reached - began, usage().driver_peak
    RunFolder(run_uri).freeze(spec)
    return took, peak


def read_all(run_uri: str) -> tuple[float, int]:
    """Seconds to hash and decode every part, and their bytes."""
    began, size = time.monotonic(), 0
    for path in Path(run_uri).glob("parts/*/*.parquet"):
        content = path.read_bytes()
        hashlib.sha256(content).hexdigest()
        pq.read_table(path)
        size += len(content)
    return time.monotonic() - began, size


def measure(trials: int) -> tuple[Driven, Finished]:
    """All about one run of so many trials."""
    with tempfile.TemporaryDirectory() as temporary:
        release = make_release(f"{temporary}/releases", trials // MODELS)
        run_uri = f"{temporary}/run"
        RunFolder(run_uri).freeze(question(release, [echo(f"m{n}", seed=n) for n in range(MODELS)]))
        driven = apart(drive, run_uri)
        reading, stored = apart(read_all, run_uri)
        # The quicker of two, since the first also warms the disk's cache.
        took, peak = min(apart(resume, run_uri) for _ in range(2))
        results = (Path(run_uri) / "report" / "results.parquet").stat().st_size
    return driven, Finished(reading, stored, results, took, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[5_000, 50_000, 500_000], metavar="N")
    options = parser.parse_args()
    measured = [measure(trials) for trials in options.trials]
    table(
        f"{MODELS} models, workers that make rows up; the driver's processor time is in microseconds a trial",
        ["trials", "work s", "plan us", "work us", "peak MB", "report s", "report us", "peak MB"],
        [
            [
                f"{driven.trials:,}",
                driven.work,
                driven.each(driven.plan_cpu),
                driven.each(driven.work_cpu),
                driven.work_peak,
                driven.report,
                driven.each(driven.report_cpu),
                driven.report_peak,
            ]
            for driven, _ in measured
        ],
    )
    table(
        "the same runs, finished; report and first dispatch of one more model",
        ["trials", "parts MB", "results MB", "read parts s", "report s", "of reading", "dispatch s", "peak MB"],
        [
            [
                f"{driven.trials:,}",
                found.stored / MB,
                found.results / MB,
                found.reading,
                driven.report,
                driven.report / found.reading,
                found.resume,
                found.resume_peak,
            ]
            for driven, found in measured
        ],
    )
    show_results(*measured[0], *measured[-1])


def show_results(first: Driven, _: Finished, last: Driven, found: Finished) -> None:
    """What was found against each budget."""
    small, large = first.each(first.plan_cpu + first.work_cpu), last.each(last.plan_cpu + last.work_cpu)
    what = f"{last.trials:,} trials"
    print()
    result(
        f"driver, CPU a trial: {first.trials:,} and {what}",
        "does not grow",
        f"{small:.0f} µs, {large:.0f} µs",
        met=large <= 1.1 * small,
    )
    result(f"driver memory, {what} planned", "≤ 600 MB", f"{last.work_peak:.0f} MB", met=last.work_peak <= 600)
    result(f"resume with {what} finished", "≤ 10 s", f"{found.resume:.1f} s", met=found.resume <= 10)
    ends = last.report <= 60 and last.report_peak <= 1500
    took = f"{last.report:.0f} s, {last.report_peak:.0f} MB"
    result(f"aggregate {what}", "≤ 60 s, ≤ 1.5 GB", took, met=ends)


if __name__ == "__main__":
    main()
