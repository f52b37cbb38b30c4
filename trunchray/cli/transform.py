"""Commands for transformers: export the cases that they make."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.frontends.benchmark.exports import Export


class Format(StrEnum):
    """Of an export: a case a line, or one array."""

    JSONL = "jsonl"
    JSON = "json"


def register(app: typer.Typer) -> None:
    app.command()(transform)
    app.command("transform-batch")(transform_batch)


def transform(
    transformer: Annotated[str, typer.Option(metavar="PATH", help="The module with the transformer.")],
    source: Annotated[list[str], typer.Option(metavar="NAME=PATH", help="A source; give it once for each.")],
    output: Annotated[str, typer.Option(metavar="PATH", help="The file to write; PATH.manifest.json comes with it.")],
    format: Annotated[Format, typer.Option(help="A case a line, or one array.")] = Format.JSONL,
    json: Json = False,
) -> None:
    """Write the cases that a transformer makes of its sources.

    It runs twice, as when it is compiled; every case is checked before anything is written.

    Example: trunchray transform --transformer transformers/index.ts --source cases=data/cases.jsonl --output out.jsonl
    """
    from trunchray.frontends.benchmark.batch import ExportJob
    from trunchray.frontends.benchmark.exports import export

    job = ExportJob(
        id="transform",
        transformer=_here(transformer),
        sources={name: _here(path) for name, path in _sources(source).items()},
        output=_here(output),
        format=format.value,
    )
    done = export(job, Path.cwd())
    Output(as_json=json).result(_described(done), lambda console: _show(console, done))


def transform_batch(
    manifest: Annotated[Path, typer.Option(metavar="PATH", help="The JSON file that lists the jobs.")],
    json: Json = False,
) -> None:
    """Run the transformers that a manifest lists.

    Paths in the manifest are relative to it. Either every output is written, with its receipt and a report beside the
    manifest, or none is.

    Example: trunchray transform-batch --manifest transform-batch.json
    """
    from trunchray.frontends.benchmark.exports import export_batch

    exports = export_batch(manifest)
    cases = sum(done.case_count for done in exports)
    report = f"{manifest}.report.json"

    def show(console: Console) -> None:
        for done in exports:
            _show(console, done)
        console.print(f"{cases:,} cases of {len(exports)} jobs; report: {report}")

    value: JsonValue = {"report": report, "cases": cases, "jobs": [_described(done) for done in exports]}
    Output(as_json=json).result(value, show)


def _sources(written: list[str]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for entry in written:
        name, equals, path = entry.partition("=")
        if not equals:
            raise UsageError(f"--source {entry!r} must be NAME=PATH, such as cases=data/cases.jsonl")
        if name in sources:
            raise UsageError(f"--source {entry!r}: there is another source {name!r}; give each its own name")
        sources[name] = path
    return sources


def _here(path: str) -> str:
    """A path as receipts have it: relative to the working directory. The empty one stays, to be refused."""
    return Path(os.path.relpath(path)).as_posix() if path and "\0" not in path else path


def _described(done: Export) -> dict[str, JsonValue]:
    return {
        "id": done.job.id,
        "transformer": done.transformer_name,
        "cases": done.case_count,
        "output": done.job.output,
        "sha256": done.sha256,
        "receipt": done.job.receipt,
    }


def _show(console: Console, done: Export) -> None:
    console.print(f"{done.job.output}: {done.case_count:,} cases by {done.transformer_name!r}")
