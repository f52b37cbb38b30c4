"""The JSON object that a model, or a step of a workflow, replies with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def read_object(text: str) -> dict[str, JsonValue]:
    """The object that the text is, with or without blanks and one Markdown fence (``` or ```json) around it.

    An object among other words is refused: which part of them counts would be a guess.

    Raises:
        ValueError: as `parse_object`.
    """
    fenced = _FENCE.fullmatch(text.strip())
    return parse_object(fenced[1] if fenced else text)


def parse_object(text: str) -> dict[str, JsonValue]:
    """The object that the text is.

    Raises:
        ValueError: it is something else, names a key twice, or holds a number that JSON cannot carry (NaN, infinity).
    """
    try:
        value = parse_json(text)
    except json.JSONDecodeError as e:
        raise ValueError(f"not JSON and nothing else: {_cut(text)}") from e
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {_cut(text)}")
    return value


def parse_json(text: str) -> JsonValue:
    """The value that the text is.

    Raises:
        json.JSONDecodeError: it is no JSON.
        ValueError: it names a key twice, is nested too deeply, or holds a number that JSON cannot carry.
    """
    try:
        value: JsonValue = json.loads(text, parse_constant=_refused, object_pairs_hook=distinct)
        json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
    except RecursionError as e:
        raise ValueError("nested too deeply") from e
    return value


def _cut(text: str) -> str:
    return repr(excerpt(text, 80))


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object's keys and values, for `json.loads`.

    Raises:
        ValueError: a key stands there twice, so that nobody can say which value is meant.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"it has the key {key!r} twice")
        found[key] = value
    return found
