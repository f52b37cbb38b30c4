"""What distinguishes one piece of Python code from another: its source where Python has it, else its byte code.

Described are functions with their defaults and what they close over, bound methods, partials, classes and instances;
not what they reach through global names.
"""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodDescriptorType, MethodType

from pydantic import BaseModel, JsonValue

from trunchray.core.digest import digest

Seen = frozenset[int]
"""What is being described right now, by `id`: a function may close over itself."""

DEEPEST = 100
"""Levels of nesting below which only the class is described."""


def code_digest(value: object) -> str:
    """64 hex digits of `described`: the same as long as the code and what it holds are the same."""
    return digest(described(value))


def module_name(name: str) -> str:
    """The name of a module; of the program that Python was started with, `__main__`, the one that its file gives it.

    So that the same file is the same code, whether it is run or imported.
    """
    file = getattr(sys.modules.get(name), "__file__", None) if name == "__main__" else None
    return qualified(Path(file).absolute())[0] if isinstance(file, str) else name


def qualified(file: Path) -> tuple[str, Path]:
    """The name of the module in a file, with the packages that it is in, and the folder where that is looked up."""
    parts, folder = [file.stem.replace(".", "_")], file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def described(value: object) -> JsonValue:
    """A value as JSON: a callable object by its class and attributes, any other object by its class."""
    state = vars(value) if hasattr(value, "__dict__") and callable(value) and _is_instance(value) else None
    if state is None or is_dataclass(value):
        return _described(value, frozenset())
    return [_class(type(value)), _described(dict(state), frozenset({id(value)}))]


def _is_instance(value: object) -> bool:
    return not isinstance(value, type | FunctionType | MethodType | functools.partial)


def _described(value: object, seen: Seen) -> JsonValue:
    if id(value) in seen:
        return "itself"
    if len(seen) >= DEEPEST:
        return _class_name(value)
    try:
        return _whole(value, seen | {id(value)})
    except Exception:  # whatever an object of somebody else's raises when it is looked at
        return _class_name(value)


def _whole(value: object, inside: Seen) -> JsonValue:
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() if not isinstance(value, Enum):
            return repr(value)
        case list() | tuple():
            return [type(value).__name__, *(_described(item, inside) for item in value)]
        case set() | frozenset():
            return [type(value).__name__, *sorted(str(_described(item, inside)) for item in value)]
        case Mapping():
            return ["mapping", *([_described(key, inside), _described(item, inside)] for key, item in value.items())]
        case _:
            return _code(value, inside)


def _code(value: object, seen: Seen) -> JsonValue:
    match value:
        case FunctionType():
            return _function(value, seen)
        case MethodType():
            return ["method", _described(value.__func__, seen), _described(value.__self__, seen)]
        case functools.partial():
            return ["partial", *(_described(part, seen) for part in (value.func, value.args, value.keywords))]
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
    cells = [_described(_content(cell), seen) for cell in function.__closure__ or ()]
    return [written, _described(function.__defaults__, seen), _described(function.__kwdefaults__, seen), cells]


def _held(code: CodeType, seen: Seen) -> list[JsonValue]:
    if code.co_name != "<lambda>":
        return []
    return [_described(code.co_names, seen), _described(code.co_consts, seen), _described(code.co_varnames, seen)]


def _byte_code(code: CodeType, seen: Seen) -> JsonValue:
    return [code.co_name, code.co_code.hex(), *(_described(part, seen) for part in (code.co_consts, code.co_names))]


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _class(kind: type) -> JsonValue:
    return [f"{module_name(kind.__module__)}.{kind.__qualname__}", _source(kind)]


def _instance(value: object, seen: Seen) -> JsonValue:
    """Values by their class and fields; of anything else, such as a client or a lock, the class alone."""
    match value:
        case BuiltinFunctionType() | MethodDescriptorType():
            return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
        case Enum():
            return [_class(type(value)), value.name]
        case BaseModel():
            return [_class(type(value)), _described(dict(value), seen)]
        case _ if is_dataclass(value):
            return [_class(type(value)), [[f.name, _described(getattr(value, f.name), seen)] for f in fields(value)]]
        case _:
            return _class_name(value)


def _class_name(value: object) -> str:
    """A value by its class alone."""
    return f"{module_name(type(value).__module__)}.{type(value).__qualname__}"


def _source(code: CodeType | type) -> str | None:
    """None where there is none to be found, as in a console or an extension module."""
    try:
        return textwrap.dedent(inspect.getsource(code)).strip()
    except (OSError, TypeError, SyntaxError):
        return None
