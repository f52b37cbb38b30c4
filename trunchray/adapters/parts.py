"""Result rows as Parquet: the schema of a row, written by workers as parts and read back when they are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from trunchray.core.budget import nanodollars
from trunchray.core.flips import Graded
from trunchray.core.plain import LEVELS
from trunchray.core.receipt import Mark
from trunchray.core.report import CountedRow
from trunchray.core.trial import NOT_GRADED, Asked, Failure, Result, Step, ToolCall, Trace, Usage, in_grading
from trunchray.errors import StoreError

Rows: TypeAlias = Any
"""A `pyarrow.Table` of `SCHEMA` (pyarrow ships no types)."""

_FAILURE = pa.struct(
    [("boundary", pa.string()), ("type", pa.string()), ("message", pa.string()), ("retryable", pa.bool_())]
)
_USAGE_OF = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_input_tokens",
    "reasoning": "reasoning_tokens",
}
"""The fields of a row's usage, and those of `Usage` that they hold."""
_USAGE = pa.struct([(name, pa.int64()) for name in _USAGE_OF])
_LATENCY = pa.struct([(name, pa.float64()) for name in ("queued", "model", "tools", "evaluator", "total")])
_INSTANT = pa.timestamp("us", tz="UTC")

SCHEMA = pa.schema(
    [
        ("trial_key", pa.string()),
        ("release_digest", pa.string()),
        ("case_id", pa.string()),
        ("eval_id", pa.string()),
        ("agent", pa.string()),
        ("agent_digest", pa.string()),
        ("attempt", pa.int32()),
        ("outcome", pa.string()),
        ("failure", _FAILURE),
        ("passed", pa.bool_()),
        ("score", pa.float64()),
        ("message", pa.string()),
        ("details", pa.string()),
        ("output", pa.string()),
        ("finish_reason", pa.string()),
        ("tool_calls", pa.string()),
        ("steps", pa.string()),
        ("usage", _USAGE),
        ("cost_usd", pa.float64()),
        ("latency", _LATENCY),
        ("model", pa.string()),
        ("request_id", pa.string()),
        ("retries", pa.int32()),
        ("rate_limit_wait", pa.float64()),
        ("cache_hits", pa.int32()),
        ("saved_tokens", pa.int64()),
        ("started_at", _INSTANT),
        ("ended_at", _INSTANT),
        ("worker", pa.string()),
        ("evaluator_digest", pa.string()),
        ("versions", pa.string()),
        ("earlier_errors", pa.int32()),
        ("reused", pa.bool_()),
    ],
    metadata={"trunchray.rows": "1"},
)
"""One row per trial. `details`, `tool_calls`, `steps` and `versions` hold JSON text; times are seconds."""

_ADDED: dict[str, Any] = {"earlier_errors": 0, "reused": False}
"""Columns that parts of earlier versions do not have, all of them the last ones, and what their rows would say."""

_SEARCHED = ("output", "message", "failure.message")
"""The columns that people search for words."""
_PACKED: Any = {  # Any, because of pyarrow, as `_REPEATED`
    leaf.name: "lz4" if leaf.name in _SEARCHED else "zstd" for column in SCHEMA for leaf in column.flatten()
}
"""The codec of each column of the results by its path; pyarrow does not pack what is not named."""

_AS_JSON = ("details", "tool_calls", "steps", "versions")

MEASURED = (
    *("latency", "rate_limit_wait", "request_id", "started_at", "ended_at", "worker"),
    *("cache_hits", "saved_tokens"),
    *("earlier_errors", "reused"),
)
"""Columns that a repetition of the same work may fill differently.

Measured times, who did it, the provider's ids, what the cache knew already, and how often it went wrong before.
"""

ROW_GROUP = 8192
"""Rows in a row group of the results, unless they are large."""
GROUP_BYTES = 64_000_000
"""Bytes in memory after which a row group ends early."""

TAKEN_AT_ONCE = 1 << 30
"""Bytes in memory up to which the rows of a shard are picked by copying them."""

_REPEATED: Any = [  # pyarrow infers `bool` from the defaults of the parameters that take these names
    "release_digest",
    "eval_id",
    "agent",
    "agent_digest",
    "outcome",
    "finish_reason",
    "tool_calls",
    "model",
    "worker",
    "versions",
]
"""Columns worth a dictionary, and a note of their least and greatest value: they say the same in many rows."""


