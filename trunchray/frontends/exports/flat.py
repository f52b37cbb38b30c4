"""Result rows as tables and lines that any tool reads: CSV and JSON Lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TextIO

# A group of columns, and the columns in it, as they are named in a table that has no groups.
_GROUPS = {
    "failure": ("boundary", "type", "message", "retryable"),
    "usage": ("input", "output", "cached", "reasoning"),
    "latency": ("queued", "model", "tools", "evaluator", "total"),
}


def write_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str], file: TextIO) -> int:
    """RFC 4180 with a header, in UTF-8; gives the number of rows.

    Groups of columns become columns such as `usage_input`, values of several parts JSON text, times ISO 8601, what is
    missing the empty text. Texts stand as they were answered, also those that a spreadsheet would take for a formula.
    """
    names = [flat for column in columns for flat in _flat_names(column)]
    writer = csv.writer(file)
    writer.writerow(names)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is the count
        cells = dict(_cells(row))
        writer.writerow([cells[name] for name in names])
    return count


def write_jsonl(rows: Iterable[Mapping[str, Any]], file: TextIO) -> int:
    """One JSON object a line, with the columns of `results.parquet`; gives the number of rows."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - as above
        file.write(as_json({name: _plain(value) for name, value in row.items()}) + "\n")
    return count


def as_json(value: object) -> str:
    """JSON on one line that holds no other line separators either, so that every reader finds the same lines."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def _flat_names(column: str) -> list[str]:
    return [f"{column}_{name}" for name in _GROUPS[column]] if column in _GROUPS else [column]


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for column, value in row.items():
        if column in _GROUPS:
            fields = value or {}
            yield from ((f"{column}_{name}", _cell(fields.get(name))) for name in _GROUPS[column])
        else:
            yield column, _cell(value)


def _cell(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return as_json(value)
        case _:
            return _plain(value)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
