"""What a name is, and suggesting the one that somebody meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeGuard


def is_name(value: object) -> TypeGuard[str]:
    """Whether it is a text that can be stored, and seen: not blank, and without half of a surrogate pair."""
    return isinstance(value, str) and bool(value.strip()) and not any("\ud800" <= char <= "\udfff" for char in value)


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that somebody seems to have meant; None for a name of its own."""
    close = get_close_matches(name.lower(), sorted(set(known)), n=1, cutoff=0.75)
    return close[0] if close else None


def nearest(name: str, known: Iterable[str]) -> str:
    """How to go on after an unknown name: ` — did you mean 'x'?`, or the first known ones, or nothing."""
    names = sorted(set(known))
    if close := get_close_matches(name, names, n=1, cutoff=0.6):
        return f" — did you mean {close[0]!r}?"
    if not names:
        return ""
    more = ", …" if len(names) > 8 else ""
    return f"; known: {', '.join(names[:8])}{more}"
