"""Text from outside, made safe to print on a terminal."""

from __future__ import annotations

import re

from trunchray.core.excerpt import excerpt

# Control characters, those that turn the direction of writing around, and lone surrogates.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with each character that could move the cursor or disturb a terminal spelt out, like x1b."""
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str, most: int) -> str:
    """The text on one line, printable; cut after `most` characters, of which each may be spelt out as several."""
    return printable(excerpt(" ".join(text.split()), most))
