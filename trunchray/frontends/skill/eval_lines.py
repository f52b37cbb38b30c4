"""What an eval of skill-creator needs, and expects of an output, line by line.

Its format keeps that under `expectations`; its own guide tells authors to write `assertions`, and nearly all do.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

Object = dict[str, JsonValue]

KEYS = ("expectations", "assertions")
_TEXTS = ("text", "description", "name")
"""Where an entry that is an object says what is expected, the first that does."""


def lines(one: Object) -> dict[str, list[JsonValue]]:
    """By key, the entries of the lists that are there and not empty."""
    found = {key: one.get(key) for key in KEYS}
    return {key: some for key, some in found.items() if isinstance(some, list) and some}


def texts(some: Sequence[JsonValue]) -> list[str]:
    """What the entries say; those that say nothing are left out."""
    return [text for text in map(text_of, some) if text is not None]


def text_of(entry: JsonValue) -> str | None:
    """What one entry says: itself, or its text, description or name; None when that is nothing."""
    said = [entry] if not isinstance(entry, dict) else [entry.get(key) for key in _TEXTS]
    return next((text for text in said if isinstance(text, str) and text.strip()), None)


def paths_of(one: Object) -> list[str]:
    """The files that an eval names; none where it says something else."""
    files = one.get("files")
    named = [path for path in files if isinstance(path, str) and path.strip()] if isinstance(files, list) else []
    return named if named == files else []
