"""Values as text: what is sent to agents, and what is stored of outputs."""

from __future__ import annotations

import json

from pydantic import JsonValue

from trunchray.adapters.models.json_text import well_formed
from trunchray.core.digest import canonical
from trunchray.core.plain import plain

LONGEST = 4_000_000
"""Characters of an output, and of all steps of a run together, that are stored. Checks see them whole."""


def as_prompt(value: JsonValue) -> str:
    """An input as a message: text as it is, anything else as its canonical JSON."""
    if isinstance(value, str):
        return value
    try:
        return canonical(value).decode()
    except ValueError:  # half of a surrogate pair, or an integer that is no float
        return well_formed(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def as_output(value: object) -> str:
    """An output as it is stored: text as it is, anything else as canonical JSON, or as Python prints it.

    Well-formed, and cut after 4,000,000 characters.
    """
    text = well_formed(value if isinstance(value, str) else _printed(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… [cut: {len(text)} characters]"


def _printed(value: object) -> str:
    try:
        return canonical(plain(value)).decode()
    except (ValueError, RecursionError):
        return printed(value)


def printed(value: object) -> str:
    """What Python prints of a value, whatever its author did."""
    try:
        return repr(value)
    except Exception as e:
        return f"<{type(value).__name__} that cannot be printed: {type(e).__name__}>"
