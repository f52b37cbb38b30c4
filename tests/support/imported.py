"""Modules that a test has the product import."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def forgotten(folder: Path) -> Generator[None]:
    """What is imported from below the folder is forgotten afterwards, and where modules were looked for."""
    path, environment = list(sys.path), os.environ.get("PYTHONPATH")
    try:
        yield
    finally:
        sys.path[:] = path
        os.environ.pop("PYTHONPATH", None)
        if environment is not None:
            os.environ["PYTHONPATH"] = environment
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
                del sys.modules[name]
