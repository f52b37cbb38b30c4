"""The manifest of `transform-batch`: several transformers to run, and where their cases go."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from trunchray.errors import AuthoringError, Problem, UsageError
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.shapes import Authored, Id, Shape
from trunchray.frontends.benchmark.transformers import TransformedCases

Format = Literal["jsonl", "json"]


class ExportJob(TransformedCases):
    """One transformer with its sources. All paths are relative to the manifest, or to the working directory.

    `expected_source_sha256` is the hash of the only source, or of each source by name.
    """

    id: Id
    output: str
    format: Format = "jsonl"
    expected_case_count: Annotated[int, Field(ge=1)] | None = None
    expected_source_sha256: JsonValue = None

    @property
    def receipt(self) -> str:
        return f"{self.output}.manifest.json"

    def expected_hashes(self, place: Position, found: list[Problem]) -> dict[str, str]:
        """The expected hashes by the names of sources; what is wrong with them goes to `found`."""
        field = place.at("expectedSourceSha256")
        match self.expected_source_sha256:
            case None:
                return {}
            case str() as only if len(self.sources) == 1:
                expected: dict[str, JsonValue] = dict.fromkeys(self.sources, only)
            case dict() as by_name:
                expected = by_name
            case other:
                found.append(field.problem(f"must be {{ <name of a source>: <SHA-256> }}, not {shown(other)}"))
                return {}
        good: dict[str, str] = {}
        for name, value in expected.items():
            if name not in self.sources:
                found.append(field.at(name).problem("is not the name of a source of this job"))
            elif not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
                found.append(field.at(name).problem(f"must be 64 lower-case hex digits, not {shown(value)}"))
            else:
                good[name] = value
        return good


class Batch(Authored):
    """The manifest as authored."""

    protocol_version: Literal[1]
    jobs: Annotated[list[ExportJob], Field(min_length=1)]


_BATCH = Shape[Batch](Batch)


def read_batch(manifest: Path) -> list[ExportJob]:
    """The jobs of a manifest, in its order.

    Raises:
        UsageError: there is no such file.
        AuthoringError: it is not a manifest.
    """
    try:
        content = manifest.read_bytes()
    except OSError as e:
        raise UsageError(f"cannot read {str(manifest)!r}: {e.strerror}") from e
    place = Position(manifest.name)
    try:
        value: JsonValue = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as e:
        raise AuthoringError([place.problem(f"is not valid JSON: {e}")]) from e
    found: list[Problem] = []
    batch = _BATCH.read(value, place, found)
    jobs = batch.jobs if batch else []
    found += _twice(jobs, place)
    if found:
        raise AuthoringError(found)
    return jobs


def _twice(jobs: Sequence[ExportJob], place: Position) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        place.at(f"jobs[{index}]").at("id").problem(f"{job.id!r} is already the id of jobs[{earlier}]")
        for index, job in enumerate(jobs)
        if (earlier := first.setdefault(job.id, index)) != index
    ]
