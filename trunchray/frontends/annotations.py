"""What annotations say of the values inside a value."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel


def members(annotation: Any) -> tuple[Any, ...]:
    """The annotations of a union; empty when it is none."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()


def inner(annotation: Any, step: int | str) -> Any:
    """The annotation of a member of what `annotation` describes; None when there is none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return inner(arguments[0], step)
    if origin in (Union, UnionType):
        return next((found for each in arguments if (found := inner(each, step)) is not None), None)
    if origin in (list, tuple):
        return arguments[0]
    if origin is dict:
        return arguments[1]
    model = model_of(annotation)
    fields = model.model_fields.items() if model else ()
    return next((field.annotation for name, field in fields if (field.alias or name) == step), None)


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The annotation itself when it is a model."""
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return cast("type[BaseModel]", annotation) if is_model else None


def field_names(annotation: Any) -> list[str]:
    """The fields that may be written in an object of this shape; of a union, those of the first model in it."""
    model = model_of(annotation)
    if model is None:
        return next((names for member in members(annotation) if (names := field_names(member))), [])
    return [field.alias or name for name, field in model.model_fields.items()]
