"""From committed parts to the report: stream the counted rows once, in an order that no history can change."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from trunchray.adapters import disk, parts
from trunchray.adapters.runs import READERS, RunFolder
from trunchray.core.plan import Plan, Shard
from trunchray.core.receipt import Receipt
from trunchray.core.report import Planned, Report
from trunchray.core.report_markdown import report_markdown
from trunchray.core.tally import NO_ANSWER, NOT_REACHED, Tally
from trunchray.engine.progress import question
from trunchray.engine.shard_rows import shard_rows
from trunchray.engine.stored import counting_commits
from trunchray.errors import Interrupted
from trunchray.pages.report.page import report_page


@dataclass(frozen=True)
class Aggregate:
    """The report of the counted rows, and the shards with parts that are gone or unreadable, and which parts."""

    report: Report
    damaged: dict[str, list[str]]


def aggregate(
    plan: Plan,
    folder: RunFolder,
    *,
    missing: str | None = None,
    closed: Mapping[str, str] | None = None,
    stop: Event | None = None,
) -> Aggregate:
    """Count every committed row of the plan once, and store them all as `report/results.parquet`.

    Rows are ordered by agent, attempt and the plan's order of cases, whoever ran them and whenever. `missing` says why
    trials have no row, where that is not the usual reason, and `closed` why those of a model have none.

    Raises:
        Interrupted: `stop` was set meanwhile; nothing is lost but the time.
    """
    tally = Tally(Planned.of(plan))
    damaged: dict[str, list[str]] = {}
    found = _committed(plan, folder)
    with disk.scratch() as temporary, ThreadPoolExecutor(READERS) as threads:
        path = temporary / "results.parquet"
        with parts.ResultsFile(path) as results:
            for shard, rows, bad in _read_ahead(found, folder, threads):
                if stop and stop.is_set():
                    raise Interrupted(f"stopped while counting; `trunchray report {folder.uri}` counts again")
                if bad:
                    damaged[shard.id] = bad
                results.add(rows)
                if span := parts.span(rows):
                    tally.during(*span)
                for row in parts.counted(rows):
                    tally.add(row)
        if damaged:
            folder.write_report("results.parquet", path)
        else:
            folder.write_results(path, question(plan.spec))
    usual = NO_ANSWER if plan.spec.regrades else NOT_REACHED
    return Aggregate(tally.report(closed, otherwise=missing or usual), damaged)


def tally_rows(
    plan: Plan, folder: RunFolder, planned: Planned, agents: Collection[str]
) -> tuple[Tally, dict[str, list[str]]]:
    """Count the committed rows of some agents and store nothing; also gives the parts that cannot be read, by shard."""
    tally = Tally(planned)
    damaged: dict[str, list[str]] = {}
    for shard, rows, bad in counted_tables(plan, folder, agents):
        if bad:
            damaged[shard.id] = bad
        for row in parts.counted(rows):
            tally.add(row)
    return tally, damaged


def counted_tables(
    plan: Plan, folder: RunFolder, agents: Collection[str], shards: Collection[str] | None = None
) -> Iterator[tuple[Shard, parts.Rows, list[str]]]:
    """The committed rows of some agents, or of some shards of theirs: by agent, attempt and the plan's order of cases.

    Beside them the paths of parts that are gone or unreadable, whose rows are left out.
    """
    found = [each for each in _committed(plan, folder, agents) if shards is None or each[0].id in shards]
    with ThreadPoolExecutor(READERS) as threads:
        yield from _read_ahead(found, folder, threads)


def publish(report: Report, folder: RunFolder) -> Report:
    """Store what people and other tools read."""
    folder.write_report("summary.json", report.to_json())
    folder.write_report("report.md", report_markdown(report).encode())
    folder.write_report("report.html", report_page(report))
    return report


def _committed(plan: Plan, folder: RunFolder, agents: Collection[str] | None = None) -> list[tuple[Shard, Receipt]]:
    """Shards, of all agents or of some, with a commit that counts: by agent, attempt and the plan's order of cases."""
    commits = counting_commits(plan, folder, agents)
    place = {agent.name: number for number, agent in enumerate(plan.spec.agents)}
    # The plan has the shards of one agent and attempt in order, and sorting keeps it.
    shards = sorted(plan.shards, key=lambda shard: (place[shard.agent.name], shard.attempt))
    return [(shard, commits[shard.id]) for shard in shards if shard.id in commits]


_Read = tuple[Shard, parts.Rows, list[str]]


def _read_ahead(
    found: Iterable[tuple[Shard, Receipt]], folder: RunFolder, threads: ThreadPoolExecutor
) -> Iterator[_Read]:
    """Each shard with its rows, in the given order, the next ones being fetched meanwhile."""
    ahead: deque[Future[_Read]] = deque()
    for shard, receipt in found:
        ahead.append(threads.submit(_read, shard, receipt, folder))
        if len(ahead) == READERS:
            yield ahead.popleft().result()
    for future in ahead:
        yield future.result()


def _read(shard: Shard, receipt: Receipt, folder: RunFolder) -> _Read:
    return shard, *shard_rows(shard, receipt, folder)
