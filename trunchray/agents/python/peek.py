"""Fields of values whose type is unknown: mappings or objects, named as JavaScript or as Python does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunchray.adapters.models.json_text import parse_arguments
from trunchray.core.plain import as_text, plain_or_printed


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


def is_chat(value: object) -> bool:
    """Whether it is a list of messages with roles."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "role" in item for item in value)


def words(content: object) -> str:
    """Content as text: itself, the text of its blocks, or its JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and content:
        texts = [block if isinstance(block, str) else peek(block, "text") for block in content]
        said = [text for text in texts if isinstance(text, str)]
        if said:
            return "".join(said)
    return as_text(plain_or_printed(content))


def unpacked(arguments: object) -> Any:
    """The arguments of a call, read where they are JSON text."""
    return parse_arguments(arguments) if isinstance(arguments, str) else arguments


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter.group().lower()}", name)
