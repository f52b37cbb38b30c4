"""Groups of models that a comparison does not tell apart, each with a letter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase

_MOST = 100
"""Groups at which an arrangement is given up that 26 letters will not name."""

Pair = frozenset[str]


def letters(names: Sequence[str], apart: Iterable[Pair]) -> dict[str, str]:
    """The letters of each name: two names share one exactly when no pair of `apart` parts them.

    Names come best first, and letters go by the best of their group. Empty when 26 letters are not enough.

    The algorithm is "insert and absorb" of H.-P. Piepho (2004), https://doi.org/10.1198/1061860043515.
    """
    place = {name: number for number, name in enumerate(names)}

    def places(some: frozenset[str]) -> list[int]:
        return sorted(place[name] for name in some)

    groups = {frozenset(names)}
    for pair in sorted(apart, key=places):  # in this order there are never many more groups than in the end
        groups = _parted(groups, pair)
        if len(groups) > _MOST:
            return {}
    ranked = sorted(groups, key=places)
    if len(ranked) > len(ascii_lowercase):
        return {}
    lettered = list(zip(ascii_lowercase, ranked, strict=False))
    return {name: "".join(letter for letter, group in lettered if name in group) for name in names}


def _parted(groups: set[frozenset[str]], pair: Pair) -> set[frozenset[str]]:
    """The groups without one of the pair where they hold both, and without those that are part of another."""
    whole = {group for group in groups if not pair <= group}
    pieces = {group - {name} for group in groups - whole for name in pair}
    return whole | {piece for piece in pieces if not any(piece < other for other in whole | pieces)}
