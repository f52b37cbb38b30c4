"""Parts of pages in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from trunchray.core.contrast import Effect
from trunchray.core.excerpt import excerpt
from trunchray.core.wording import chance, distance, percent, points

EFFECT_HEADERS = ("Pass rates", "Difference", "95 % interval", "p", "p adjusted", "Detectable")


def effect_cells(effect: Effect) -> tuple[str, ...]:
    """The cells under `EFFECT_HEADERS`."""
    return (
        f"{percent(effect.first)} → {percent(effect.second)}",
        points(effect.difference),
        "–" if effect.low is None or effect.high is None else f"{points(effect.low)} to {points(effect.high)}",
        chance(effect.p),
        chance(effect.p_adjusted),
        distance(effect.detectable),
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()) -> str:
    """A table: the first column and those under `words` to the left, figures to the right."""
    align = ["---", *("---" if header in words else "---:" for header in headers[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (headers, align, *rows))


def listed(lines: Iterable[str], count: int, mark: str, most: int) -> str:
    """The first `most` of `count` lines, each behind a mark, and how many more there are."""
    shown = [mark + line for line in islice(lines, most)]
    return "\n".join(shown if count <= most else [*shown, f"{mark}… and {count - most:,} more"])


def text(value: str) -> str:
    """Any text on one line of a table, at most 200 characters, shown as it is."""
    return whole_text(excerpt(" ".join(value.split()), 200))


def whole_text(value: str) -> str:
    """Any text on one line, however long, shown as it is."""
    line = " ".join(value.split())
    for special in "\\|<*_`[":
        line = line.replace(special, "\\" + special)
    return line
