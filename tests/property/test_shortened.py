"""Texts that are too long: as much as there is room for, from both ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.excerpt import LEAST, shortened, shortened_lines
from trunchray.core.fair_share import fair_share

TEXTS = st.one_of(st.text(max_size=300), st.integers(0, 5_000).map(lambda size: ("ab\n" + "c" * 97) * (size // 100)))


@given(TEXTS, st.integers(0, 3_000))
def test_never_longer_than_allowed(text: str, most: int) -> None:
    """A text that fits is itself; any other has at most as many characters."""
    for short in (shortened, shortened_lines):
        found = short(text, most)
        assert len(found) <= most or found == text
        assert len(text) > most or found == text


@given(st.text(min_size=1), st.integers(200, 2_000))
def test_both_ends_are_kept(middle: str, most: int) -> None:
    """What is left out is in the middle, and that it is, is said."""
    found = shortened(f"begin{middle * most}end", most)
    assert found.startswith("begin")
    assert found.endswith("end")
    assert "left out" in found


def test_something_of_each_line_is_kept() -> None:
    """Long lines are shortened before any line is left out: each may be a tool call that matters."""
    lines = [f'{{"call": {number}, "content": "{"x" * 5_000}"}}' for number in range(50)]
    found = shortened_lines("\n".join(lines), 50 * 400).split("\n")
    assert [line[:12] for line in found] == [line[:12] for line in lines]
    assert shortened_lines("\n".join(lines * 10), 1_000).startswith(lines[0][: LEAST // 2])


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(-10, 20_000))
def test_shares_are_fair(sizes: list[int], total: int) -> None:
    """Nobody has more than another who wanted it, together they fit, and one more each would not."""
    share = fair_share(sizes, total)
    assert sum(min(size, share) for size in sizes) <= max(total, 0)
    assert share >= max(sizes, default=0) or sum(min(size, share + 1) for size in sizes) > max(total, 0)
