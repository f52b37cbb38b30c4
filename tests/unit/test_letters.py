"""Which models a report tells apart, and which are worth their cost."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.frontier import frontier
from trunchray.core.letters import letters

NAMES = "abcdefg"
PAIRS = [frozenset(pair) for pair in combinations(NAMES, 2)]


@given(st.sets(st.sampled_from(PAIRS)))
def test_names_share_a_letter_unless_they_are_apart(apart: set[frozenset[str]]):
    """Two names share a letter exactly when nothing parts them, and no letter could be left out."""
    found = letters(NAMES, apart)
    for one, other in map(sorted, PAIRS):
        assert bool(set(found[one]) & set(found[other])) == (frozenset((one, other)) not in apart)
    groups = {letter: {name for name in NAMES if letter in found[name]} for letter in "".join(found.values())}
    assert not any(one < other for one in groups.values() for other in groups.values())


def test_letters_go_from_best_to_worst():
    """The best has the first letter; without a difference all share it."""
    assert letters("xyz", []) == {"x": "a", "y": "a", "z": "a"}
    assert letters("xyz", [frozenset("xz")]) == {"x": "a", "y": "ab", "z": "b"}
    assert letters("xyz", map(frozenset, ("xy", "xz", "yz"))) == {"x": "a", "y": "b", "z": "c"}


def test_too_many_groups_have_no_letters():
    """Where 26 letters are not enough, there are none, and that is found soon."""
    names = [f"n{number}" for number in range(40)]
    assert letters(names, map(frozenset, combinations(names, 2))) == {}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_the_front_is_what_no_other_beats(points: list[tuple[int, int]]):
    """A point is on it exactly when none is at least as good at no more cost, and differs."""
    beaten = {
        place
        for place, (cost, quality) in enumerate(points)
        if any(c <= cost and q >= quality and (c, q) != (cost, quality) for c, q in points)
    }
    assert frontier(points) == set(range(len(points))) - beaten


def test_letters_do_not_depend_on_the_order_of_pairs():
    """Twenty models of which neighbours are alike get their letters from pairs in any order."""
    names = [f"n{number}" for number in range(20)]
    apart = [frozenset((names[one], names[other])) for one, other in combinations(range(20), 2) if other - one > 3]
    found = letters(names, apart)
    assert letters(names, reversed(apart)) == found
    assert len(set("".join(found.values()))) == 17
