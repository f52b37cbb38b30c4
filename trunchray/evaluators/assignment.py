"""Largest assignments of planned calls to observed calls.

`options[p]` lists the observed calls that planned call `p` could take, ascending; the answer holds, for each planned
call, the observed call it gets, or None. As many planned calls as possible get one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

Options = Sequence[Sequence[int]]
Assignment = list[int | None]


def in_order(options: Options) -> Assignment:
    """Observed calls ascend with the plan: a longest increasing subsequence over all options, O(n log n) for n options.

    Hunt & Szymanski, "A fast algorithm for computing longest common subsequences", CACM 20 (1977).
    """
    ends: list[int] = []  # ends[k]: the smallest observed call that ends a chain of k + 1
    chains: list[_Chain] = []
    for planned, calls in enumerate(options):
        for call in reversed(calls):  # descending, so that one planned call never extends its own chain
            at = bisect_left(ends, call)
            chain = (planned, call, chains[at - 1] if at else None)
            ends[at : at + 1] = [call]
            chains[at : at + 1] = [chain]
    taken: Assignment = [None] * len(options)
    link = chains[-1] if chains else None
    while link:
        planned, call, link = link
        taken[planned] = call
    return taken


_Chain = tuple[int, int, "_Chain | None"]


def in_any_order(options: Options) -> Assignment:
    """Maximum bipartite matching by augmenting paths (Kuhn), breadth first, O(planned calls × options)."""
    taken: Assignment = [None] * len(options)
    holders: dict[int, int] = {}
    dead: set[int] = set()
    for planned in range(len(options)):
        asked = _augment(planned, options, taken, holders, dead)
        dead |= asked
    return taken


def _augment(start: int, options: Options, taken: Assignment, holders: dict[int, int], dead: set[int]) -> set[int]:
    """Find `start` a call, moving others if need be; else the calls it reached, which no later search can free."""
    asked_by: dict[int, int] = {}
    queue = deque([start])
    while queue:
        planned = queue.popleft()
        for call in options[planned]:
            if call in asked_by or call in dead:
                continue
            asked_by[call] = planned
            if call not in holders:
                _shift(call, asked_by, taken, holders)
                return set()
            queue.append(holders[call])
    return set(asked_by)


def _shift(free: int, asked_by: dict[int, int], taken: Assignment, holders: dict[int, int]) -> None:
    """Hand every call along the path to the planned call that asked for it."""
    call: int | None = free
    while call is not None:
        planned = asked_by[call]
        taken[planned], holders[call], call = call, planned, taken[planned]
