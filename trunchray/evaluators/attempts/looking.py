"""An attempt's folder as a grader is shown it that cannot look for itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path

from pydantic import ValidationError

from trunchray.adapters.attempt_store import TIMING, TRANSCRIPT, WORKSPACE
from trunchray.adapters.models.json_text import well_formed
from trunchray.core.attempt import AttemptTiming
from trunchray.core.digest import sha256
from trunchray.core.grading_prompt import Artifact, Shown
from trunchray.evaluators.attempts.base import Attempt

READ = 2**20
"""Bytes: a larger file is listed and not read."""
TRANSCRIPT_READ = 2**26
"""Bytes of a transcript, from its beginning."""


def shown(attempt: Attempt) -> Shown:
    """All that the attempt left. The files it made come first, then those it was given, then what hidden folders hold.

    Links are not followed: they may lead anywhere on this machine.

    Raises:
        OSError: it cannot be read.
    """
    found = sorted(_artifacts(attempt.folder / WORKSPACE, attempt.fixtures), key=itemgetter(0, 1))
    missing = [Artifact(path, None, f"not kept: {why}") for path, why in not_kept(attempt.folder).items()]
    return Shown(
        request=_text(attempt.folder / "prompt.txt") or "",
        message=attempt.message,
        transcript=_text(attempt.folder / TRANSCRIPT),
        artifacts=[*missing, *(artifact for *_, artifact in found)],
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


def _artifacts(workspace: Path, fixtures: Mapping[str, str]) -> Iterator[tuple[int, str, Artifact]]:
    """Each file with its rank and its path, by which they are sorted."""
    for folder, folders, files in os.walk(workspace):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in (*links, *files):
            file = Path(folder, name)
            parts = file.relative_to(workspace).parts
            artifact = _artifact(file, well_formed("/".join(parts)), fixtures)
            hidden = any(part.startswith(".") for part in parts[:-1])
            yield 2 if hidden else 1 if artifact.path in fixtures else 0, artifact.path, artifact


def _artifact(file: Path, path: str, fixtures: Mapping[str, str]) -> Artifact:
    found = file.lstat()
    if stat.S_ISLNK(found.st_mode):
        return Artifact(path, found.st_size, f"a link to {well_formed(str(file.readlink()))!r}")
    if not stat.S_ISREG(found.st_mode):
        return Artifact(path, found.st_size, "not a file")
    if found.st_size > READ:
        return Artifact(path, found.st_size, "too large to be read")
    content = file.read_bytes()
    text = _decoded(content)
    notes = ["not text"] if text is None else []
    if path in fixtures:
        notes.append("given, unchanged" if sha256(content) == fixtures[path] else "given, changed")
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