def row(result: Result, *, release_digest: str, versions: str) -> dict[str, Any]:
    """One result as a row. `versions` is JSON text naming what produced it."""
    trial, verdict = result.trial, result.verdict
    stored: dict[str, Any] = {
        "trial_key": trial.key,
        "release_digest": release_digest,
        "case_id": trial.case_id,
        "eval_id": result.eval_id,
        "agent": trial.agent,
        "agent_digest": result.agent_digest,
        "attempt": trial.attempt,
        "outcome": result.outcome,
        "failure": result.failure.model_dump() if result.failure else None,
        "latency": result.latency.model_dump(),
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "worker": result.worker,
        "evaluator_digest": result.evaluator_digest,
        "versions": versions,
        "earlier_errors": result.earlier_errors,
        "reused": result.reused,
    }
    if verdict:
        stored |= {"passed": verdict.passed, "score": verdict.score, "message": verdict.message}
        stored["details"] = None if verdict.details is None else _json(verdict.details)
    return stored | (_trace(result.trace) if result.trace else {})


def size(stored: dict[str, Any]) -> int:
    """About how many bytes a row takes before compression."""
    return 600 + sum(len(stored.get(name) or "") for name in ("output", "steps", "details", "tool_calls", "message"))


def encode(rows: Sequence[dict[str, Any]]) -> bytes:
    """The rows as one Parquet file."""
    try:
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
    except UnicodeEncodeError:
        table = pa.Table.from_pylist([_well_formed(stored) for stored in rows], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    # Nobody searches parts by value, and the least and greatest texts would take as much room as all the rest.
    pq.write_table(
        table, sink, compression="zstd", use_dictionary=_REPEATED, write_statistics=False, write_page_checksum=True
    )
    return sink.getvalue().to_pybytes()


def decode(content: bytes) -> Rows:
    """The rows of a part, as this version writes them.

    Raises:
        StoreError: the bytes are not a part: torn, damaged or of another schema.
    """
    try:
        # One thread: parts are small, and several are decoded at a time.
        table = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise StoreError(f"not a readable part: {e}") from e
    for name, value in _ADDED.items():
        if name not in table.column_names:
            field = SCHEMA.field(name)
            table = table.append_column(field, pa.array([value] * table.num_rows, field.type))
    if not table.schema.equals(SCHEMA):
        raise StoreError("not a part: its columns are not those of result rows")
    return table


def marks(table: Rows) -> list[tuple[str, Mark]]:
    """For each row its trial key, and what a receipt keeps of it."""
    input_tokens, output_tokens, *_ = _fields(table, "usage")
    saved_tokens, reused = (table.column(name).to_pylist() for name in ("saved_tokens", "reused"))
    tokens = [
        0 if free else (read or 0) + (written or 0) - (saved or 0)
        for read, written, saved, free in zip(input_tokens, output_tokens, saved_tokens, reused, strict=True)
    ]
    costs = [
        0 if free else nanodollars(cost)
        for cost, free in zip(table.column("cost_usd").to_pylist(), reused, strict=True)
    ]
    again = [retryable is True for retryable in _fields(table, "failure")[3]]
    not_graded = [kind == NOT_GRADED for kind in _fields(table, "failure")[1]]
    found = map(Mark, table.column("outcome").to_pylist(), tokens, again, costs, _gradable(table), not_graded)
    return list(zip(_keys(table), found, strict=True))


def answers(table: Rows, places: Sequence[int] | None = None) -> Iterator[tuple[str, Asked]]:
    """For the rows at these places, or for all, the trial key and what came of asking, as if not graded yet."""
    chosen = table.select(_ANSWER)
    for stored in (chosen if places is None else chosen.take(pa.array(places, pa.int64()))).to_pylist():
        yield stored["trial_key"], _asked(stored)


def graded(table: Rows) -> Iterator[Graded]:
    """What grading made of each row."""
    names = ("eval_id", "agent", "case_id", "attempt", "outcome", "score", "message")
    columns = [table.column(name).to_pylist() for name in names]
    failures = zip(*_fields(table, "failure")[:3], strict=True)
    for row in map(Graded, *columns, _gradable(table)):
        boundary, kind, error = next(failures)
        yield row if boundary is None else row._replace(message=f"{boundary}/{kind}: {error}")


def choose(tables: Sequence[Rows], keys: Sequence[str]) -> Rows:
    """One row for each of `keys` that the tables hold, in that order; for a key held twice, the row listed last."""
    if not tables:
        return SCHEMA.empty_table()
    rows = pa.concat_tables(tables)
    last = {key: place for place, key in enumerate(_keys(rows))}
    places = [last[key] for key in keys if key in last]
    if rows.nbytes <= TAKEN_AT_ONCE or not places:
        return rows.take(pa.array(places, pa.int64()))
    # `take` joins a column into one array, and one array holds no more than 2 GiB of text.
    return pa.concat_tables([rows.slice(place, 1) for place in places])


def counted(table: Rows) -> Iterator[CountedRow]:
    """The rows as the report counts them."""
    names = ["agent", "eval_id", "case_id", "attempt", "outcome", "score", "cost_usd", "finish_reason", "tool_calls"]
    columns = [table.column(name).to_pylist() for name in names]
    cached_calls = zip(*(table.column(name).to_pylist() for name in ("cache_hits", "saved_tokens")), strict=True)
    errors = table.column("earlier_errors").to_pylist()
    usages = zip(*_fields(table, "usage"), strict=True)
    failures = zip(*_fields(table, "failure")[:3], strict=True)
    stages = _fields(table, "latency")
    seconds = (model + tools for model, tools in zip(stages[1], stages[2], strict=True))
    rows = zip(*columns, cached_calls, errors, usages, failures, seconds, strict=True)
    for (
        agent,
        eval_id,
        case_id,
        attempt,
        outcome,
        score,
        cost,
        finish,
        calls,
        cached,
        before,
        usage,
        failed,
        took,
    ) in rows:
        yield CountedRow(
            agent=agent,
            eval_id=eval_id,
            case_id=case_id,
            attempt=attempt,
            outcome=outcome,
            score=score,
            usage=usage,
            cost_usd=cost,
            latency=took,
            finish_reason=finish,
            tool_calls=_length(calls),
            failure=failed if failed[0] is not None else None,
            cache_hits=cached[0] or 0,
            saved_tokens=cached[1] or 0,
            earlier_errors=before,
        )


def records(table: Rows) -> Iterator[dict[str, Any]]:
    """The rows as plain values by column; `details`, `tool_calls`, `steps` and `versions` as what their JSON says."""
    decoded = [name for name in _AS_JSON if name in table.column_names]
    for record in table.to_pylist():
        for name in decoded:
            record[name] = None if record[name] is None else from_json(record[name])
        yield record


def record(path: Path, place: int) -> dict[str, Any]:
    """One row of a file, counted from 0, as `records` gives it.

    Raises:
        StoreError: the file cannot be read, or has no such row.
    """
    try:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if place < rows:
                return next(records(file.read_row_group(group).slice(place, 1)))
            place -= rows
    except (pa.ArrowException, OSError, ValueError) as e:
        raise StoreError(f"{path.name}: not readable: {e}") from e
    raise StoreError(f"{path.name}: it has {place + 1} rows too few")


def span(table: Rows) -> tuple[datetime, datetime] | None:
    """When the first of the rows began and the last one ended; None when there is no row."""
    if not table.num_rows:
        return None
    import pyarrow.compute as pc  # noqa: PLC0415 - takes a tenth of a second; workers never ask

    started, ended = (pc.call_function("min_max", [table.column(name)]).as_py() for name in ("started_at", "ended_at"))
    return started["min"], ended["max"]


class ResultsFile:
    """A Parquet file that grows by tables, in row groups of equal size unless rows are large.

    What people search for words is packed with LZ4, all else with zstd: a search unpacks these columns of every row,
    which takes LZ4 less than half the time.
    """

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(
            path, SCHEMA, compression=_PACKED, use_dictionary=_REPEATED, write_statistics=_REPEATED
        )
        self._held: list[Rows] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._flush(1)
        self._writer.close()

    def add(self, table: Rows) -> None:
        self._held.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes  # once for each table: asking for it takes as long as writing ten rows
        self._flush(1 if self._bytes > GROUP_BYTES else ROW_GROUP)

    def _flush(self, at_least: int) -> None:
        if self._rows < at_least:
            return
        rows = pa.concat_tables(self._held)
        whole = rows.num_rows if at_least < ROW_GROUP else rows.num_rows - rows.num_rows % ROW_GROUP
        self._writer.write_table(rows.slice(0, whole), row_group_size=ROW_GROUP)
        rest = rows.slice(whole)
        self._held, self._rows, self._bytes = [rest], rest.num_rows, rest.nbytes


def _length(calls: str | None) -> int:
    return 0 if calls is None or calls == "[]" else len(from_json(calls))


def _keys(table: Rows) -> list[str]:
    return table.column("trial_key").to_pylist()


def _fields(table: Rows, name: str) -> list[list[Any]]:
    """The fields of a column of structs, None where there is no struct."""
    return [field.to_pylist() for field in table.column(name).flatten()]


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "output": trace.output,
        "finish_reason": trace.finish_reason,
        "tool_calls": _json(trace.tool_calls) if trace.tool_calls else "[]",
        "steps": _json(trace.steps),
        "usage": _stored_usage(trace.usage),
        "cost_usd": trace.cost_usd,
        "model": trace.model,
        "request_id": trace.request_id,
        "retries": trace.retries,
        "rate_limit_wait": trace.waited,
        "cache_hits": trace.cache_hits,
        "saved_tokens": trace.saved_tokens,
    }


