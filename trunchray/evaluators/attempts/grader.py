"""Grading the attempts of skill evals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, cast

from pydantic import JsonValue

from trunchray.adapters.models.retry import Admission
from trunchray.core.case import Case
from trunchray.core.check_result import CheckResult
from trunchray.core.checks import Check, Completed, RubricLine, Triggered
from trunchray.core.digest import digest
from trunchray.core.excerpt import excerpt
from trunchray.core.inside import inside
from trunchray.core.trial import GRADING_ERROR, NOT_GRADED, Trace, Verdict
from trunchray.errors import EvaluatorError
from trunchray.evaluators.attempts.admitted import AdmittedBackend
from trunchray.evaluators.attempts.base import GraderBackend
from trunchray.evaluators.attempts.grading import Asked, grading


@dataclass(frozen=True, slots=True)
class _Observed:
    """What the agent left of an attempt in its trace."""

    folder: str
    """The URI of its folder, when it was run."""
    path: str | None
    """That folder, relative to the documented run folder; None where nobody has said."""
    loaded: bool | None


class AttemptGrader:
    """Decides what attempts are worth: whether a skill was loaded as it should be, or what a grader says of each.

    Without a `backend` nobody can be asked for grades. `run` is the URI of the documented run folder: attempts are
    looked for there and nowhere else, whatever traces say, which may be stored ones of a run that was moved or comes
    from somebody else. None trusts the traces.
    """

    def __init__(self, backend: GraderBackend | None = None, run: str | None = None) -> None:
        self._backend, self._run = backend, run

    async def grade(self, case: Case, trace: Trace) -> Verdict:
        """All checks of the case; it passes when all of them do, and its score is their share.

        Details are `{checks: {name: result}}`. The grades of a rubric are kept in the attempt's folder; those that the
        same grader gave before are not asked for again.

        Raises:
            EvaluatorError: the trace is of no attempt that ended well; or there are no grades: then its type is
                grading_error, and the folder holds why; or nobody is to grade it: then its type is not_graded.
        """
        observed = _observed(trace)
        rubric = _rubric(case)
        graded = await self._graded(case, trace.output, observed, rubric) if rubric else {}
        results = {
            name: graded[name] if name in graded else _decided(name, check, observed)
            for name, check in case.checks.items()
        }
        return _verdict(case, results)

    def evaluator_digest(self, case: Case) -> str:
        """64 hex digits of all that decides how the case is graded; the grader counts where it is asked."""
        checks: dict[str, JsonValue] = {name: check.model_dump(mode="json") for name, check in case.checks.items()}
        grader = self._backend.identity if self._backend and _rubric(case) else None
        return digest({"checks": checks, "grader": grader})

    def admitted(self, admission: Admission) -> AttemptGrader:
        """The same grader, each reply of which waits until `admission` lets it in."""
        return AttemptGrader(self._backend and AdmittedBackend(self._backend, admission), self._run)

    def check(self) -> None:
        """Find out before the first attempt whether the grader can be asked from here.

        Raises:
            UsageError: a key is missing, or there is no such command.
        """
        if self._backend:
            self._backend.check()

    async def close(self) -> None:
        """Give back what the grader holds."""
        if self._backend:
            await self._backend.close()

    async def _graded(
        self, case: Case, message: str, observed: _Observed, rubric: Mapping[str, str]
    ) -> dict[str, CheckResult]:
        """The result of each line by the name of its check."""
        if self._backend is None:
            raise EvaluatorError("nobody was named who grades by the rubric", type=GRADING_ERROR)
        grader = self.evaluator_digest(case)
        asked = Asked(self._place(observed), case.title, tuple(rubric.values()), message, _fixtures(case), grader)
        found = await grading(self._backend, asked)
        results = [
            CheckResult(passed=grade.passed, value=float(grade.passed), explanation=grade.evidence)
            for grade in found.expectations
        ]
        return dict(zip(rubric, results, strict=True))

    def _place(self, observed: _Observed) -> str:
        if self._run is None:
            return observed.folder
        try:
            return f"{self._run}/{inside(observed.path or '')}"
        except ValueError as e:
            said = f"its trace does not say where in the run the attempt is: {observed.path!r} {e}"
            raise EvaluatorError(said, type=GRADING_ERROR) from e


def _observed(trace: Trace) -> _Observed:
    """What there is to grade.

    Raises:
        EvaluatorError: nothing, or an attempt that did not end well.
    """
    for step in trace.steps:
        if step.kind == "attempt" and isinstance(step.output, dict):
            found = cast("Mapping[str, Any]", step.output)
            if found.get("status") != "ok":
                said = f"only attempts that ended well are graded; the status of this one is {found.get('status')!r}"
                raise EvaluatorError(said, type="not_ok")
            path = found.get("path")
            return _Observed(str(found.get("folder")), path if isinstance(path, str) else None, found.get("loaded"))
    raise EvaluatorError("this is the answer of no coding tool: its trace names no attempt", type="no_attempt")


def _rubric(case: Case) -> dict[str, str]:
    """The lines by the names of their checks, `rubric-1` and so on, in the order of these numbers."""
    lines = {name: check.text for name, check in case.checks.items() if isinstance(check, RubricLine)}
    return dict(sorted(lines.items(), key=lambda line: _number(line[0])))


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _fixtures(case: Case) -> dict[str, str]:
    files = case.data.get("files") if isinstance(case.data, dict) else None
    listed = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    return {str(file.get("path")): str(file.get("sha256")) for file in listed}


def _decided(name: str, check: Check, observed: _Observed) -> CheckResult:
    match check:
        case Completed():
            raise EvaluatorError("nobody was named who grades it", type=NOT_GRADED)
        case Triggered(expected=expected):
            if observed.loaded is None:
                raise EvaluatorError("nobody can tell whether the skill was loaded", type="no_attempt")
            passed = observed.loaded == expected
            said = "the skill was loaded" if observed.loaded else "the skill was not loaded"
            return CheckResult(passed=passed, value=float(passed), explanation=said)
        case _:
            raise EvaluatorError(f"check {name!r} ({check.kind}) is not a check of attempts", type="unknown_check")


def _verdict(case: Case, results: Mapping[str, CheckResult]) -> Verdict:
    complaints = [
        f"{_named(name, case.checks[name])}: {excerpt(result.explanation or 'failed', 300)}"
        for name, result in results.items()
        if not result.passed
    ]
    return Verdict(
        passed=not complaints,
        score=fsum(result.value for result in results.values()) / len(results) if results else 1.0,
        message="; ".join(complaints) or None,
        details={"checks": {name: result.to_json() for name, result in results.items()}},
    )


def _named(name: str, check: Check) -> str:
    return f"{name} ({excerpt(check.text, 80)!r})" if isinstance(check, RubricLine) else name
