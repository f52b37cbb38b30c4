"""JSON files that people write for skill evals, wherever those are: a path, or the URI of an object."""

from __future__ import annotations

import json

from pydantic import JsonValue

from trunchray.adapters.location import read_file
from trunchray.core.json_object import parse_json
from trunchray.errors import UsageError

MAX_BYTES = 64 * 2**20
"""Bytes of a file."""


def read_json(location: str, what: str) -> JsonValue:
    """The value in a file; `what` says in messages what was to be read, as in "the case file".

    Raises:
        UsageError: the file cannot be read, is no JSON, or says something that nobody else's JSON reader understands.
    """
    content = read_file(location, what=what, most=MAX_BYTES)
    try:
        value = parse_json(content.decode("utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as e:
        raise UsageError(f"{location}: is not UTF-8 text ({e.reason} at byte {e.start}); save it as UTF-8") from e
    except UnicodeEncodeError as e:
        raise UsageError(
            f"{location}: contains {e.object[e.start]!r}, half of a surrogate pair; write the whole character"
        ) from e
    except json.JSONDecodeError as e:
        raise UsageError(f"{location}:{e.lineno}: is not JSON: {e.msg} at column {e.colno}") from e
    except ValueError as e:
        raise UsageError(f"{location}: is not JSON: {e}") from e
    return value
