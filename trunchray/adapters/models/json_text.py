"""JSON as other people's servers and models write it, made safe to store.

Providers and models sometimes send half of a surrogate pair, invalid UTF-8 or a byte order mark. What comes out of here
is always well-formed Unicode, because everything later (JSON, Parquet, JavaScript) refuses anything else.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, from_json, to_json

from trunchray.core.well_formed import well_formed


def parse(content: bytes | str) -> JsonValue:
    """The JSON value, its strings well-formed; invalid UTF-8 is replaced by U+FFFD.

    Raises:
        ValueError: not one JSON value; NaN or an infinity; nested deeper than 200; a number of over 4,300 digits.
    """
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError:
        return _parse_leniently(content)


def parse_arguments(text: str) -> JsonValue:
    """The arguments of a tool call: a JSON value, or the text itself when it is not JSON.

    Blank text is `{}`: it is how several providers write a call without arguments.
    """
    if not text.strip():
        return {}
    try:
        value = parse(text)
        json.dumps(value, allow_nan=False)  # 1e999 parses as infinity, which no JSON can hold
    except ValueError:
        return text
    return value


def dump(value: Any) -> bytes:
    """Compact UTF-8 JSON; lone surrogates become U+FFFD.

    Raises:
        ValueError: the value is not JSON.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_refused)).encode()


def _refused(value: object) -> JsonValue:
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _parse_leniently(content: bytes | str) -> JsonValue:
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        return from_json(well_formed(json.dumps(value, ensure_ascii=False)), allow_inf_nan=False)
    except RecursionError as e:
        raise ValueError("nested too deeply") from e
