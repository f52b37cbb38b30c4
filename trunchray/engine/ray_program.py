"""A Python evaluation's code on its way to workers in other processes."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ray import cloudpickle

from trunchray.engine.program import Program
from trunchray.errors import UsageError

_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def packed(program: Program) -> bytes:
    """The program as workers unpickle it; of the modules that define it, those that are not installed go along.

    Raises:
        UsageError: it holds something that cannot be sent elsewhere: an open connection, say.
    """
    pickler: Any = cloudpickle
    try:
        with _by_value([sys.modules[name] for name in sorted(program.modules) if name in sys.modules]):
            return pickler.dumps(program)
    except Exception as e:
        raise UsageError(
            f"the task and its checks cannot be sent to Ray workers: {type(e).__name__}: {e}; make what cannot be "
            "pickled inside the task, or use pool='local'"
        ) from e


@contextmanager
def _by_value(modules: list[ModuleType]) -> Generator[None]:
    """Have these modules pickled as what they hold, not as names that have to be importable elsewhere."""
    own = [module for module in modules if module.__name__ != "__main__" and not _is_installed(module)]
    pickler: Any = cloudpickle
    try:
        for module in own:
            pickler.register_pickle_by_value(module)
        yield
    finally:
        for module in own:
            pickler.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    """Whether every environment with the same packages has the module."""
    file = getattr(module, "__file__", None)
    return file is None or any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)
