"""Where two values of JSON differ, as people are told."""

from __future__ import annotations

import re
from itertools import takewhile

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt

_DIGEST = re.compile("[0-9a-f]{64}")
_MOST = 60
"""Characters of a value that are shown."""
_ALIKE = 20
"""Of them, those before the first one that differs, where two values begin with more than are shown well."""


def unequal(old: JsonValue, new: JsonValue, place: str = "") -> list[str]:
    """Each innermost value that the two do not share, with both of them; None stands for a missing one.

    `place` is where they stand.
    """
    if old == new:
        return []
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [was_and_is(old, new, place)]
    names = dict.fromkeys([*old, *new])
    return [
        change
        for name in names
        for change in unequal(old.get(name), new.get(name), f"{place}.{name}" if place else name)
    ]


def was_and_is(old: object, new: object, place: str) -> str:
    """A sentence of two values that differ, each cut to where they do."""
    one, other = _code(old), _code(new)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    start = alike - _ALIKE if alike > _MOST - _ALIKE else 0
    was, now = (excerpt(("…" if start else "") + text[start:], _MOST) for text in (one, other))
    return f"{place} was {was} and is now {now}"


def _code(value: object) -> str:
    return repr(value[:12] if isinstance(value, str) and _DIGEST.fullmatch(value) else value)
