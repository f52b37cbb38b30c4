"""pydantic's complaints about authored values, in our words: the field, the value (cut), what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from trunchray.core.checks import Check
from trunchray.core.names import nearest
from trunchray.errors import Problem
from trunchray.frontends.annotations import field_names, inner, members, model_of
from trunchray.frontends.benchmark.position import Position, shown, step_into


def complaints(error: ValidationError, annotation: Any, value: JsonValue, place: Position) -> list[Problem]:
    """What is wrong with `value`, which stands at `place` and should have been what `annotation` describes."""
    errors = error.errors(include_url=False)
    return [_problem(each, annotation, value, place) for each in errors if not _spurious(each)]


def too_deep(place: Position) -> Problem:
    return place.problem("is nested too deeply; flatten it")


def _spurious(error: ErrorDetails) -> bool:
    """Whether an array is called too short only because its entries are wrong, which is said anyway."""
    return error["type"] == "too_short" and len(error["input"]) >= error.get("ctx", {})["min_length"]


def _problem(error: ErrorDetails, annotation: Any, value: JsonValue, place: Position) -> Problem:
    if error["type"] == "json_invalid":
        field = next(_half_pairs(value, ""), None)
        if field is None:
            return too_deep(place)
        return place.at(field).problem("holds half of a surrogate pair (a broken character); remove it")
    field, parent = _walk(annotation, error["loc"])
    if error["type"].startswith("union_tag"):
        field = step_into(field, "kind")
    return place.at(field).problem(_message(error, parent))


def _message(error: ErrorDetails, parent: Any) -> str:
    """The complaint in our words; `parent` is the annotation of the object that holds the field."""
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return f"is not a known field{_meant(str(error['loc'][-1]), field_names(parent))}"
        case "value_error":
            return str(context["error"])
        case "union_tag_invalid":
            return _unknown_kind(context["tag"], context["expected_tags"])
        case kind:
            wording = _WORDING.get(kind, "must be other than {value}")
            return wording.format(value=shown(error["input"]), **context) + _as_check(kind, error["input"])


def _meant(name: str, known: list[str]) -> str:
    """What may have been meant by an unknown field."""
    if name == "expected" and "evaluate" in known:
        return "; put it into `evaluate`, beside the kind"
    return nearest(name, known)


def _as_check(complaint: str, value: object) -> str:
    """How to write an evaluator of which only the kind is given."""
    kinds = [_kind(member) for member in members(Check)]
    if _WORDING.get(complaint) != _WORDING["model_type"] or value not in kinds:
        return ""
    return f'; write {{ kind: "{value}" }}' if value == "non_empty" else f'; write {{ kind: "{value}", … }}'


_WORDING = {
    "missing": "is required",
    "literal_error": "must be {expected}, not {value}",
    "union_tag_not_found": "is required: 'exact', 'contains' or another kind of evaluator",
    "too_short": "must have at least {min_length} entry",
    "string_too_short": "must not be empty",
    "greater_than_equal": "must be at least {ge}, not {value}",
    "less_than_equal": "must be at most {le}, not {value}",
    "string_type": "must be a string, not {value}",
    "int_type": "must be a whole number, not {value}",
    "int_from_float": "must be a whole number, not {value}",
    "bool_type": "must be true or false, not {value}",
    "list_type": "must be an array, not {value}",
    "tuple_type": "must be an array, not {value}",
    "dict_type": "must be an object, not {value}",
    "model_type": "must be an object, not {value}",
}


def _unknown_kind(tag: str, expected: str) -> str:
    if tag == "custom":
        return "a case cannot have an evaluator function of its own; give the eval one and the case `data`"
    return f"{shown(tag)} is not a kind of evaluator{nearest(tag, expected.replace(chr(39), '').split(', '))}"


def _walk(annotation: Any, location: tuple[int | str, ...]) -> tuple[str, Any]:
    """The field that a location names, as JavaScript would write it, and the annotation of the object it is in."""
    field, parent = "", annotation
    for step in location:
        if tagged := _tagged(annotation, step):
            annotation = tagged
            continue
        field = step_into(field, step)
        parent, annotation = annotation, inner(annotation, step)
    return field, parent


def _tagged(annotation: Any, step: int | str) -> Any:
    """The member of a union that pydantic names by its `kind`; None when the step is not a kind."""
    return next((member for member in members(annotation) if _kind(member) == step), None)


def _kind(annotation: Any) -> str | None:
    model = model_of(annotation)
    field = model.model_fields.get("kind") if model else None
    return None if field is None else field.default


def _half_pairs(value: JsonValue, field: str) -> Iterator[str]:
    """The fields of strings (or keys) that hold half of a surrogate pair, which UTF-8 cannot store."""
    if isinstance(value, str):
        if re.search("[\ud800-\udfff]", value):
            yield field
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _half_pairs(member, step_into(field, index))
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _half_pairs(key, field)
            yield from _half_pairs(member, step_into(field, key))
