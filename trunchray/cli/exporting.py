"""The command that hands results to other tools: export."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from trunchray.cli.options import Json, RunUri, located
from trunchray.cli.output import Output, heard
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.adapters.store import Store
    from trunchray.engine.rows import StoredRows

Format = Literal["csv", "jsonl", "parquet", "inspect", "openai-evals"]

_ENDINGS = {"inspect": ".json", "openai-evals": ".jsonl"}


def register(app: typer.Typer) -> None:
    app.command()(export)


def export(
    run: RunUri,
    to: Annotated[Format, typer.Option("--to", help="inspect and openai-evals write a file for each model.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE|FOLDER", help="A path or URI; without it, csv and jsonl go to stdout."
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="NAME", help="Only the rows of this model; can be repeated.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--show-private", help="Also tell expected answers and what evaluators said, in logs.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a run's counted rows for other tools to read.

    Example: trunchray export runs/quickstart --to csv -o results.csv

    Example: trunchray export runs/quickstart --to inspect -o logs
    """
    from trunchray.engine.rows import open_rows

    if private and to not in _ENDINGS:
        raise UsageError(f"--show-private: rows as {to} hold no expected answers; leave it out")
    output = Output(as_json=json)
    rows = open_rows(located(run), model or ())
    if out is not None:
        files = _logs(output, rows, to, out, private=private) if to in _ENDINGS else [_file(rows, to, out)]
        _show(output, to, files)
    elif to not in ("csv", "jsonl") or json:
        raise UsageError(f"--to {to}: say where to with --out, a {'folder' if to in _ENDINGS else 'file'}")
    else:
        with heard():
            _write_text(rows, to, sys.stdout)
    for paths in rows.damaged.values():
        output.warn(f"{', '.join(paths)}: missing or damaged; the rows there are left out")


def _show(output: Output, to: str, files: list[tuple[str, int]]) -> None:
    def show(console: Console) -> None:
        for place, count in files:
            console.print(f"{place}: {count:,} rows")

    listed: list[JsonValue] = [{"file": place, "rows": count} for place, count in files]
    output.result({"format": to, "files": listed}, show)


def _file(rows: StoredRows, to: str, out: str) -> tuple[str, int]:
    """Write everything to one file; gives its URI and the number of rows."""
    from trunchray.adapters import disk
    from trunchray.adapters.parts import ResultsFile

    folder, name = _place(out)
    with disk.scratch() as temporary:
        path, count = temporary / "rows", 0
        if to == "parquet":
            with ResultsFile(path) as results:
                for table in rows.tables():
                    results.add(table)
                    count += table.num_rows
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                count = _write_text(rows, to, file)
        folder.put(name, path)
    return out, count


def _logs(output: Output, rows: StoredRows, to: str, out: str, *, private: bool) -> list[tuple[str, int]]:
    """Write a file for each model; gives their URIs and numbers of trials."""
    from trunchray.adapters import disk
    from trunchray.adapters.store import Store
    from trunchray.frontends.exports.logs import write_inspect, write_openai_evals

    write = write_inspect if to == "inspect" else write_openai_evals
    folder, files = Store(out), list[tuple[str, int]]()
    for agent in rows.agents:
        name = f"{rows.plan.spec.run_id}_{re.sub('[^A-Za-z0-9._-]+', '-', agent.name)}_{agent.digest[:8]}{_ENDINGS[to]}"
        with disk.scratch() as temporary:
            path = temporary / "log"
            if trials := write(rows, agent, path, private=private):
                folder.put(name, path)
                files.append((f"{out.rstrip('/')}/{name}", trials))
            else:
                output.note(f"{agent.name} has no counted row, so there is no file of it")
    return files


def _write_text(rows: StoredRows, to: str, file: TextIO) -> int:
    from trunchray.adapters.parts import SCHEMA
    from trunchray.frontends.exports.flat import write_csv, write_jsonl

    return write_csv(rows.records(), SCHEMA.names, file) if to == "csv" else write_jsonl(rows.records(), file)


def _place(out: str) -> tuple[Store, str]:
    """The folder of a file, and its name there.

    Raises:
        UsageError: it names a folder.
    """
    from trunchray.adapters.store import Store

    folder, slash, name = out.rpartition("/")
    if not name or Path(out).is_dir():
        raise UsageError(f"--out {out!r} is a folder; name a file in it")
    return Store(folder + slash if slash else "."), name
