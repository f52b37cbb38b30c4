"""One canonical form, one hash: everything that is named by its content is named here."""

from __future__ import annotations

import hashlib
import json

import rfc8785
from pydantic import BaseModel, JsonValue


def canonical(value: JsonValue) -> bytes:
    """The RFC 8785 form of a JSON value: equal values give equal bytes.

    Raises:
        ValueError: for NaN, infinities and integers beyond ±(2^53 − 1), which JSON numbers cannot carry exactly.
    """
    if _simple(value):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    return rfc8785.dumps(value)


def _simple(value: JsonValue) -> bool:
    """Whether the canonical form is what Python's own encoder writes, which is several times as fast.

    It differs for numbers other than small integers, and in the order of keys that are not ASCII.
    """
    match value:
        case str() | bool() | None:
            return True
        case dict():
            return all(key.isascii() and _simple(item) for key, item in value.items())
        case list():
            return all(map(_simple, value))
        case int():
            return -(2**53) < value < 2**53
        case _:
            return False


def sha256(content: bytes) -> str:
    """64 lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest(value: JsonValue | BaseModel) -> str:
    """SHA-256 of the canonical form; for a model, of its JSON dump."""
    return sha256(canonical(value.model_dump(mode="json") if isinstance(value, BaseModel) else value))
