"""From an attempt's folder to its grades, which are kept there, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trunchray.adapters.attempt_folder import AttemptFolder
from trunchray.adapters.calling import in_thread
from trunchray.adapters.tree import tree_digest
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.attempt import AttemptTiming
from trunchray.core.rubric import Graded, Grading, read_grades
from trunchray.core.trial import GRADING_ERROR
from trunchray.errors import EvaluatorError, TrunchrayError
from trunchray.evaluators.attempts.base import Attempt, GraderBackend, Refused

TRIES = 2
"""Replies that are asked for: a grader that cannot be understood may say it once more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be graded."""

    folder: str
    """The URI of the attempt's folder."""
    case_id: str
    """As authored."""
    rubric: tuple[str, ...]
    message: str
    """What the tool said last."""
    fixtures: Mapping[str, str]
    """By path in the workspace, the SHA-256 of what was there from the start."""
    grader: str
    """64 hex digits of all that decides the grades but the attempt itself."""


async def grading(backend: GraderBackend, asked: Asked) -> Grading:
    """The grades: those that the same grader gave this attempt before, or else new ones. The folder has them then.

    Raises:
        EvaluatorError: there are none, of type grading_error; the folder says why, unless it cannot be written to.
    """
    try:
        folder: AttemptFolder = await in_thread(partial(AttemptFolder, asked.folder))
        timing: AttemptTiming | None = await in_thread(folder.timing)
    except TrunchrayError as e:
        raise _failed(_reason(e)) from e
    if timing is None:
        raise _failed(f"{asked.folder} holds no attempt that has ended; was it moved?")
    if timing.case_id != asked.case_id:
        raise _failed(f"{asked.folder} holds an attempt at {timing.case_id!r}, and not at {asked.case_id!r}")
    try:
        return await _grading(backend, asked, folder)
    except Exception as e:
        reason = _reason(e)
        with suppress(TrunchrayError, OSError):
            await in_thread(partial(folder.keep_error, reason, asked.grader))
        raise _failed(reason) from e


async def _grading(backend: GraderBackend, asked: Asked, folder: AttemptFolder) -> Grading:
    stack = ExitStack()
    try:
        # To its end, so that there is nothing of it that nobody knows of.
        copy: Path = await uninterrupted(in_thread(lambda: stack.enter_context(folder.copied())))
        made = await _known_or_new(backend, asked, folder, copy)
    finally:
        await uninterrupted(in_thread(stack.close))
    return await in_thread(partial(folder.keep_grading, made))


async def _known_or_new(backend: GraderBackend, asked: Asked, folder: AttemptFolder, copy: Path) -> Grading:
    """The grades of a grader that only looked. Known ones count only for what it looked at then."""
    before: tuple[str, str | None] = await in_thread(partial(_digests, folder, copy))
    attempt = before[0]
    known: Grading | None = await in_thread(partial(folder.grading, asked.grader, attempt))
    if known is not None and tuple(grade.text for grade in known.expectations) == asked.rubric:
        return known
    graded = await _ask(backend, Attempt(asked.rubric, copy, asked.message, asked.fixtures))
    if await in_thread(partial(_digests, folder, copy)) != before:
        raise EvaluatorError("the grader changed what it was to look at", type=GRADING_ERROR)
    return Grading.of(asked.case_id, graded, grader=asked.grader, attempt=attempt)


async def _ask(backend: GraderBackend, attempt: Attempt) -> Graded:
    """The grades, asked for once more when the first reply cannot be used."""
    refused: Refused | None = None
    for _ in range(TRIES):
        text, note = await backend.ask(attempt, refused)
        try:
            return read_grades(attempt.rubric, text)
        except ValueError as e:
            refused = Refused(text, f"{e} ({note})" if note else str(e))
    why = refused.why if refused else ""
    raise EvaluatorError(f"{TRIES} replies could not be used; of the last one, {why}", type=GRADING_ERROR)


def _digests(folder: AttemptFolder, copy: Path) -> tuple[str, str | None]:
    """Of the copy, and of the attempt's own folder where a grader could find it."""
    return tree_digest(copy), folder.digest()


def _failed(reason: str) -> EvaluatorError:
    """Worth another try: the grader may say something else, or somebody may have mended it."""
    return EvaluatorError(f"no grades: {reason}", type=GRADING_ERROR, retryable=True)


def _reason(error: Exception) -> str:
    """What is said of an error of our own is whole; of any other its kind counts, too."""
    return str(error) if isinstance(error, TrunchrayError) else f"{type(error).__name__}: {error}"
