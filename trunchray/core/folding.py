"""All attempts at a case as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import Method


def fold(attempts: Sequence[Mapping[str, CheckResult]]) -> dict[str, CheckResult]:
    """Each check over all attempts: its mean value; it passes when it passes every attempt.

    Checks come in the order in which the attempts first name them. One that an attempt lacks has failed that attempt.
    """
    names = dict.fromkeys(name for attempt in attempts for name in attempt)
    return {name: _folded([_result(name, number, each) for number, each in enumerate(attempts, 1)]) for name in names}


def _result(name: str, number: int, attempt: Mapping[str, CheckResult]) -> CheckResult:
    return attempt.get(name) or CheckResult.failed(f"attempt {number} has no result")


def _folded(results: Sequence[CheckResult]) -> CheckResult:
    if len(results) == 1:
        return results[0]
    methods: set[Method | None] = {result.method for result in results if result.probabilities is not None}
    confidences = [result.confidence for result in results if result.confidence is not None]
    return CheckResult(
        passed=all(result.passed for result in results),
        value=_mean([result.value for result in results]),
        explanation=_explanation(results),
        probabilities=_probabilities([result.probabilities for result in results if result.probabilities is not None]),
        confidence=_mean(confidences) if confidences else None,
        method=methods.pop() if len(methods) == 1 else None,
        escalated=any(result.escalated for result in results),
    )


def _explanation(results: Sequence[CheckResult]) -> str | None:
    """That of the first attempt that failed, and how many did; where none did, the first there is."""
    failed = [result.explanation for result in results if not result.passed]
    if not failed:
        return next((result.explanation for result in results if result.explanation), None)
    many = f"failed {len(failed)} of {len(results)} attempts"
    return f"{failed[0]} ({many})" if failed[0] else many


def _probabilities(found: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    """The mean for each answer, over the attempts that have probabilities; None when no attempt has."""
    answers = dict.fromkeys(answer for each in found for answer in each)
    return {answer: _mean([each.get(answer, 0.0) for each in found]) for answer in answers} if found else None


def _mean(values: Sequence[float]) -> float:
    """Rounded once, so that no order of the values gives another mean."""
    return fsum(values) / len(values)
