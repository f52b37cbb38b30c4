"""Runs for checks to look at, without a task that makes them."""

from __future__ import annotations

from typing import Any

from trunchray.core.check_result import CheckResult
from trunchray.core.record import RunRecord, StepRecord
from trunchray.evaluators.python.scorer import CodeScorer, as_scorers

ABSENT: Any = object()
"""The case has no `expectedOutput`."""


def a_run(
    output: Any = "out", expected: Any = ABSENT, *, steps: str = "", input: Any = "in", ms: float = 1
) -> RunRecord:
    """`steps` names tools and steps of a workflow; "-" is a model call."""
    found = () if expected is ABSENT else (expected,)
    return RunRecord(
        input=input,
        output=output,
        expected_output=found[0] if found else None,
        steps=tuple(StepRecord("llm") if name == "-" else StepRecord("tool", name) for name in steps.split()),
        ms=ms,
        has_expected_output=bool(found),
    )


def said(check: Any, run: RunRecord) -> CheckResult:
    """What a check that is no coroutine says, after it has been accepted as a scorer."""
    scorer = as_scorers({"it": check})["it"]
    assert isinstance(scorer, CodeScorer)
    return scorer.check(run)


def verdict(check: Any, run: RunRecord) -> tuple[bool, float]:
    found = said(check, run)
    assert found.passed or found.explanation, "a check that fails says why"
    return found.passed, found.value
