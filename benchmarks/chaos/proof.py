"""What has to be true of a run after all that happened to it."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import processes
import pyarrow.parquet as pq
from ordeal import GOVERNOR, WORKERS, Toll
from question import Question, answer, verdict

from trunchray.adapters import parts
from trunchray.adapters.parts import MEASURED
from trunchray.adapters.runs import RunFolder
from trunchray.core.digest import sha256
from trunchray.engine.shelf import FLUSH_SECONDS
from trunchray.errors import StoreError

GONE_WITHIN = 60.0
"""Seconds after which a process that nobody needs any more is an orphan."""


def rows(uri: str) -> list[dict[str, Any]]:
    """The counted rows of a run, without what two runs of the same work may measure differently."""
    content = RunFolder(uri).store.read("report/results.parquet")
    found = pq.read_table(io.BytesIO(content)).to_pylist()
    return [{name: value for name, value in row.items() if name not in MEASURED} for row in found]


_OF_ONE_RUN = frozenset({"latency", "started_at", "ended_at", "run", "run_id", "uri"})


def summary(text: str) -> object:
    """What a command printed, without what is measured and without the name of the run."""

    def strip(value: object) -> object:
        match value:
            case dict():
                return {key: strip(item) for key, item in value.items() if key not in _OF_ONE_RUN}
            case list():
                return [strip(item) for item in value]
            case _:
                return value

    return strip(json.loads(text))


def wrong(question: Question, uri: str, calm: tuple[list[dict[str, Any]], object], toll: Toll) -> Iterator[str]:
    """What is not as it has to be."""
    found = rows(uri)
    yield from _answers(question, found)
    if found != calm[0]:
        differ = [one["case_id"] for one, other in zip(found, calm[0], strict=False) if one != other]
        yield f"rows differ from those of the undisturbed run: {len(differ)} of {len(found)}, first {differ[:3]}"
    if summary(toll.answer) != calm[1]:
        yield "the report differs from that of the undisturbed run"
    yield from _objects(RunFolder(uri))


def _answers(question: Question, found: list[dict[str, Any]]) -> Iterator[str]:
    """Every planned trial has one row, and its output and verdict are what they can be worked out to be."""
    planned = {(name, f"c{number}") for name in question.names for number in range(question.cases)}
    counted = [(row["agent"], row["case_id"]) for row in found]
    if len(counted) != len(set(counted)) or set(counted) != planned:
        yield f"{len(counted)} rows of {len(set(counted))} trials, and {len(planned)} were planned"
    for row in found:
        number = int(row["case_id"][1:])
        output = answer(row["agent"], f"prompt {number}")
        if (row["output"], (row["passed"], row["score"])) != (output, verdict(number, output)):
            yield f"{row['agent']} {row['case_id']}: {row['outcome']}, {row['output']!r}, {row['failure']}"
            return


def _objects(folder: RunFolder) -> Iterator[str]:
    """Every part that a commit lists is there and whole, and so is every other one."""
    listed = {part.path: part for receipt in folder.commits().values() for part in receipt.parts}
    stored = set(folder.store.find("parts"))
    if lost := listed.keys() - stored:
        yield f"{len(lost)} parts are lost, first {sorted(lost)[0]}"
    for path in sorted(stored):
        content = folder.store.read(path)
        try:
            count = len(parts.marks(parts.decode(content)))
        except StoreError as e:
            yield f"{path} is torn: {e}"
            continue
        if path in listed and (sha256(content), count) != (listed[path].sha256, listed[path].rows):
            yield f"{path} is not what was committed"


def calls(question: Question, latency: float, toll: Toll) -> tuple[int, int]:
    """How often the provider may be asked, if each loss costs what is in flight, and how often in any case.

    A loss also costs what was answered and not stored yet, which comes to be every five seconds; and each driver that
    was passed goes on with the shards that it had given out.
    """
    in_flight = question.models * question.permits
    passed = question.trials + toll.blows["driver passed"] * question.out_with_a_driver
    return passed + toll.losses * in_flight, passed + round(toll.losses * in_flight * (1 + FLUSH_SECONDS / latency))


def orphans(expected: set[int]) -> list[str]:
    """Processes that are left once all drivers have ended, those of the cluster itself aside."""
    until = time.monotonic() + GONE_WITHIN
    while True:
        processes.reap(expected)
        left = [
            (pid, name)
            for pid, name in processes.below()
            if name.startswith((WORKERS, GOVERNOR)) or not (_ray(name) or pid in expected)
        ]
        if not left or time.monotonic() > until:
            return [f"process {pid} is left: {name[:100]}" for pid, name in left]
        time.sleep(0.5)


def _ray(name: str) -> bool:
    """What belongs to a node of Ray, and ends with it."""
    return name.startswith("ray::") or "/ray/" in name or f"ray_process_reaper {os.getpid()}" in name
