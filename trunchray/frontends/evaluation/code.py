"""Which code an evaluation runs: what it is called, the modules that define it, and a hash that changes with them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from types import MethodType
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.source_code import code_digest, module_name
from trunchray.core.digest import digest, sha256

DEEPEST = 100
"""Wrappers around a function beyond which no function is looked for."""


def modules_of(objects: Iterable[object]) -> frozenset[str]:
    """The names of the modules in which these callables, agents and so on were written."""
    return frozenset(name for each in objects if (name := _module(_origin(each))))


def program_digest(objects: Iterable[object]) -> str:
    """64 hex digits that change with the objects and with the files of the modules that define them.

    The files, because what a function calls is as much a part of it as its own lines.
    """
    known = list(objects)
    files: dict[str, JsonValue] = {module_name(name): _file_digest(name) for name in modules_of(known)}
    return digest([[code_digest(each) for each in known], files])


def named(task: object) -> str:
    """`<module>:<qualified name>` of a task, for people; an address is itself."""
    if isinstance(task, str):
        return task
    origin = _origin(task)
    return f"{module_name(_module(origin) or '?')}:{getattr(origin, '__qualname__', type(origin).__qualname__)}"


def _origin(value: Any) -> Any:
    """The function or class behind a partial, a bound method, a decorated function or an instance."""
    for _ in range(DEEPEST):
        match value:
            case functools.partial():
                value = value.func
            case MethodType():
                value = value.__func__
            case _ if hasattr(value, "__wrapped__"):
                value = value.__wrapped__
            case _:
                return value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    return type(value)  # which has whatever it is asked for


def _module(origin: Any) -> str | None:
    name = getattr(origin, "__module__", None)
    return name if isinstance(name, str) else None


def _file_digest(module: str) -> str | None:
    """None where there is no file to read, as in a console."""
    file = getattr(sys.modules.get(module), "__file__", None)
    try:
        return sha256(Path(file).read_bytes()) if file else None
    except OSError:
        return None
