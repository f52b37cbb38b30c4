"""A text that is too long to be shown whole: its beginning, or its beginning and its end."""

from __future__ import annotations

from trunchray.core.fair_share import fair_share

LEAST = 200
"""Characters that are left of each line before whole lines are left out."""


def excerpt(text: str, most: int) -> str:
    """The text; of a longer one than `most` characters (at least 1) its beginning and "…", as many together."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shortened(text: str, most: int) -> str:
    """The text; of one longer than `most` characters (at least 0) its beginning and its end, at most as many together.

    Between them stands how many were left out, where there is room for that.
    """
    if len(text) <= most:
        return text
    mark = f"…[{len(text) - most:,} or more characters left out]…"
    room = most - len(mark)
    if room < len(mark):
        return text[:most]
    tail = room // 3
    return text[: room - tail] + mark + text[len(text) - tail :]


def shortened_lines(text: str, most: int) -> str:
    """The text in at most `most` characters, with something of each line as long as that is possible.

    Long lines are shortened first. Only when nothing but `LEAST` characters would be left of them is the middle of the
    text left out.
    """
    if len(text) <= most:
        return text
    lines = text.split("\n")
    each = max(fair_share([len(line) for line in lines], most - len(lines)), LEAST)
    return shortened("\n".join(shortened(line, each) for line in lines), most)