def _stored_usage(usage: Usage) -> dict[str, int | None]:
    return {name: getattr(usage, field) for name, field in _USAGE_OF.items()}


_ANSWER: Any = (  # Any, because of pyarrow, as `_REPEATED`
    *("trial_key", "output", "finish_reason", "tool_calls", "steps", "usage", "cost_usd", "model", "request_id"),
    *("retries", "rate_limit_wait", "cache_hits", "saved_tokens", "latency", "started_at"),
    *("failure", "evaluator_digest"),
)


def _asked(stored: dict[str, Any]) -> Asked:
    latency: dict[str, float] = stored["latency"]
    failure = Failure(**stored["failure"]) if stored["failure"] else None
    if failure and in_grading(failure.boundary, stored["evaluator_digest"]):
        failure = None
    return Asked(
        started_at=stored["started_at"],
        seconds=max(0.0, latency["total"] - latency["evaluator"]),
        queued=latency["queued"],
        trace=None if stored["output"] is None else _read_trace(stored),
        failure=failure,
    )


def _read_trace(stored: dict[str, Any]) -> Trace:
    """The reverse of `_trace`. Times in the agent and its tools are kept with the others of the row."""
    usage = {_USAGE_OF[name]: tokens for name, tokens in (stored["usage"] or {}).items()}
    return Trace(
        output=stored["output"],
        finish_reason=stored["finish_reason"],
        tool_calls=tuple(ToolCall(**call) for call in from_json(stored["tool_calls"])),
        steps=tuple(Step(**step) for step in from_json(stored["steps"])),
        usage=Usage(**usage),
        cost_usd=stored["cost_usd"],
        model=stored["model"],
        request_id=stored["request_id"],
        retries=stored["retries"],
        waited=stored["rate_limit_wait"],
        model_seconds=stored["latency"]["model"],
        tools_seconds=stored["latency"]["tools"],
        cache_hits=stored["cache_hits"] or 0,
        saved_tokens=stored["saved_tokens"] or 0,
    )


def _gradable(table: Rows) -> list[bool]:
    boundaries, kinds = _fields(table, "failure")[:2]
    found = zip(boundaries, kinds, table.column("evaluator_digest").to_pylist(), strict=True)
    return [
        boundary is not None and kind != NOT_GRADED and in_grading(boundary, digest) for boundary, kind, digest in found
    ]


def _json(value: Any) -> str:
    """The value as JSON that can be read again."""
    try:
        text = to_json(value, by_alias=True)
        if text.count(b"[") + text.count(b"{") > LEVELS:
            from_json(text)
        return text.decode()
    except (ValueError, UnicodeEncodeError):
        return to_json(_well_formed(value), by_alias=True).decode()


def _well_formed(value: Any, levels: int = LEVELS) -> Any:
    """The same with U+FFFD in place of lone surrogates, which UTF-8 cannot carry, down to so many levels."""
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True)
    elif isinstance(value, Step):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    inside = partial(_well_formed, levels=levels - 1)
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict() | list() | tuple() if not levels:
            return "(nested too deeply)"
        case dict():
            return {_well_formed(key): inside(item) for key, item in value.items()}
        case list() | tuple():
            return [inside(item) for item in value]
        case _:
            return value
