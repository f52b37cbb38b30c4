"""How much of something each may have that all want."""

from __future__ import annotations

from collections.abc import Collection


def fair_share(sizes: Collection[int], total: int) -> int:
    """How much each may have at most, so that all together have no more than `total`, and most of it is used."""
    left = max(total, 0)
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)
