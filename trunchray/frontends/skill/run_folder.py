"""Dated run folders: made once, never deleted or overwritten, and gone on with when they were interrupted.

<out>/<YYYYMMDD-HHMMSS>-<label>[-2…]/   run.json, execution-summary.json or triggers-result.json, attempts
    .trunchray/                         the run of the engine: its rows, its report and what workers need
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime

from pydantic import JsonValue
from pydantic_core import from_json

from trunchray.adapters.store import Store
from trunchray.core.staging import ENGINE
from trunchray.core.well_formed import as_file
from trunchray.errors import UsageError

QUESTION = "question"
"""The key of `run.json` that tells what a run asks: 64 hex digits."""
GRADED_BY = "graded_by"
"""The key of the file that ends a run which names the regrade that its grades and grading errors are from."""
_MOST = 999


def engine_run(folder: str) -> str:
    """The engine's run in the folder of a skill eval; any other folder is a run itself, or none.

    Raises:
        UsageError, StoreError: the place cannot be asked.
    """
    return f"{folder.rstrip('/')}/{ENGINE}" if Store(folder).exists(f"{ENGINE}/run.json") else folder


def unfinished(out: Store, label: str, question: str, ending: str) -> Store | None:
    """The latest run of this label that asks the question, if it has not ended.

    It has when there is a file `ending`, unless that counts attempts which could not be kept or graded: those are run
    again, and whoever grades them is asked again. What a regrade could not grade only the regrade mends.
    """
    pattern = re.compile(rf"\d{{8}}-\d{{6}}-{re.escape(label)}(-[2-9]\d*|-1\d+)?")
    for name in sorted(filter(pattern.fullmatch, out.names()), key=_age, reverse=True):
        folder = out.child(name)
        if _asks(folder) == question:
            return None if _has_ended(folder, ending) else folder
    return None


def begin(out: Store, label: str, now: datetime, about: Callable[[str], Mapping[str, JsonValue]]) -> Store:
    """A new folder, which nobody else has; `about` says by its name what `run.json` holds. `now` is local time.

    Raises:
        UsageError: there are too many of this second.
    """
    stem = f"{now:%Y%m%d-%H%M%S}-{label}"
    for number in range(1, _MOST + 1):
        name = stem if number == 1 else f"{stem}-{number}"
        # The token tells our file from an equal one that another command makes in the same second.
        content = as_file({**about(name), "token": uuid.uuid4().hex})
        folder = out.child(name)
        if folder.create("run.json", content):
            return folder
    raise UsageError(f"{out.uri}: has {_MOST} runs {stem!r} already; wait a second")


def _asks(folder: Store) -> str | None:
    """The question of a run; None where nobody can tell."""
    try:
        about = from_json(folder.read("run.json"))
    except (FileNotFoundError, ValueError):
        return None
    return about.get(QUESTION) if isinstance(about, dict) else None


def _has_ended(folder: Store, ending: str) -> bool:
    try:
        told = from_json(folder.read(ending))
    except (FileNotFoundError, ValueError):
        return False
    if not isinstance(told, dict):
        return True
    return not (told.get("not_kept") or (told.get("grading_errors") and not told.get(GRADED_BY)))


def _age(name: str) -> tuple[str, int]:
    """Orders names as their folders were made."""
    number = re.search(r"-(\d{1,3})$", name[16:])
    return name[:15], int(number[1]) if number else 1
