"""An attempt's folder as a grader is shown it that cannot look for itself."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path

from pydantic import ValidationError

from trunchray.adapters.attempt_folder import PROMPT, TIMING, TRANSCRIPT, WORKSPACE
from trunchray.core.attempt import AttemptTiming
from trunchray.core.grading_prompt import Artifact, Shown
from trunchray.core.well_formed import well_formed
from trunchray.evaluators.attempts.base import Attempt

READ = 2**20
"""Bytes: a larger file is listed and not read."""
READ_IN_ALL = 2**25
"""Bytes of all files, after which the rest is listed alone."""
TRANSCRIPT_READ = 2**26
"""Bytes of a transcript, from its beginning."""


def shown(attempt: Attempt) -> Shown:
    """All that the attempt left. The files it made come first, then those it was given, then what hidden folders hold.

    Links are not followed: they may lead anywhere on this machine.

    Raises:
        OSError: it cannot be read.
    """
    missing = [Artifact(path, None, f"not kept: {why}") for path, why in not_kept(attempt.folder).items()]
    return Shown(
        request=_text(attempt.folder / PROMPT) or "",
        message=attempt.message,
        transcript=_text(attempt.folder / TRANSCRIPT),
        artifacts=[*missing, *_artifacts(attempt.folder / WORKSPACE, attempt.fixtures)],
    )


def not_kept(folder: Path) -> dict[str, str]:
    """Why each file that the attempt left is not in its folder: it is too large, say. {} where that is not known.

    Raises:
        OSError: its timing cannot be read.
    """
    try:
        timing = AttemptTiming.model_validate_json((folder / TIMING).read_bytes())
    except (FileNotFoundError, ValidationError):
        return {}
    large = [path.removeprefix(f"{WORKSPACE}/") for path in timing.truncated if path.startswith(f"{WORKSPACE}/")]
    rest = [each.partition(": ") for each in timing.left_out]
    return dict.fromkeys(large, "it is too large") | {path: why for path, _, why in rest}


def fixture_state(file: Path, given: str) -> str:
    """What became of a file with this SHA-256: it is unchanged, changed or missing.

    Raises:
        OSError: it cannot be read.
    """
    if file.is_symlink() or not file.is_file():
        return "missing"
    with file.open("rb") as opened:
        return "unchanged" if hashlib.file_digest(opened, "sha256").hexdigest() == given else "changed"


def _artifacts(workspace: Path, fixtures: Mapping[str, str]) -> Iterator[Artifact]:
    left = READ_IN_ALL
    for _, path, file in sorted(_files(workspace, fixtures), key=itemgetter(0, 1)):
        artifact = _artifact(file, path, fixtures.get(path), left)
        left -= artifact.size or 0 if artifact.text is not None else 0
        yield artifact


def _files(workspace: Path, fixtures: Mapping[str, str]) -> Iterator[tuple[int, str, Path]]:
    """Each file, or link, with its rank and its path, by which they are sorted."""
    for folder, folders, files in os.walk(workspace):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in (*links, *files):
            file = Path(folder, name)
            parts = file.relative_to(workspace).parts
            path = well_formed("/".join(parts))
            hidden = any(part.startswith(".") for part in parts[:-1])
            yield 2 if hidden else 1 if path in fixtures else 0, path, file


def _artifact(file: Path, path: str, given: str | None, most: int) -> Artifact:
    """`given` is the SHA-256 of a fixture, and None for any other file; `most` is how many bytes may be read."""
    found = file.lstat()
    if stat.S_ISLNK(found.st_mode):
        return Artifact(path, found.st_size, f"a link to {well_formed(str(file.readlink()))!r}")
    if not stat.S_ISREG(found.st_mode):
        return Artifact(path, found.st_size, "not a file")
    notes = [] if given is None else [f"given, {fixture_state(file, given)}"]
    if found.st_size > min(READ, most):
        return Artifact(path, found.st_size, "; ".join([*notes, "too large to be read"]))
    text = _decoded(file.read_bytes())
    if text is None:
        notes.append("not text")
    return Artifact(path, found.st_size, "; ".join(notes), text)


def _decoded(content: bytes) -> str | None:
    """The text of a file; None when it is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _text(file: Path) -> str | None:
    """What a file of the attempt itself holds; None when it is empty or not there."""
    if not file.is_file() or file.is_symlink():
        return None
    with file.open("rb") as opened:
        return opened.read(TRANSCRIPT_READ).decode(errors="replace") or None
