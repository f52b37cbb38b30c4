"""Where two values of plain JSON part."""

from __future__ import annotations

import json
import re
from itertools import zip_longest

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SHOWN = 60  # characters of a value


def first_difference(one: JsonValue, other: JsonValue, path: str = "") -> tuple[str, str, str]:
    """The first place, such as `cases[3].data.x`, where the values differ, and what each has there, cut for people.

    Objects whose names differ, or have another order, differ as a whole, as arrays of different lengths do. The values
    must not be alike.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return path, *_names(one, other)
        for name, value in one.items():
            if not _alike(value, other[name]):
                return first_difference(value, other[name], _member(path, name))
    if isinstance(one, list) and isinstance(other, list):
        for index, (a, b) in enumerate(zip(one, other, strict=False)):
            if not _alike(a, b):
                return first_difference(a, b, f"{path}[{index}]")
        if len(one) != len(other):
            return path, f"an array of {len(one):,}", f"an array of {len(other):,}"
    return path, _shown(one), _shown(other)


def _alike(one: JsonValue, other: JsonValue) -> bool:
    """As the text of JSON is: 1 is not true, and the order of names counts."""
    return json.dumps(one) == json.dumps(other)


def _names(one: dict[str, JsonValue], other: dict[str, JsonValue]) -> tuple[str, str]:
    pairs = zip_longest(one, other)
    a, b = next((a, b) for a, b in pairs if a != b)
    return _name(a), _name(b)


def _name(name: str | None) -> str:
    return "no more fields" if name is None else f"the field {_shown(name)}"


def _member(path: str, name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def _shown(value: JsonValue) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False), _SHOWN)
