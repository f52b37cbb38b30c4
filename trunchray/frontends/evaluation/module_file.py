"""Python files as modules, wherever they are."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from trunchray.adapters.source_code import qualified
from trunchray.core.excerpt import excerpt
from trunchray.errors import EvalFailure, SpecError


def import_file(path: Path) -> ModuleType:
    """The file as a module, imported anew; it finds what is beside it, and what is in the current directory.

    A file of a package is imported as a part of that package. The module stays in `sys.modules`, where classes that it
    defines are looked up.

    Raises:
        SpecError: there is no such file, or it raises or ends the process while it is imported.
        KeyboardInterrupt: as it is raised.
    """
    file = path.absolute()
    if not file.is_file():
        what = "it is a folder" if file.is_dir() else "there is no such file"
        raise SpecError(f"{str(path)!r}: {what}; name a Python file that holds an evaluation", code="EVAL_NOT_FOUND")
    name, root = qualified(file)
    _look_first_in(root, Path.cwd())
    try:
        return _executed(_free_name(name, file), file)
    except KeyboardInterrupt:
        raise
    except SystemExit as e:
        raise SpecError(
            f"{str(path)!r} ends the process while it is imported (SystemExit: {e.code!r}){_where(e)}; put what is not "
            'for import under `if __name__ == "__main__":`',
            code="EVAL_IMPORT",
        ) from e
    except EvalFailure as e:
        raise SpecError(
            f"{str(path)!r} runs an evaluation while it is imported, which failed; assign the mapping to `evaluation` "
            "instead of calling evaluate with it",
            code="EVAL_IMPORT",
        ) from e
    except BaseException as e:  # pytest's own outcomes, for one, are no Exceptions
        raise SpecError(f"{str(path)!r} cannot be imported: {raised(e)}", code="EVAL_IMPORT") from e


def raised(error: BaseException) -> str:
    """What somebody's code raised, and where."""
    said = excerpt(str(error), 1000)
    return f"{type(error).__name__}{f': {said}' if said else ''}{_where(error)}"


def _where(error: BaseException) -> str:
    """The place that raised it, when that is in anybody's file."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    if isinstance(error, SyntaxError) or not frames or frames[-1].filename == __file__:
        return ""
    return f" ({frames[-1].filename}:{frames[-1].lineno})"


def _free_name(name: str, file: Path) -> str:
    """The name, unless it is another module's: replacing that one would break whoever uses it."""
    package, _, own = name.rpartition(".")
    if package:
        importlib.import_module(package)
    other = sys.modules.get(name)
    taken = other is not None and getattr(other, "__file__", None) != str(file)
    if not taken and (package or name not in sys.stdlib_module_names):
        return name
    return f"{package}.evaluation_{own}" if package else f"evaluation_{own}"


def _executed(name: str, file: Path) -> ModuleType:
    spec = spec_from_file_location(name, file, loader=SourceFileLoader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(file)!r} is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _look_first_in(*folders: Path) -> None:
    """Look for modules in these folders first, as Python itself does for a script.

    Processes that are started from here do so as well: Ray's workers, on this machine.
    """
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    known = dict.fromkeys([*map(str, folders), *filter(None, before)])
    os.environ["PYTHONPATH"] = os.pathsep.join(known)
