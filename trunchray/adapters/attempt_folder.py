"""The folder of one attempt of a skill eval, on any store. How it is laid out is known here alone.

case.json, prompt.txt                what was asked
transcript.jsonl, stderr.txt, cwd/   what came of it
timing.json                          comes last: with it the attempt is complete, and nothing of the above changes again
grading.json                         the first grading; those of other graders are grading-<12 digits>.json
grading-error.json                   why there is no grading.json
grading-error-<12 digits>.json       why another grader gave none, where there is one

An attempt that is under way has its case and its prompt, and what belongs to `tries`, whose names begin with a dot.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue, ValidationError

from trunchray.adapters.scratch import scratch
from trunchray.adapters.store import Store
from trunchray.adapters.survey import Survey, TreeCaps
from trunchray.adapters.transfers import each
from trunchray.adapters.tree import tree_digest
from trunchray.adapters.tries import TRIES, Tries
from trunchray.core.attempt import AttemptTiming
from trunchray.core.digest import digest
from trunchray.core.frozen import first_problem
from trunchray.core.rubric import Grading
from trunchray.core.well_formed import as_file
from trunchray.errors import StoreError

CASE = "case.json"
PROMPT = "prompt.txt"
TRANSCRIPT = "transcript.jsonl"
STDERR = "stderr.txt"
WORKSPACE = "cwd"
TIMING = "timing.json"
GRADING = "grading.json"
GRADING_ERROR = "grading-error.json"
_LOOKED_AT = (PROMPT, TRANSCRIPT, STDERR, TIMING)
"""Files, besides those of the workspace, that a grader may look at."""
_CHUNK = 1 << 20


class AttemptFolder:
    """One attempt's folder. Its methods block.

    Raises:
        UsageError: nothing can be kept under this URI.
        StoreError: the store refused or lost something; from every method.
    """

    def __init__(self, uri: str) -> None:
        self._store = Store(uri)
        self._tries = Tries(self._store, TIMING)

    @property
    def uri(self) -> str:
        return self._store.uri

    def timing(self) -> AttemptTiming | None:
        """What is known of it when it is complete; None when it is not."""
        content = self._tries.settled()
        try:
            return None if content is None else AttemptTiming.model_validate_json(content)
        except ValidationError as e:
            where = f"{self.uri}/{TIMING}"
            raise StoreError(f"{where} cannot be read ({first_problem(e)}); move its folder elsewhere to run it") from e

    def begin(self, case: JsonValue, prompt: str) -> AttemptWriter:
        """Say what is asked, for those who look meanwhile; who writes what comes of it. None of what is here changes.

        Raises:
            StoreError: also when something is here that no attempt leaves which has not ended.
        """
        if WORKSPACE in self._store.names() and self.timing() is None:
            raise StoreError(f"{self.uri}/{WORKSPACE} is there without {TIMING}; move it elsewhere to run the attempt")
        asked = {PROMPT: prompt.encode(errors="replace")}
        if case is not None:
            asked = {CASE: as_file(case), **asked}
        for name, content in asked.items():
            self._store.create(name, content)  # by whom does not matter: they are the same for all
        return AttemptWriter(self._tries, asked)

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

    @contextmanager
    def copied(self) -> Generator[Path]:
        """A copy of what a grader looks at, as long as the block runs, without links that lead out of the workspace.

        Raises:
            StoreError: it cannot be read, or what every attempt leaves that has ended well is no longer there.
            OSError: it cannot be read or copied on this machine.
        """
        with scratch() as folder:
            if self._store.folder:
                _copy(self._store.folder, folder)
            else:
                self._fetch(folder)
            if lost := [name for name in (TRANSCRIPT, WORKSPACE) if not (folder / name).exists()]:
                raise StoreError(f"{self.uri}/{lost[0]} is gone; put it back, or run the attempt anew elsewhere")
            yield folder

    def digest(self) -> str | None:
        """64 hex digits of what a grader may look at, where it is kept; None when that is not on this machine.

        Raises:
            OSError: it cannot be read.
        """
        return tree_digest(self._store.folder, (*_LOOKED_AT, WORKSPACE)) if self._store.folder else None

    def grading(self, grader: str, attempt: str) -> Grading | None:
        """The one that this very grader made of this very attempt; None when there is none."""
        found = (self._grading(name, grader, attempt) for name in _names(grader, attempt))
        return next(filter(None, found), None)

    def keep_grading(self, made: Grading) -> Grading:
        """Store a grading; the one that counts, which is an earlier one of the same grader and attempt if there is any.

        It becomes `grading.json`. Where that is there already, it is put beside. No grading is ever replaced.
        """
        counts, content = made, as_file(made.to_json())
        names = _names(made.grader, made.attempt)
        for name in names:
            if self._store.create(name, content):  # or somebody else has created the very same
                break
            if found := self._grading(name, made.grader, made.attempt):
                counts = found
                break
        else:
            raise StoreError(f"{self.uri}/{names[-1]} is in the way of a grading and is none; move it elsewhere")
        for name in (GRADING_ERROR, _error_beside(made.grader)):
            self._store.remove(name)
        return counts

    def keep_error(self, reason: str, grader: str) -> None:
        """Store why this grader gave no grades, in place of what it was the last time."""
        content = as_file({"status": "grading_error", "reason": reason})
        if not self._store.exists(GRADING):
            self._store.write(GRADING_ERROR, content)
            if not self._store.exists(GRADING):
                return
            self._store.remove(GRADING_ERROR)  # somebody else gave some meanwhile, and has not seen this
        self._store.write(_error_beside(grader), content)

    def _grading(self, name: str, grader: str, attempt: str) -> Grading | None:
        try:
            found = Grading.model_validate_json(self._store.read(name))
        except (FileNotFoundError, ValidationError):  # somebody else's has other keys, or another form
            return None
        return found if (found.grader, found.attempt) == (grader, attempt) else None

    def _fetch(self, target: Path) -> None:
        (target / WORKSPACE).mkdir()  # a store keeps no folders, so that nobody can tell an empty one from a lost one
        paths = [path for path in self._store.find() if path in _LOOKED_AT or _in_workspace(path)]
        each(lambda path: self._store.fetch(path, target / path), paths)


class AttemptWriter:
    """Keeps what came of an attempt, once it has ended, beside the attempt's own places. Its methods block.

    Raises:
        StoreError: the store refused or lost something; from every method.
    """

    def __init__(self, tries: Tries, asked: Mapping[str, bytes]) -> None:
        self._tries, self._asked = tries, asked
        self._store = tries.begin()

    def keep(self, stdout: Path, stderr: Path, workspace: Path | None, caps: TreeCaps) -> Survey:
        """Keep what came of it; what there is of the workspace, as it is kept: nothing, where that is None.

        Links are kept on this machine. Other stores have none: there a link to a file that is kept is a copy of it,
        and any other is left out.
        """
        found = Survey.of(workspace, caps) if workspace else Survey()
        for name, content in self._asked.items():
            self._store.write(name, content)
        for source, name in ((stdout, TRANSCRIPT), (stderr, STDERR)):
            if source.exists():
                self._store.put(name, source)
        if workspace is None:
            return found
        try:
            if self._store.folder:
                found.copy(workspace, self._store.folder / WORKSPACE, durable=True)
            else:
                self._upload(found.without_links(workspace, caps), found)
        except OSError as e:
            raise StoreError(f"{self._store.uri}/{WORKSPACE}: {e.strerror or e}") from e
        return found

    def finish(self, timing: AttemptTiming) -> bool:
        """Make it complete, with what was kept, whether it counts: not if somebody else's was complete before."""
        return self._tries.complete(self._store, as_file(timing.model_dump(mode="json")).decode())

    def _upload(self, sources: dict[str, Path], found: Survey) -> None:
        for path in [path for path in sources if not _can_be_named(path)]:
            found.left_out.append(f"{path!r}: a name that this store cannot have")
            del sources[path]
        each(lambda path: self._store.put(f"{WORKSPACE}/{path}", sources[path]), sources)


