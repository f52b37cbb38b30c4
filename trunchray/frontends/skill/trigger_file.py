"""The trigger queries of a skill: a JSON list of what people ask, and whether the skill should answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.frontends.skill.entry import Entry, kind, read_each
from trunchray.frontends.skill.json_file import read_json


class TriggerQuery(Frozen):
    """One query. Queries are told apart by their index alone: the same text may be asked twice."""

    place: str
    """Where it was written, for messages."""
    index: int
    """Its place in the file, from 0."""
    query: str
    """Sent as it is."""
    should_trigger: bool

    @property
    def folder(self) -> str:
        """What its attempts are called by: `q000` and so on."""
        return f"q{self.index:03}"


def read_queries(location: str | Path) -> tuple[TriggerQuery, ...]:
    """The queries of a file, in order.

    Raises:
        UsageError: the file cannot be read, holds no query, or something that is none; with every problem.
    """
    where = str(location)
    value = read_json(where, "the trigger queries")
    if not isinstance(value, list):
        raise UsageError(
            f"{where}: trigger queries are a list of objects with 'query' and 'should_trigger', not {kind(value)}"
        )
    queries = read_each(f"{where}: ", value, _query)
    if not queries:
        raise UsageError(f"{where}: has no queries; write at least one object with 'query' and 'should_trigger'")
    _check_agreement(queries)
    return tuple(queries)


def _check_agreement(queries: Sequence[TriggerQuery]) -> None:
    """The same query cannot be one that should load the skill and one that should not."""
    first: dict[str, TriggerQuery] = {}
    for query in queries:
        other = first.setdefault(query.query.strip(), query)
        if other.should_trigger != query.should_trigger:
            this, that = ("should", "should not") if query.should_trigger else ("should not", "should")
            raise UsageError(
                f"{query.place}: the query {excerpt(repr(query.query), 80)} {this} trigger, and "
                f"{other.place.rpartition(': ')[2]} says of the same one that it {that}; keep one of them"
            )


def _query(place: str, at: int, value: JsonValue) -> TriggerQuery:
    entry = Entry(place, value, what="a query", needs=("query", "should_trigger"))
    query, should = entry.text("query") or "", entry.fields["should_trigger"]
    if not query.strip():
        raise entry.refused("query", "is empty, so nothing would be sent")
    if not isinstance(should, bool):
        raise entry.refused("should_trigger", "must be true or false")
    return TriggerQuery(place=place, index=at, query=query, should_trigger=should)
