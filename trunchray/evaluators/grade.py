"""From a case and what an agent did with it to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from pydantic import JsonValue

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.core.case import Case
from trunchray.core.checks import Check, Completed, Custom, Python, RubricLine, ToolCallSyntax, Triggered
from trunchray.core.digest import digest, sha256
from trunchray.core.trial import Trace, Verdict
from trunchray.errors import EvaluatorError, boundary
from trunchray.evaluators.custom import grade_custom
from trunchray.evaluators.text import grade_text
from trunchray.evaluators.tool_calls import grade_tool_calls


class Grader:
    """Grades the cases of one release. `modules` holds its custom evaluators by their `evaluator_key`."""

    def __init__(self, modules: Mapping[str, SandboxModule], sandbox: EvaluatorSandbox) -> None:
        self._modules = modules
        self._sandbox = sandbox
        self._code_digests: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    async def grade(self, case: Case, trace: Trace) -> Verdict:
        """The verdict of the case's only check, or of several together.

        Raises:
            EvaluatorError: grading crashed, timed out or returned something that is not a verdict.
            SandboxError: no sandbox could be started.
        """
        verdicts: dict[str, Verdict] = {}
        for name, check in case.checks.items():
            with boundary(EvaluatorError, f"check {name!r} of case {case.id!r}"):
                verdicts[name] = await self._verdict(check, case, trace)
        return combined(verdicts)

    def evaluator_digest(self, case: Case) -> str:
        """64 hex digits of all that decides how the case is graded: a module's content, or the check as data.

        Raises:
            EvaluatorError: the release has no module for a custom evaluator.
        """
        if case.id not in self._digests:
            parts = {name: self._digest(check) for name, check in case.checks.items()}
            self._digests[case.id] = next(iter(parts.values())) if len(parts) == 1 else digest({**parts})
        return self._digests[case.id]

    async def _verdict(self, check: Check, case: Case, trace: Trace) -> Verdict:
        match check:
            case Custom(evaluator_key=key):
                return await grade_custom(self._module(key), self._sandbox, case, trace)
            case ToolCallSyntax():
                return grade_tool_calls(check, trace.tool_calls)
            case Python():
                raise EvaluatorError("only the program that evaluates it has this check", type="missing_program")
            case Completed() | RubricLine() | Triggered():
                raise EvaluatorError("this check applies only to an attempt of a coding tool", type="no_attempt")
            case _:
                return grade_text(check, trace.output)

    def _module(self, key: str) -> SandboxModule:
        if key not in self._modules:
            raise EvaluatorError(f"the release has no evaluator {key!r}; compile it again", type="missing_module")
        return self._modules[key]

    def _code_digest(self, key: str) -> str:
        if key not in self._code_digests:
            self._code_digests[key] = sha256(self._module(key).code)
        return self._code_digests[key]

    def _digest(self, check: Check) -> str:
        if isinstance(check, Custom):
            return self._code_digest(check.evaluator_key)
        return digest(_doubles(check.model_dump(mode="json")))


def combined(verdicts: Mapping[str, Verdict]) -> Verdict:
    """One verdict is itself; several pass when all pass, score their mean, and are listed by name in the details."""
    if len(verdicts) == 1:
        return next(iter(verdicts.values()))
    complaints = [f"{name}: {verdict.message or 'failed'}" for name, verdict in verdicts.items() if not verdict.passed]
    return Verdict(
        passed=not complaints,
        score=fsum(verdict.score for verdict in verdicts.values()) / len(verdicts),
        message="; ".join(complaints) or None,
        details={name: verdict.model_dump(mode="json") for name, verdict in verdicts.items()},
    )


def _doubles(value: JsonValue) -> JsonValue:
    """The value with its large integers as what JavaScript takes them for."""
    match value:
        case dict():
            return {key: _doubles(item) for key, item in value.items()}
        case list():
            return [_doubles(item) for item in value]
        case int() if abs(value) >= 2**53:
            return float(value)
        case _:
            return value
