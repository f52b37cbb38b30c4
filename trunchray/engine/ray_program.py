"""A Python evaluation's code on its way to workers in other processes."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ray import cloudpickle

from trunchray.adapters.raised_at import INSTALLED, OURS
from trunchray.engine.program import Program
from trunchray.errors import UsageError


def packed(program: Program) -> bytes:
    """The program as workers unpickle it, together with all code beside it that is not installed.

    Raises:
        UsageError: it holds something that cannot be sent elsewhere: an open connection, say.
    """
    pickler: Any = cloudpickle
    try:
        with _by_value(_beside(program.modules)):
            return pickler.dumps(program)
    except Exception as e:
        raise UsageError(
            f"the task and its checks cannot be sent to Ray workers: {type(e).__name__}: {e}; make what cannot be "
            "pickled inside the task, or use pool='local'"
        ) from e


def _beside(names: frozenset[str]) -> list[ModuleType]:
    """These modules and all others that were loaded from their folders and below, but for what is installed."""
    files = {module: Path(file).resolve() for module in tuple(sys.modules.values()) if (file := _file(module))}
    folders = {files[module].parent for name in names if (module := sys.modules.get(name)) in files and module}
    return [
        module
        for module, file in files.items()
        if module.__name__ != "__main__"
        and any(file.is_relative_to(folder) for folder in folders)
        and not any(file.is_relative_to(folder) for folder in (*INSTALLED, OURS))
    ]


def _file(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None)


@contextmanager
def _by_value(modules: list[ModuleType]) -> Generator[None]:
    """Have these modules pickled as what they hold, not as names that have to be importable elsewhere."""
    pickler: Any = cloudpickle
    known = pickler.list_registry_pickle_by_value()
    own = [module for module in modules if module.__name__ not in known]
    for module in own:
        pickler.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            pickler.unregister_pickle_by_value(module)
