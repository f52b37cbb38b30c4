"""The beginning of a text that is too long to be shown whole."""

from __future__ import annotations


def excerpt(text: str, most: int) -> str:
    """The text; of a longer one than `most` characters (at least 1) its beginning and "…", as many together."""
    return text if len(text) <= most else text[: most - 1] + "…"
