"""Grading what a Python task returned."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import fsum

from pydantic import JsonValue

from trunchray.core.case import Case
from trunchray.core.check_result import CheckResult
from trunchray.core.checks import Python
from trunchray.core.digest import digest
from trunchray.core.record import Returned, RunRecord
from trunchray.core.trial import Trace, Verdict
from trunchray.errors import EvaluatorError
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.python.code_check import run_check
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.judging import judge_checks
from trunchray.evaluators.python.scorer import CodeScorer, Scorer
from trunchray.evaluators.python.showing import clean


class PythonGrader:
    """Grades the cases of one evaluation, whose spec has been checked: scorers with questions come with a judge.

    `timeout` bounds each check, in seconds.
    """

    def __init__(self, scorers: Mapping[str, Scorer], judge: Judge | None, *, timeout: float) -> None:
        self._scorers, self._judge, self._timeout = scorers, judge, timeout

    async def grade(self, case: Case, trace: Trace) -> Verdict:
        """All checks of the case, at once; it passes when all of them do. A run that failed fails every one.

        Details are `{checks: {name: result}, output, ms, error?}`, where `output` says how the trace's is to be read:
        as "text", as "json", or as what Python prints ("repr").

        Raises:
            EvaluatorError: the trace is not of a task that just ran, or the program lacks a check of the case.
        """
        returned = trace.returned
        if returned is None:
            raise EvaluatorError("checks need what the task returned, which is not stored", type="not_returned")
        scorers = {name: self._scorer(name) for name in case.checks}
        if returned.error is not None:
            failed = CheckResult.failed(clean(f"run failed: {returned.error}"))
            results = dict.fromkeys(scorers, failed)
        else:
            results = await self._results(scorers, RunRecord.of(case.input.value, returned, _expected(case)))
        return _verdict(results, returned)

    def evaluator_digest(self, case: Case) -> str:
        """64 hex digits of all that decides how the case is graded, but for the judge."""
        return digest({name: check.digest for name, check in case.checks.items() if isinstance(check, Python)})

    def _scorer(self, name: str) -> Scorer:
        if name not in self._scorers:
            raise EvaluatorError(f"the program has no check {name!r}; evaluate it again", type="missing_check")
        return self._scorers[name]

    async def _results(self, scorers: Mapping[str, Scorer], run: RunRecord) -> dict[str, CheckResult]:
        asked = {name: scorer for name, scorer in scorers.items() if isinstance(scorer, JudgeScorer)}
        code = [self._coded(name, scorer, run) for name, scorer in scorers.items() if isinstance(scorer, CodeScorer)]
        found = await asyncio.gather(self._judged(asked, run), *code)
        results = {name: result for part in found for name, result in part.items()}
        return {name: results[name] for name in scorers}

    async def _coded(self, name: str, scorer: CodeScorer, run: RunRecord) -> dict[str, CheckResult]:
        return {name: await run_check(scorer.check, run, self._timeout)}

    async def _judged(self, scorers: Mapping[str, JudgeScorer], run: RunRecord) -> dict[str, CheckResult]:
        return {} if self._judge is None else await judge_checks(scorers, run, self._judge, self._timeout)


def _expected(case: Case) -> tuple[JsonValue, ...]:
    """The case's `expectedOutput`; empty where it has none."""
    data = case.data if isinstance(case.data, dict) else {}
    return (data["expectedOutput"],) if "expectedOutput" in data else ()


def _verdict(results: Mapping[str, CheckResult], returned: Returned) -> Verdict:
    complaints = [f"{name}: {each.explanation or 'failed'}" for name, each in results.items() if not each.passed]
    details: dict[str, JsonValue] = {
        "checks": {name: result.to_json() for name, result in results.items()},
        "output": returned.form,
        "ms": returned.ms,
    }
    return Verdict(
        passed=not complaints,
        score=fsum(result.value for result in results.values()) / len(results) if results else 1.0,
        message="; ".join(complaints) or None,
        details=details if returned.error is None else {**details, "error": clean(returned.error)},
    )
