"""Checks what people wrote against a shape; every problem is told with its place, its value and what was meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trunchray.core.credentials import secret_arguments
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.errors import UsageError
from trunchray.frontends.annotations import field_names, inner
from trunchray.frontends.model_files import Location

Shape = TypeVar("Shape", bound=Frozen)


def validated(shape: type[Shape], content: Mapping[str, Any], place: Callable[[Location], str]) -> Shape:
    """The content, which has only JSON's types, as a value of that shape; `place` says where messages place a value.

    Raises:
        UsageError: naming every field that is wrong.
    """
    try:
        # As JSON, because only there is strict validation what people expect: true is no number, "3" is none either.
        return shape.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as e:
        problems = [f"{place(error['loc'])}: {explain(error, shape)}" for error in e.errors()]
        raise UsageError("\n".join(dict.fromkeys(problems))) from e


def explain(error: ErrorDetails, shape: type[Frozen]) -> str:
    """What is wrong with a field of `shape`, with its value and, for an unknown key, what may have been meant."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).removeprefix(".")
    match error["type"]:
        case "extra_forbidden":
            return f"{place}: unknown key{_meant(error['loc'], shape)}"
        case "missing":
            return f"{place}: is missing"
        case "dict_type" | "model_type" if error["loc"][:1] == ("models",) and isinstance(error["input"], str):
            return f"{place}: must be a mapping (got {shown(error['input'])}); write `- id: {error['input'][:60]}`"
        case "value_error" if isinstance(error["input"], dict | list):
            reason = _reason(error)  # a rule between fields, which names their values itself
            return f"{place}: {reason}" if place else reason
        case "value_error" if error["loc"][-1:] == ("api_key_env",):
            return f"{place}: {_reason(error)}"  # what stands there may be a key
        case _:
            return f"{place}: {_reason(error)} (got {shown(error['input'])})"


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "string_type":
            return "must be text" + (", in quotes" if isinstance(error["input"], bool | int | float) else "")
        case "dict_type" | "model_type":
            return "must be a mapping"
        case "tuple_type":
            return "must be a list"
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return "may hold a–z, 0–9, '.', '_' and '-', begins with a letter or digit, has at most 120 characters"
        case _:
            return error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)


def shown(value: object) -> str:
    """A value as messages have it."""
    if isinstance(value, str) and secret_arguments(value.split()):
        return "text with something like a credential in it"
    return excerpt(repr(value), 60)


def _meant(location: Location, shape: type[Frozen]) -> str:
    """What may have been meant by the unknown key at a location."""
    key, known = str(location[-1]), _known(location[:-1], shape)
    if len(location) == 1 and key in set(_known(("models", 0), shape)) - set(known):
        return "; it belongs under a model, beside its id"
    return nearest(key, known)


def _known(place: Location, shape: type[Frozen]) -> list[str]:
    """The keys that may stand at a place of a value of that shape."""
    annotation: Any = shape
    for step in place:
        annotation = inner(annotation, step)
    return field_names(annotation)
