"""What authors may write, as shapes: plain JSON goes in, a typed value or a list of problems comes out."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from trunchray.core import javascript
from trunchray.core.case import ID_PATTERN
from trunchray.errors import Problem
from trunchray.frontends.benchmark.complaints import complaints, too_deep
from trunchray.frontends.benchmark.position import Position, shown

T = TypeVar("T")


class Authored(BaseModel):
    """Base of what authors write: camel case, immutable, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Shape(Generic[T]):
    """A shape of plain JSON, made from a type annotation; nothing is converted to fit it."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._adapter: TypeAdapter[T] = TypeAdapter(annotation)

    def read(self, value: JsonValue, place: Position, found: list[Problem]) -> T | None:
        """The typed value; None when `value` does not fit, and then `found` has got the reasons."""
        try:
            return self._adapter.validate_json(_text(value), strict=True, by_alias=True, by_name=False)
        except RecursionError:
            found.append(too_deep(place))
        except ValidationError as e:
            found += complaints(e, self._annotation, value, place)
        return None


def _text(value: JsonValue) -> bytes | str:
    """JSON text; the slower writer can also write what no shape accepts: halves of surrogate pairs."""
    try:
        return to_json(value)
    except ValueError:
        return json.dumps(value)


def bad_id(value: str) -> str | None:
    """Why `value` cannot be the name of a case, an eval, a job or a source; None when it can."""
    if re.fullmatch(ID_PATTERN, value):
        return None
    return (
        f"{shown(value)} is not a valid id: start with a lower-case letter or digit, go on with lower-case "
        "letters, digits, '.', '_' and '-', at most 120 characters"
    )


def _identifier(value: str) -> str:
    if complaint := bad_id(value):
        raise ValueError(complaint)
    return value


def _not_blank(value: str) -> str:
    if not javascript.trim(value):
        raise ValueError("must not be empty")
    return value


def no_duplicates(values: list[str]) -> list[str]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ValueError(f"{shown(value)} is listed twice; remove one")
    return values


Id = Annotated[str, AfterValidator(_identifier)]
Text = Annotated[str, AfterValidator(_not_blank)]
"""Not empty after JavaScript's `trim()`; kept as written."""
ToolNames = Annotated[list[str], AfterValidator(no_duplicates)]
