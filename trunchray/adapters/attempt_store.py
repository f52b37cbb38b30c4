"""Where one attempt of a skill eval is kept, on any store.

prompt.txt, case.json                written first
transcript.jsonl, stderr.txt, cwd/   what came of it
timing.json                          written last: with it the attempt is complete, and nothing of it changes again
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import JsonValue, ValidationError

from trunchray.adapters.scratch import scratch
from trunchray.adapters.store import Store
from trunchray.adapters.tree import Survey, TreeCaps
from trunchray.core.attempt import AttemptTiming
from trunchray.core.frozen import first_problem
from trunchray.errors import StoreError

TIMING = "timing.json"
TRANSCRIPT = "transcript.jsonl"
STDERR = "stderr.txt"
WORKSPACE = "cwd"
_UPLOADS = 8
"""Files on their way at a time."""
_CHUNK = 1 << 20


class AttemptStore:
    """One attempt's folder. Its methods block.

    Raises:
        UsageError: nothing can be kept under this URI.
        StoreError: the store refused or lost something; from every method.
    """

    def __init__(self, uri: str) -> None:
        self._store = Store(uri)

    @property
    def uri(self) -> str:
        return self._store.uri

    def timing(self) -> AttemptTiming | None:
        """What is known of it when it is complete; None when it is not."""
        try:
            return AttemptTiming.model_validate_json(self._store.read(TIMING))
        except FileNotFoundError:
            return None
        except ValidationError as e:
            where = f"{self.uri}/{TIMING}"
            raise StoreError(f"{where} cannot be read ({first_problem(e)}); move its folder elsewhere to run it") from e

    def begin(self, case: JsonValue, prompt: str) -> None:
        """Say what is asked. What an attempt left here that never came to its end is removed."""
        if self._store.folder:
            shutil.rmtree(self._store.folder / WORKSPACE, ignore_errors=True)
        for path in self._store.find():
            self._store.remove(path)
        if case is not None:
            self._store.write(
                "case.json", f"{json.dumps(case, ensure_ascii=False, indent=2)}\n".encode(errors="replace")
            )
        self._store.write("prompt.txt", prompt.encode(errors="replace"))

    def keep(self, stdout: Path, stderr: Path, workspace: Path, caps: TreeCaps) -> Survey:
        """Keep what came of it; what there is of the workspace, as it is kept.

        Links are kept on this machine. Other stores have none: there a link to a file is a copy of it, and one to a
        folder is left out.
        """
        found = Survey.of(workspace, caps)
        for source, name in ((stdout, TRANSCRIPT), (stderr, STDERR)):
            if source.exists():
                self._store.put(name, source)
        try:
            if self._store.folder:
                found.copy(workspace, self._store.folder / WORKSPACE)
            else:
                self._upload(workspace, found)
        except OSError as e:
            raise StoreError(f"{self.uri}/{WORKSPACE}: {e.strerror or e}") from e
        return found

    def finish(self, timing: AttemptTiming) -> AttemptTiming:
        """Make it complete; what counts, which is somebody else's when that was here first."""
        content = json.dumps(timing.model_dump(mode="json"), ensure_ascii=False, indent=2)
        if self._store.create(TIMING, f"{content}\n".encode(errors="replace")):
            return timing
        return self.timing() or timing

    def printed(self) -> Iterator[bytes]:
        """What is kept of the transcript, in pieces; nothing where there is none."""
        try:
            if self._store.folder:
                yield from _pieces(self._store.folder / TRANSCRIPT)
                return
            with scratch() as folder:
                self._store.fetch(TRANSCRIPT, folder / TRANSCRIPT)
                yield from _pieces(folder / TRANSCRIPT)
        except FileNotFoundError:
            return
        except OSError as e:
            raise StoreError(f"{self.uri}/{TRANSCRIPT}: {e.strerror or e}") from e

    def _upload(self, workspace: Path, found: Survey) -> None:
        sources = {path: workspace / path for path in found.files}
        for path, to in found.links.items():
            if (workspace / path).is_file():
                sources[path] = (workspace / path).resolve()
            else:
                found.left_out.append(f"{path}: a link to {to!r}, which is no file")
        for path in [path for path in sources if not _can_be_named(path)]:
            found.left_out.append(f"{path!r}: a name that this store cannot have")
            del sources[path]
        with ThreadPoolExecutor(_UPLOADS) as threads:
            tuple(threads.map(self._store.put, [f"{WORKSPACE}/{path}" for path in sources], sources.values()))


def _can_be_named(path: str) -> bool:
    """Whether an object can have that name: text without control characters."""
    return all(" " <= letter != "\x7f" and not "\ud800" <= letter <= "\udfff" for letter in path)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece
