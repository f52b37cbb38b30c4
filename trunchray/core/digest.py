"""One canonical form, one hash: everything that is named by its content is named here."""

from __future__ import annotations

import hashlib

import rfc8785
from pydantic import BaseModel, JsonValue


def canonical(value: JsonValue) -> bytes:
    """The RFC 8785 form of a JSON value: equal values give equal bytes.

    Raises:
        ValueError: for NaN, infinities and integers beyond ±(2^53 − 1), which JSON numbers cannot carry exactly.
    """
    return rfc8785.dumps(value)


def sha256(content: bytes) -> str:
    """64 lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest(value: JsonValue | BaseModel) -> str:
    """SHA-256 of the canonical form; for a model, of its JSON dump."""
    return sha256(canonical(value.model_dump(mode="json") if isinstance(value, BaseModel) else value))
