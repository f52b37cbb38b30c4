"""Text from outside, as it can be stored: tools and providers cut text in the middle of a character.

Half of a surrogate pair is no text to UTF-8, and so to files, Parquet and everybody else's JSON.
"""

from __future__ import annotations

import json

from pydantic import JsonValue


def well_formed(text: str) -> str:
    """`text.toWellFormed()`: halves of a pair that stand together are joined, lone ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def as_file(value: JsonValue) -> bytes:
    """JSON for people: indented by two, other alphabets as they are, a newline at the end.

    Halves of pairs are escaped, as JSON allows, so that nothing is lost.
    """
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
