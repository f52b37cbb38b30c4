"""Fields of values whose type is unknown: mappings or objects, named as JavaScript or as Python does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trunchray.core.record import shown


def peek(value: object, *names: str) -> Any:
    """The first of these fields that is there and not None, each in camelCase or snake_case; None when none is."""
    for name in names:
        for spelling in (name, _snake(name)):
            found = value.get(spelling) if isinstance(value, Mapping) else getattr(value, spelling, None)
            if found is not None:
                return found
    return None


def as_name(value: object) -> str | None:
    """A name, if it is one."""
    return value if isinstance(value, str) and value else None


def words(content: object) -> str:
    """Content as text: itself, the text of its blocks, or its JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and content:
        texts = [block if isinstance(block, str) else peek(block, "text") for block in content]
        said = [text for text in texts if isinstance(text, str)]
        if said:
            return "".join(said)
    found = shown(content)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def unpacked(arguments: object) -> Any:
    """The arguments of a call, read where they are JSON text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter.group().lower()}", name)
