"""What tells one piece of somebody's Python from another: its source as far as Python knows it, else its byte code.

Told are functions with their defaults and what they close over, bound methods, partials, classes and instances. What
they reach through global names is not.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodDescriptorType, MethodType

from pydantic import BaseModel, JsonValue

from trunchray.core.digest import digest

Seen = frozenset[int]
"""What is being told of right now, by `id`: a function may close over itself."""

DEEPEST = 100
"""Things within things beyond which only the class is told."""


def code_digest(value: object) -> str:
    """64 hex digits of what a callable is: the same as long as its code and what it holds are."""
    return digest(described(value))


def described(value: object) -> JsonValue:
    """All that is told of a value, as JSON: of a callable object its class and attributes, of other ones the class."""
    state = vars(value) if hasattr(value, "__dict__") and callable(value) and _is_instance(value) else None
    if state is None or is_dataclass(value):
        return _told(value, frozenset())
    return [_class(type(value)), _told(dict(state), frozenset({id(value)}))]


def _is_instance(value: object) -> bool:
    return not isinstance(value, type | FunctionType | MethodType | functools.partial)


def _told(value: object, seen: Seen) -> JsonValue:
    if id(value) in seen:
        return "itself"
    if len(seen) >= DEEPEST:
        return _named(value)
    try:
        return _whole(value, seen | {id(value)})
    except Exception:  # whatever an object of somebody else's raises when it is looked at
        return _named(value)


def _whole(value: object, inside: Seen) -> JsonValue:
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() if not isinstance(value, Enum):
            return repr(value)
        case list() | tuple():
            return [type(value).__name__, *(_told(item, inside) for item in value)]
        case set() | frozenset():
            return [type(value).__name__, *sorted(str(_told(item, inside)) for item in value)]
        case Mapping():
            return ["mapping", *([_told(key, inside), _told(item, inside)] for key, item in value.items())]
        case _:
            return _code(value, inside)


def _code(value: object, seen: Seen) -> JsonValue:
    match value:
        case FunctionType():
            return _function(value, seen)
        case MethodType():
            return ["method", _told(value.__func__, seen), _told(value.__self__, seen)]
        case functools.partial():
            return ["partial", *(_told(part, seen) for part in (value.func, value.args, value.keywords))]
        case type():
            return _class(value)
        case CodeType():
            return _byte_code(value, seen)
        case _:
            return _instance(value, seen)


def _function(function: FunctionType, seen: Seen) -> JsonValue:
    code = function.__code__
    source = _source(code)
    # Several lambdas can share a line: what they name and hold tells them apart.
    written = _byte_code(code, seen) if source is None else [source, *_held(code, seen)]
    cells = [_told(_content(cell), seen) for cell in function.__closure__ or ()]
    return [written, _told(function.__defaults__, seen), _told(function.__kwdefaults__, seen), cells]


def _held(code: CodeType, seen: Seen) -> list[JsonValue]:
    if code.co_name != "<lambda>":
        return []
    return [_told(code.co_names, seen), _told(code.co_consts, seen), _told(code.co_varnames, seen)]


def _byte_code(code: CodeType, seen: Seen) -> JsonValue:
    return [code.co_name, code.co_code.hex(), *(_told(part, seen) for part in (code.co_consts, code.co_names))]


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _class(kind: type) -> JsonValue:
    return [f"{kind.__module__}.{kind.__qualname__}", _source(kind)]


def _instance(value: object, seen: Seen) -> JsonValue:
    """Values by their class and fields; of anything else, such as a client or a lock, the class alone."""
    match value:
        case BuiltinFunctionType() | MethodDescriptorType():
            return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
        case Enum():
            return [_class(type(value)), value.name]
        case BaseModel():
            return [_class(type(value)), _told(dict(value), seen)]
        case _ if is_dataclass(value):
            return [_class(type(value)), [[f.name, _told(getattr(value, f.name), seen)] for f in fields(value)]]
        case _:
            return _named(value)


def _named(value: object) -> str:
    """By its class alone."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _source(code: CodeType | type) -> str | None:
    """None where there is none to be found, as in a console or an extension module."""
    try:
        return textwrap.dedent(inspect.getsource(code)).strip()
    except (OSError, TypeError, SyntaxError):
        return None
