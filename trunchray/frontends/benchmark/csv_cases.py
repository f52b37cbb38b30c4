"""Cases in a CSV file: the columns `id`, `prompt`, `expected` and `description`, one case a record.

Rows count the records after the header from 1, without blank lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from trunchray.core import javascript
from trunchray.core.checks import NonEmpty
from trunchray.core.names import nearest
from trunchray.errors import Problem
from trunchray.frontends.benchmark.csv_text import CsvError, Record, records
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.text_file import not_utf8

Kind = Literal["non_empty", "exact", "contains"]

COLUMNS = ("id", "prompt", "expected", "description")
_REQUIRED = ("id", "prompt")


def csv_kind(evaluate: JsonValue, place: Position, found: list[Problem], *, is_function: bool) -> Kind | None:
    """The kind of evaluator that an eval gives its CSV file; None when it is wrong, and `found` says why."""
    allowed = "{ kind: 'non_empty' }, { kind: 'exact' } or { kind: 'contains' }"
    match evaluate:
        case _ if is_function:
            found.append(place.problem(f"must be {allowed} for cases in a .csv file, not a function"))
        case None:
            found.append(place.problem(f"is required for cases in a .csv file: {allowed}"))
        case {"kind": ("non_empty" | "exact" | "contains") as kind, **rest}:
            found += [place.at(field).problem(_not_here(field, kind)) for field in rest]
            return None if rest else kind
        case other:
            found.append(place.problem(f"must be {allowed} for cases in a .csv file, not {shown(other)}"))
    return None


def _not_here(field: str, kind: str) -> str:
    if field == "expected" and kind != "non_empty":
        return "belongs into the .csv file, as a column; remove it here"
    return f"is not a known field of {kind!r} for cases in a .csv file; remove it"


def read_csv(content: bytes, place: Position, kind: Kind, found: list[Problem]) -> list[tuple[Position, JsonValue]]:
    """The cases as an author would have written them as JSON, with their places; what is wrong goes to `found`.

    `place` is the file. Fields are not checked beyond what CSV itself can get wrong.
    """
    if (line := not_utf8(content)) is not None:
        found.append(place.problem(f"is not valid UTF-8 (line {line})"))
        return []
    table = records(content.decode())
    try:
        header = next(table, None)
        if header is None or not _good_header(header, kind, place, found):
            if header is None:
                found.append(place.problem(f"is empty; begin it with a line such as {','.join(COLUMNS)}"))
            return []
        rows = list(_rows(table, header.fields, kind, place, found))
    except CsvError as e:
        found.append(Position(place.path, e.record).problem(f"{e} (line {e.line})"))
        return []
    if not rows and not any(problem.path == place.path for problem in found):
        found.append(place.problem("holds no case; write one record a case below the header"))
    return rows


def _good_header(header: Record, kind: Kind, place: Position, found: list[Problem]) -> bool:
    names = header.fields
    wrong = [f"column {shown(name)} is not known{nearest(name, COLUMNS)}" for name in names if name not in COLUMNS]
    wrong += [f"column {shown(name)} occurs twice; remove one" for name in COLUMNS if names.count(name) > 1]
    required = _REQUIRED if kind == "non_empty" else (*_REQUIRED, "expected")
    wrong += [f"column {name!r} is missing from the header" for name in required if name not in names]
    found += [place.problem(message) for message in wrong]
    return not wrong


def _rows(
    table: Iterator[Record], names: Sequence[str], kind: Kind, place: Position, found: list[Problem]
) -> Iterator[tuple[Position, JsonValue]]:
    for number, record in enumerate(table, 1):
        where = Position(place.path, number)
        if len(record.fields) != len(names):
            count = f"has {len(record.fields)} field{'s' * (len(record.fields) != 1)}"
            found.append(where.problem(f"{count}, but the header names {len(names)} columns (line {record.line})"))
            continue
        fields = dict(zip(names, record.fields, strict=True))
        if kind != "non_empty" and not javascript.trim(fields["expected"]):
            found.append(where.at("expected").problem("must not be empty"))
            continue
        yield where, _case(fields, kind)


def _case(fields: dict[str, str], kind: Kind) -> JsonValue:
    """An empty description is none, so that the eval's own holds."""
    case: dict[str, JsonValue] = {"id": fields["id"], "prompt": fields["prompt"]}
    if fields.get("description"):
        case["description"] = fields["description"]
    if kind != NonEmpty().kind:
        case["evaluate"] = {"kind": kind, "expected": fields["expected"]}
    return case


def as_jsonl(rows: Sequence[tuple[Position, JsonValue]]) -> bytes:
    """The cases as JSON Lines: the line of each is its row."""
    return "".join(f"{json.dumps(case, ensure_ascii=False)}\n" for _, case in rows).encode()
