"""An attempt's folder, wherever runs are kept: copied, so that it can be looked at, and given what grading comes to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue, ValidationError

from trunchray.adapters.attempt_store import STDERR, TIMING, TRANSCRIPT, WORKSPACE
from trunchray.adapters.scratch import scratch
from trunchray.adapters.store import Store
from trunchray.adapters.tree import Survey
from trunchray.core.rubric import Grading

GRADING = "grading.json"
ERROR = "grading-error.json"
_DOWNLOADS = 8
"""Files on their way at a time."""
_LOOKED_AT = ("prompt.txt", TRANSCRIPT, STDERR, TIMING)


class AttemptFolder:
    """What is in it is never changed, but for the error of a grading, which is that of the last one. Methods block.

    Raises:
        UsageError: nothing can be kept under this URI.
    """

    def __init__(self, uri: str) -> None:
        self._store = Store(uri)

    @property
    def workspace(self) -> Path | None:
        """The attempt's own workspace, when it is on this machine."""
        return self._store.folder / WORKSPACE if self._store.folder else None

    def is_complete(self) -> bool:
        """Whether there is an attempt that has ended."""
        return self._store.exists(TIMING)

    @contextmanager
    def copied(self) -> Generator[Path]:
        """A copy of what a grader looks at, as long as the block runs, without links that lead out of the workspace.

        Raises:
            StoreError: it cannot be read.
            OSError: it cannot be read or copied on this machine.
        """
        with scratch() as folder:
            (folder / WORKSPACE).mkdir()
            if self._store.folder:
                _copy(self._store.folder, folder)
            else:
                self._fetch(folder)
            yield folder

    def grading(self, grader: str) -> Grading | None:
        """The one that this very grader made before; None when there is none."""
        for name in (GRADING, _beside(grader)):
            try:
                grading = Grading.model_validate_json(self._store.read(name))
            except (FileNotFoundError, ValidationError):  # somebody else's has other keys, or another form
                continue
            if grading.grader == grader:
                return grading
        return None

    def keep(self, grading: Grading) -> None:
        """Store it as `grading.json`; where there is one already, beside it, under a name that tells graders apart."""
        name = _beside(grading.grader) if self._store.exists(GRADING) else GRADING
        self._store.write(name, _written(grading.to_json()))

    def keep_error(self, reason: str) -> None:
        """Store why there are no grades."""
        self._store.write(ERROR, _written({"status": "grading_error", "reason": reason}))

    def _fetch(self, folder: Path) -> None:
        paths = [path for path in self._store.find() if path in _LOOKED_AT or _in_workspace(path)]
        with ThreadPoolExecutor(_DOWNLOADS) as threads:
            tuple(threads.map(self._store.fetch, paths, [folder / path for path in paths]))


def _in_workspace(path: str) -> bool:
    return path.startswith(f"{WORKSPACE}/") and ".." not in path.split("/")


def _copy(source: Path, target: Path) -> None:
    for name in _LOOKED_AT:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    Survey.of(source / WORKSPACE, ignore=frozenset()).copy(source / WORKSPACE, target / WORKSPACE)


def _beside(grader: str) -> str:
    return f"grading-{grader[:12]}.json"


def _written(value: JsonValue) -> bytes:
    return f"{json.dumps(value, ensure_ascii=False, indent=2)}\n".encode(errors="replace")
