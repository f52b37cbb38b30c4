"""A Python file → the spec of the evaluation that it exports.

Read are two names, `evaluation` and `default`: the first that is a spec; else the first that is a function without
arguments, which has to return one. A spec is a mapping with at least a name, a task and data.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunchray.adapters.local_path import local_path
from trunchray.adapters.location import is_uri
from trunchray.core.evaluation import EvaluationReport
from trunchray.core.excerpt import excerpt
from trunchray.core.names import nearest
from trunchray.errors import SpecError, TrunchrayError, UsageError
from trunchray.frontends.evaluation.evaluate import evaluate
from trunchray.frontends.evaluation.module_file import import_file, raised

_EXPORTS = ("evaluation", "default")
_NEEDED = ("name", "task", "data")
_ASSIGN = "assign a mapping with name, task and data to `evaluation`, and do not call evaluate with it"


@dataclass(frozen=True, slots=True)
class Exported:
    """What a file exports: a spec, or a function that makes one. `name` is what it is exported as."""

    path: Path
    name: str
    value: Mapping[str, Any] | Callable[[], object]

    async def spec(self) -> dict[str, Any]:
        """The spec. A relative path of data that is beside the file leads there, from wherever it is run.

        A function is called anew each time; an async one on the running event loop.

        Raises:
            SpecError: the function raises or ends the process, or returns something else.
            UsageError: the spec has a key that no evaluation has.
        """
        made = self.value if isinstance(self.value, Mapping) else await self._called(self.value)
        if not isinstance(made, Mapping) or not _is_spec(made):
            raise SpecError(f"{str(self.path)!r}: {self.name}() returned {_described(made)}", code="EVAL_NO_SPEC")
        spec = {str(key): value for key, value in made.items()}
        _check_keys(spec, self.path)
        return spec | {"data": _data(spec["data"], self.path.absolute().parent)}

    async def _called(self, make: Callable[[], object]) -> object:
        try:
            made = make()
            return await made if inspect.isawaitable(made) else made
        except TrunchrayError:
            raise
        except (Exception, SystemExit) as e:
            raise SpecError(f"{str(self.path)!r}: {self.name}() raised {raised(e)}", code="EVAL_IMPORT") from e


def load(path: str | Path) -> Exported:
    """What the file exports; the module is executed.

    Raises:
        SpecError: there is no such file, it cannot be imported, or it exports no spec.
    """
    if exported := found(path):
        return exported
    raise SpecError(f"{str(path)!r} {lacking({})}", code="EVAL_NO_SPEC")


def found(path: str | Path) -> Exported | None:
    """The same; None where the file exports neither name.

    Raises:
        SpecError: there is no such file, it cannot be imported, or what it exports is no spec.
    """
    file = local_path(path) if isinstance(path, str) else path
    module = import_file(file)
    try:
        exports = {name: getattr(module, name) for name in _EXPORTS if hasattr(module, name)}
        for test in (_is_spec, _takes_nothing):
            for name, value in exports.items():
                if test(value):
                    return Exported(file, name, value)
    except (Exception, SystemExit) as e:  # a `__getattr__` of the module, or a mapping of its own
        raise SpecError(f"{str(file)!r} cannot be read: {raised(e)}", code="EVAL_IMPORT") from e
    if not exports:
        return None
    raise SpecError(f"{str(file)!r} {lacking(exports)}", code="EVAL_NO_SPEC")


def _is_spec(value: object) -> bool:
    return isinstance(value, Mapping) and all(key in value for key in _NEEDED)


def _check_keys(spec: Mapping[str, object], path: Path) -> None:
    """Refuse what `evaluate` does not take."""
    known = inspect.signature(evaluate).parameters
    for key in spec:
        if key not in known:
            raise UsageError(f"{str(path)!r}: unknown key {key!r} in the spec{nearest(key, known)}")


def _takes_nothing(value: object) -> bool:
    if not callable(value):
        return False
    try:
        inspect.signature(value).bind()
    except (TypeError, ValueError):
        return False
    return True


def lacking(found: Mapping[str, object]) -> str:
    """Why none of what a file exports is a spec."""
    if not found:
        return f"exports no spec; {_ASSIGN}"
    reasons = [f"`{name}` is {_described(value)}" for name, value in found.items()]
    return f"exports no spec: {', and '.join(reasons)}"


def _described(value: object) -> str:
    if isinstance(value, EvaluationReport):
        return f"what a call has found; {_ASSIGN}"
    if isinstance(value, Mapping):
        missing = [repr(key) for key in _NEEDED if key not in value]
        return f"a mapping without {', '.join(missing)}"
    if callable(value):
        return "a function that needs arguments; give one that needs none, or a spec"
    return f"{excerpt(repr(value), 60)}, not a mapping with name, task and data"


def _data(data: object, folder: Path) -> object:
    """A relative path as one that leads from anywhere, when there is such a file beside the spec."""
    if not isinstance(data, str | os.PathLike):
        return data
    path = os.fspath(data)
    if not isinstance(path, str) or is_uri(path):
        return data
    beside = folder / local_path(path)
    return str(beside) if beside.exists() else data