def timings(paths: Collection[str]) -> list[str]:
    """Those of paths below a run folder that are an attempt's `timing.json`, and no file that an attempt has made."""
    known = set(paths)
    return sorted(path for path in paths if path.rpartition("/")[2] == TIMING and not _is_content(path, known))


def _is_content(path: str, known: Collection[str]) -> bool:
    folders = path.split("/")[:-1]
    for at, name in enumerate(folders):
        around = "".join(f"{folder}/" for folder in folders[:at])
        if name == TRIES or (name == WORKSPACE and (f"{around}{PROMPT}" in known or f"{around}{TIMING}" in known)):
            return True
    return False


def _in_workspace(path: str) -> bool:
    return path.startswith(f"{WORKSPACE}/") and ".." not in path.split("/")


def _copy(source: Path, target: Path) -> None:
    for name in _LOOKED_AT:
        if (source / name).is_file() and not (source / name).is_symlink():
            shutil.copyfile(source / name, target / name)
    workspace = source / WORKSPACE
    if workspace.is_dir() and not workspace.is_symlink():
        Survey.of(workspace, ignore=frozenset()).copy(workspace, target / WORKSPACE)


def _names(grader: str, attempt: str) -> tuple[str, str]:
    """Where a grading may be, in that order."""
    return GRADING, f"grading-{digest([grader, attempt])[:12]}.json"


def _error_beside(grader: str) -> str:
    return f"grading-error-{grader[:12]}.json"


def _can_be_named(path: str) -> bool:
    """Whether an object can have that name: text without control characters."""
    return all(" " <= letter != "\x7f" and not "\ud800" <= letter <= "\udfff" for letter in path)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece
