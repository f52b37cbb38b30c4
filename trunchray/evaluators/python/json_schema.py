"""JSON Schema, by the package `jsonschema`. Nothing is fetched: a reference to somewhere else cannot be followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, relevance
from jsonschema.validators import validator_for
from pydantic import JsonValue
from referencing import Registry


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why it is not a JSON Schema, of the draft that its `$schema` names or else of 2020-12; None when it is one."""
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as e:
        return f"not a JSON Schema: {e.json_path}: {e.message}"
    return None


def schema_issues(schema: Mapping[str, Any], value: JsonValue) -> list[str]:
    """What in a value does not fit, the most telling first."""
    kind = validator_for(schema, default=Draft202012Validator)
    found: list[ValidationError] = list(kind(schema, registry=Registry()).iter_errors(value))
    return [f"{error.json_path}: {error.message}" for error in sorted(found, key=relevance, reverse=True)]
