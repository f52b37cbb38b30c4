"""Fair shares of whole things."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.fair_share import fair_share


def fill(total: int, wants: Sequence[int]) -> list[int]:
    """Each gets what it wants, or as much as everybody else who gets less than that; at most `total` together.

    What is left over after equal shares goes, one each, to those who come first.
    """
    level = fair_share(wants, total)
    shares = [min(want, level) for want in wants]
    extra = max(0, total) - sum(shares)
    for place, want in enumerate(wants):
        if extra and want > level:
            shares[place] += 1
            extra -= 1
    return shares


def share_out(total: int, wants: Sequence[Sequence[int]], most: Sequence[int]) -> list[list[int]]:
    """Fair between groups first, none of which gets more than its `most`, and then within each group."""
    groups = fill(total, [min(sum(group), limit) for group, limit in zip(wants, most, strict=True)])
    return [fill(part, group) for part, group in zip(groups, wants, strict=True)]
