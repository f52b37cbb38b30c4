"""What processes use, read from Linux's /proc, and tables of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """`cpu` in seconds, that of ended children included; `peak` is the most memory it ever had, in MB."""

    pid: int
    parent: int
    name: str
    cpu: float
    peak: float


@dataclass(frozen=True)
class Usage:
    """Processor time in seconds and peak memory in MB: of this process, of the workers it started, and of the rest."""

    driver: float
    workers: float
    others: float
    driver_peak: float
    worker_peak: float
    """Of the largest."""

    def since(self, before: Usage) -> Usage:
        """The time spent since `before`; peaks stay."""
        driver, workers, others = (
            self.driver - before.driver,
            self.workers - before.workers,
            self.others - before.others,
        )
        return Usage(driver, workers, others, self.driver_peak, self.worker_peak)


def usage() -> Usage:
    """Of this process and everything below it. Ray's actors and Deno's processes are workers; Ray's own are others."""
    below = list(_below(os.getpid(), _all()))
    workers = [process for process in below if process.name.startswith("ray::WorkerActor") or "deno" in process.name]
    others = [process for process in below if process not in workers]
    own = _read(os.getpid())
    return Usage(
        driver=own.cpu,
        workers=sum(process.cpu for process in workers),
        others=sum(process.cpu for process in others),
        driver_peak=own.peak,
        worker_peak=max((process.peak for process in workers), default=0),
    )


@dataclass(frozen=True)
class Effort:
    """What answering all trials took a peer, from when it was ready until its results were stored."""

    passed: int
    """Trials whose answer was right, as it counted them."""
    wall: float
    """Seconds."""
    cpu: float
    """Seconds, in all of its processes."""
    peak: float
    """MB, of the largest process."""
    written: int
    """Bytes written to files, as often as they were."""
    kept: int = 0
    """Bytes of files that it left."""


class Exertion:
    """Measures an effort from when it is made until `done`, in this process and all below it."""

    def __init__(self) -> None:
        self._usage, self._written, self._began = usage(), _written(), time.monotonic()

    def spent(self) -> Usage:
        """What was used so far."""
        return usage().since(self._usage)

    def done(self, passed: int, folder: str | None = None) -> Effort:
        """The effort, of which `folder` holds what is left."""
        spent = self.spent()
        files = Path(folder).rglob("*") if folder else ()
        return Effort(
            passed=passed,
            wall=time.monotonic() - self._began,
            cpu=spent.driver + spent.workers + spent.others,
            peak=max(spent.driver_peak, spent.worker_peak),
            written=_written() - self._written,
            kept=sum(file.stat().st_size for file in files if file.is_file()),
        )


def _written() -> int:
    """Bytes that this process has ever passed to files; what is sent through sockets is not among them."""
    return int(Path("/proc/self/io").read_text().partition("wchar: ")[2].split()[0])


def apart(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` in a fresh process, so that peaks and caches are its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print figures: the first column to the left, numbers to the right."""
    shown = [[*head], *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(head))]
    load = os.getloadavg()[0]
    print(f"\n{title}  ({os.cpu_count()} processors, load {load:.1f} at the end)")
    for row in shown:
        print(
            "  ".join(
                cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


def result(what: str, budget: str, measured: str, *, met: bool) -> None:
    """Print what was found against a budget, as a row of a Markdown table."""
    print(f"| {what} | {budget} | {measured} | {'yes' if met else 'no'} |")


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return "" if cell is None else str(cell)


def _all() -> dict[int, Process]:
    found: dict[int, Process] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = _read(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def _read(pid: int) -> Process:
    place = Path("/proc") / str(pid)
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    status = (place / "status").read_text()
    peak = status.partition("VmHWM:")[2].split(maxsplit=1)
    command = (place / "cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")
    cpu = sum(map(int, fields[11:15])) / _TICK
    return Process(pid, int(fields[1]), command, cpu, int(peak[0]) / 1024 if peak else 0)


def _below(root: int, processes: dict[int, Process]) -> Iterator[Process]:
    for process in processes.values():
        if process.parent == root:
            yield process
            yield from _below(process.pid, processes)
