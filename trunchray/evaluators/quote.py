"""How a value is shown in a verdict's message."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

LONGEST = 80
"""Characters of a value that a message shows."""


def quote(value: JsonValue) -> str:
    """The value as JSON on one line, cut after 80 characters; lone surrogates are escaped, so that it can be stored."""
    if isinstance(value, str):
        text = json.dumps(_cut(value), ensure_ascii=False)
    else:
        text = _cut(json.dumps(value, ensure_ascii=False))
    return text.encode("utf-8", "backslashreplace").decode()


def quote_some(values: Sequence[JsonValue], most: int = 5) -> str:
    """The first values, separated by commas, and how many more there are."""
    shown = ", ".join(quote(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
