"""Python values as JSON values, and both as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import cast

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from trunchray.core.digest import canonical

LEVELS = 100
"""Lists and objects that may be within each other; readers of JSON give up at some number of them, each at its own."""


def plain(value: object) -> JsonValue:
    """The value as JSON: models and dataclasses as objects, tuples and sets as arrays, dates as text.

    Raises:
        ValueError: it has no such form, is nested more than `LEVELS` deep, or holds a number that JSON cannot carry.
    """
    if isinstance(value, Iterator):
        raise ValueError(f"{type(value).__name__} is not a JSON value, and who reads it leaves nothing for others")
    try:
        found: JsonValue = to_jsonable_python(value, inf_nan_mode="constants")
        text = json.dumps(found, allow_nan=False)
    except Exception as e:  # whatever a property of somebody else's object raises
        raise ValueError(f"{_culprit(value)} is not a JSON value: {e}") from e
    if text.count("[") + text.count("{") > LEVELS and _is_deeper(found, LEVELS):
        raise ValueError(f"{type(value).__name__} is not a JSON value: it is nested more than {LEVELS} levels deep")
    return found


def stable(value: object) -> JsonValue:
    """The value as JSON that is the same in every process: sets, which have no order of their own, are sorted.

    That is, those in mappings, lists, tuples and other sets; what is in objects is as these give it.

    Raises:
        ValueError: as for `plain`.
    """
    if isinstance(value, Iterator):
        return plain(value)
    try:
        settled = _settled(value, ())
    except Exception as e:  # whatever somebody else's object raises
        raise ValueError(f"{_culprit(value)} is not a JSON value: {e}") from e
    return plain(settled)


def _settled(value: object, holders: tuple[int, ...]) -> object:
    """The value with its sets as sorted lists; `holders` are the ids of what it is in."""
    if id(value) in holders:
        raise ValueError("it holds itself")
    if len(holders) > LEVELS:
        raise ValueError(f"it is nested more than {LEVELS} levels deep")
    inside = (*holders, id(value))
    match value:
        case set() | frozenset():
            return sorted((_settled(item, inside) for item in cast("Iterable[object]", value)), key=_spelt)
        case dict():
            return {key: _settled(item, inside) for key, item in cast("dict[object, object]", value).items()}
        case list() | tuple() | Iterator():
            return [_settled(item, inside) for item in cast("Iterable[object]", value)]
        case _:
            return value


def _spelt(value: object) -> str:
    return json.dumps(to_jsonable_python(value, inf_nan_mode="constants"))


def _is_deeper(value: JsonValue, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [inside for each in level for inside in _inside(each)]
    return any(isinstance(each, list | dict) for each in level)


def _inside(value: JsonValue) -> Iterable[JsonValue]:
    """What a list or an object holds."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _culprit(value: object, path: str = "", depth: int = 20) -> str:
    """The type of what has no form in JSON, and the way to it within lists and mappings; not further than `depth`."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in cast("Iterable[tuple[object, object]]", inside):
        try:
            json.dumps(to_jsonable_python(item, inf_nan_mode="constants"), allow_nan=False)
        except Exception:
            if depth:
                return _culprit(item, f"{path}[{key!r:.80}]", depth - 1)
    return f"{type(value).__name__}{f' at {path}' if path else ''}"


def plain_or_printed(value: object) -> JsonValue:
    """The value as JSON, or else what Python prints of it."""
    try:
        return plain(value)
    except ValueError:
        return printed(value)


def printed(value: object) -> str:
    """What Python prints of a value, whatever its author did."""
    try:
        return repr(value)
    except BaseException as e:
        return f"<{type(value).__name__} that cannot be printed: {type(e).__name__}>"


def as_text(value: JsonValue) -> str:
    """A string as it is, anything else as canonical JSON.

    Of what has no canonical form (integers beyond ±(2^53 − 1), halves of a surrogate pair) JSON with sorted keys.
    """
    if isinstance(value, str):
        return value
    try:
        return canonical(value).decode()
    except ValueError:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
