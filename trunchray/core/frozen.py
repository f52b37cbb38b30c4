"""Bases of every value that is stored, hashed or sent between processes."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer
from pydantic.alias_generators import to_camel


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CamelFrozen(Frozen):
    """The same, written as JavaScript writes it: `max_steps` is stored as `maxSteps`."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class Sparse(Frozen):
    """The same, without the fields `unless_none` in its JSON where they are None: what it was before they came."""

    unless_none: ClassVar[frozenset[str]]

    @model_serializer(mode="wrap")
    def _what_is_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        shown: dict[str, Any] = handler(self)
        return {name: value for name, value in shown.items() if value is not None or name not in self.unless_none}


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong with a value, as `<where>: <what>`; `where` is empty for the value as a whole."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
