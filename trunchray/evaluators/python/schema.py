"""The check that the output has a shape: `fits_schema`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, get_args, get_origin
from warnings import catch_warnings, simplefilter

from pydantic import BaseModel, JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from trunchray.adapters.source_code import described
from trunchray.core.check_result import CheckResult
from trunchray.core.plain import plain
from trunchray.core.record import RunRecord
from trunchray.evaluators.python.helper import Helper
from trunchray.evaluators.python.reading import scalar
from trunchray.evaluators.python.showing import clean, shown

SHOWN = 3
"""How many things that do not fit an explanation names."""


def fits_schema(schema: object) -> FitsSchema:
    """The output satisfies a schema; an explanation names the first things that do not fit.

    A schema is a pydantic model, another type or a `TypeAdapter`, which the output's JSON must fit strictly (no text
    for a number); a JSON Schema as a dict; or a function, async or not, that is given the output. The function returns
    None, True or no issues when it fits; False or a list of issues when it does not, as it may raise them; or, as
    Standard Schema has it, `{issues}`.
    """
    return FitsSchema(schema)


@dataclass(frozen=True)
class FitsSchema(Helper):
    schema: Any

    def problem(self) -> str | None:
        if isinstance(self.schema, Mapping):
            return _json_schema().schema_problem(self.schema)
        if not _is_type(self.schema):
            wanted = "a pydantic model, a type, a TypeAdapter, a JSON Schema as a dict, or a function"
            return None if callable(self.schema) else f"fits_schema() takes {wanted} (got {self.schema!r})"
        try:
            _adapter(self.schema)
        except (PydanticUserError, NameError, TypeError) as e:
            return f"not a type that pydantic knows: {e}"
        return None

    @property
    def identity(self) -> JsonValue:
        """A type by its source, and what pydantic makes of it as a JSON Schema, if it can."""
        if not _is_type(self.schema):
            return super().identity
        return ["FitsSchema", _type(self.schema), _shape(_adapter(self.schema))]

    def __call__(self, run: RunRecord) -> CheckResult | Awaitable[CheckResult]:
        if not _is_type(self.schema) and not isinstance(self.schema, Mapping):
            return _of_function(self.schema, run.output)
        if _is_model(self.schema) and isinstance(run.output, self.schema):
            return _result([])  # that is how it came to be
        try:
            value = plain(run.output)
        except ValueError as e:
            return CheckResult.failed(clean(f"output has no JSON form: {e}"))
        return _result(self._issues(value))

    def _issues(self, value: JsonValue) -> Sequence[str]:
        if isinstance(self.schema, Mapping):
            return _json_schema().schema_issues(self.schema, value)
        try:
            _adapter(self.schema).validate_json(json.dumps(value), strict=True)
        except ValidationError as e:
            return [_issue(error) for error in e.errors(include_url=False, include_context=False)]
        return []


def _json_schema():
    from trunchray.evaluators.python import json_schema  # noqa: PLC0415 - takes a fifth of a second

    return json_schema


def _is_type(schema: object) -> bool:
    return isinstance(schema, type | TypeAdapter) or get_origin(schema) is not None


def _type(schema: object) -> JsonValue:
    """What tells one type from another, whichever name the module has that it comes from."""
    if (origin := get_origin(schema)) is not None:
        return [_type(origin), *map(_type, get_args(schema))]
    return described(schema) if isinstance(schema, type) else shown(schema)


def _is_model(schema: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _adapter(schema: Any) -> TypeAdapter[Any]:
    return schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)


def _shape(adapter: TypeAdapter[Any]) -> JsonValue:
    """Its JSON Schema; None of what has none."""
    with catch_warnings():
        simplefilter("ignore")  # about defaults that have no JSON form
        try:
            return adapter.json_schema()
        except PydanticUserError:
            return None


def _issue(error: ErrorDetails) -> str:
    return f"{'.'.join(map(str, error['loc'])) or 'output'}: {error['msg']}"


def _result(issues: Sequence[str]) -> CheckResult:
    if not issues:
        return CheckResult(passed=True, value=1.0)
    more = f" and {len(issues) - SHOWN} more" if len(issues) > SHOWN else ""
    return CheckResult.failed(clean("; ".join(issues[:SHOWN]) + more))


def _of_function(schema: Any, output: object) -> CheckResult | Awaitable[CheckResult]:
    found = schema(output)
    return _awaited(found) if inspect.isawaitable(found) else _read(found)


async def _awaited(found: Awaitable[object]) -> CheckResult:
    return _read(await found)


def _read(found: Any) -> CheckResult:
    """What a function says of the output, which is issues or none."""
    standard = isinstance(found, Mapping) and found.keys() & {"issues", "value"}
    issues: Any = scalar(found.get("issues") if standard else found)
    match issues:
        case None | True | [] | ():
            return _result([])
        case False | "":
            return CheckResult.failed("the schema does not fit")
        case str():
            return _result([issues])
        case list() | tuple():
            return _result([issue if isinstance(issue, str) else shown(issue) for issue in issues])
        case _:
            return CheckResult.failed(f"the schema returned {shown(found)}; it returns None, True, False or issues")
