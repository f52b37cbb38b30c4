"""Where in somebody's own code an error was raised."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from traceback import walk_tb

INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Where every environment with the same packages has the same modules."""
OURS = Path(__file__).resolve().parents[1]


def raised_at(error: BaseException) -> str:
    """` (file:line)` of the innermost line that is neither ours nor in an installed package; "" where there is none.

    Files below the current directory are named from there.
    """
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    file, line = next(((file, line) for file, line in reversed(lines) if _is_own(file)), ("", 0))
    return f" ({named_from_here(file)}:{line})" if file else ""


def _is_own(file: str) -> bool:
    if file.startswith("<frozen"):
        return False
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder) for folder in (*INSTALLED, OURS))


def named_from_here(file: str) -> str:
    """A path below the current directory as it leads from there; any other, and a URI, as it is."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
