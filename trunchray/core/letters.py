"""Groups of models that a comparison does not tell apart, each with a letter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase

_MOST = 200
"""Groups at which an arrangement is given up that 26 letters will not name."""

Pair = frozenset[str]


def letters(names: Sequence[str], apart: Iterable[Pair]) -> dict[str, str]:
    """The letters of each name: two names share one exactly when no pair of `apart` parts them.

    Names come best first, and letters go by the best of their group. Empty when 26 letters are not enough.

    The algorithm is "insert and absorb" of H.-P. Piepho (2004), https://doi.org/10.1198/1061860043515.
    """
    groups: set[frozenset[str]] = {frozenset(names)}
    for pair in apart:
        for group in [group for group in groups if pair <= group]:
            groups.remove(group)
            groups |= {group - {name} for name in pair}
        groups = _absorbed(groups)
        if len(groups) > _MOST:
            return {}
    place = {name: number for number, name in enumerate(names)}
    ranked = sorted(groups, key=lambda group: sorted(place[name] for name in group))
    if len(ranked) > len(ascii_lowercase):
        return {}
    lettered = list(zip(ascii_lowercase, ranked, strict=False))
    return {name: "".join(letter for letter, group in lettered if name in group) for name in names}


def _absorbed(groups: Iterable[frozenset[str]]) -> set[frozenset[str]]:
    """The groups that are no part of another."""
    some = set(groups)
    return {group for group in some if not any(group < other for other in some)}
