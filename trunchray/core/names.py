"""Suggesting the name somebody meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """How to go on after an unknown name: ` — did you mean 'x'?`, or the first known ones, or nothing."""
    names = sorted(set(known))
    if close := get_close_matches(name, names, n=1, cutoff=0.6):
        return f" — did you mean {close[0]!r}?"
    if not names:
        return ""
    more = ", …" if len(names) > 8 else ""
    return f"; known: {', '.join(names[:8])}{more}"
