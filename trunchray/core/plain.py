"""Python values as JSON values."""

from __future__ import annotations

import json

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_jsonable_python


def plain(value: object) -> JsonValue:
    """The value as JSON: models and dataclasses as objects, tuples and sets as arrays, dates as text.

    Raises:
        ValueError: it has no such form, or holds a number that JSON cannot carry.
    """
    try:
        found: JsonValue = to_jsonable_python(value, inf_nan_mode="constants")
        json.dumps(found, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as e:
        raise ValueError(f"{type(value).__name__} is no JSON value: {e}") from e
    return found
