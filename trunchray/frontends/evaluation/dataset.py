"""What is evaluated: cases as a program gives them, or as lines of a JSONL file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from os import PathLike, fspath

from trunchray.adapters.location import opened
from trunchray.core.case import MAX_CASES
from trunchray.core.excerpt import excerpt
from trunchray.core.json_object import distinct
from trunchray.core.names import nearest
from trunchray.errors import StoreError, UsageError
from trunchray.frontends.evaluation.given import GivenCase, checked_row

Data = str | PathLike[str] | Iterable[Mapping[str, object]]
"""Cases, or where the JSONL file is that holds them."""


class DataCase(GivenCase):
    """One case. `place` is where it was written, for messages."""

    place: str
    must: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


def read_dataset(data: Data, scorers: Collection[str]) -> tuple[str, list[DataCase]]:
    """Where the cases come from, and the cases in order; their names differ. `scorers` are the names of the checks.

    Raises:
        UsageError: there are no cases, or one of them is not valid.
    """
    source, rows = _rows(data)
    cases = [_case(place, row, scorers) for place, row in rows]
    where = "data" if source == "data" else f"data: {source}"
    if not cases:
        raise UsageError(f"{where}: there is no case; give at least one {{'input': …}}")
    if len(cases) > MAX_CASES:
        raise UsageError(f"{where}: {len(cases):,} cases are more than {MAX_CASES:,}; evaluate them in parts")
    first: dict[str, str] = {}
    for case in cases:
        if (other := first.setdefault(case.name, case.place)) != case.place:
            raise UsageError(
                f"{case.place}: a case named {excerpt(case.name, 80)!r} is already in {other}; results are compared by "
                "name, so give each case a name of its own"
            )
    return source, cases


def _rows(data: Data) -> tuple[str, list[tuple[str, object]]]:
    if isinstance(data, str | PathLike):
        path = fspath(data)
        return path, [(f"{path}:{number}", row) for number, row in _lines(path)]
    if isinstance(data, Mapping) or not isinstance(data, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"data: expected a list of cases or the path of a JSONL file, got {type(data).__name__}")
    try:
        return "data", [(f"data[{number}]", row) for number, row in enumerate(data)]
    except Exception as e:  # a generator of somebody else's
        raise UsageError(f"data: raised {type(e).__name__} while it was read: {e}") from e


def _lines(path: str) -> list[tuple[int, object]]:
    try:
        store, name = opened(path)
        content = store.read(name).decode()
    except FileNotFoundError:
        raise UsageError(f"data: there is no file {path!r}; relative paths begin at the current directory") from None
    except UnicodeDecodeError as e:
        raise UsageError(f"data: {path}: not UTF-8: {e}") from e
    except (StoreError, UsageError, NotADirectoryError) as e:
        raise UsageError(f"data: cannot read {path!r}: {e}") from e
    rows: list[tuple[int, object]] = []
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            try:
                rows.append((number, json.loads(line, object_pairs_hook=distinct)))
            except (ValueError, RecursionError) as e:
                raise UsageError(f"{path}:{number}: not JSON: {e}; a file of data has one JSON object a line") from e
    return rows


def _case(place: str, row: object, scorers: Collection[str]) -> DataCase:
    row = checked_row(place, row, also=("must", "skip"), needs=("input",))
    must, skip = (_named(f"{place}: {key}", row.get(key, ()), scorers) for key in ("must", "skip"))
    if both := [name for name in must if name in skip]:
        raise UsageError(f"{place}: {both[0]!r} is both in 'must' and in 'skip'")
    return DataCase.of(place, row, place=place, must=must, skip=skip)


def _named(place: str, names: object, scorers: Collection[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, list | tuple | set | frozenset):
        raise UsageError(f"{place}: expected a list of names of checks, got {excerpt(repr(names), 60)}")
    for name in names:
        if not isinstance(name, str) or name not in scorers:
            raise UsageError(f"{place}: there is no check {name!r}{nearest(str(name), scorers)}")
    return tuple(dict.fromkeys(names))
