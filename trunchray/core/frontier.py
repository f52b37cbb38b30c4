"""What is worth its cost: the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence


def frontier(points: Sequence[tuple[float, float]]) -> set[int]:
    """The places of the (cost, quality) points that no other beats: better at no higher cost, or cheaper and as good.

    Equal points are on the front together.
    """
    by_cost = sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1]))
    front: list[int] = []
    for place in by_cost:
        if not front or points[place][1] > points[front[-1]][1] or points[place] == points[front[-1]]:
            front.append(place)
    return set(front)
