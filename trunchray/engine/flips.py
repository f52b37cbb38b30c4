"""Setting stored verdicts against those from before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from trunchray.adapters import disk, parts
from trunchray.adapters.runs import RunFolder
from trunchray.core.flips import FlipReport, FlipTally, Graded
from trunchray.core.plan import Plan
from trunchray.engine.aggregate import counted_tables

FILE = "flips.jsonl"

Earlier = Mapping[tuple[int, str], Graded]
"""What grading had made of the trials of one model, by attempt and case."""


def graded_rows(
    plan: Plan, folder: RunFolder, agents: Collection[str], shards: Collection[str] | None = None
) -> Iterator[Graded]:
    """What grading made of the counted rows of some agents, or of some shards of theirs."""
    for _, rows, _ in counted_tables(plan, folder, agents, shards):
        yield from parts.graded(rows)


def write_flips(
    plan: Plan,
    folder: RunFolder,
    agents: Collection[str],
    earlier: Callable[[str], Earlier],
    shards: Collection[str] | None = None,
) -> FlipReport:
    """Set the counted rows of some agents, or of some shards of theirs, against what they were `earlier`, by model.

    All flips are stored with the report, one JSON object a line.
    """
    tally = FlipTally()
    with disk.scratch() as temporary:
        path = temporary / FILE
        with path.open("w", encoding="utf-8") as file:
            for agent in agents:
                for flip in tally.add(graded_rows(plan, folder, [agent], shards), earlier(agent)):
                    file.write(flip.model_dump_json() + "\n")
        folder.write_report(FILE, path)
    return tally.report()
