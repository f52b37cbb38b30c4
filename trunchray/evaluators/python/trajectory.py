"""Checks of how a run went: `ran_steps`, `steps_at_most` and `under`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trunchray.core.check_result import CheckResult
from trunchray.core.record import RunRecord
from trunchray.evaluators.python.helper import Helper, at_least_problem, names_problem
from trunchray.evaluators.quote import quote_some

UNOBSERVED = "steps not observed"


def ran_steps(names: Sequence[str], *, at_least: float = 1) -> RanSteps:
    """The tools and workflow steps that ran are those named, in any order; the value is the F1 of the two.

    A name counts as often as it stands there, so that a doubled call is not the same as one. With `at_least`, above 0
    and at most 1, it passes from that F1 on. `ran_steps([])` passes when there were model calls and nothing else, and
    fails when no steps were observed at all.
    """
    return RanSteps(names, at_least)


def steps_at_most(n: int) -> StepsAtMost:
    """The run took at most `n` steps of any kind. One whose steps nobody observed has none, and passes."""
    return StepsAtMost(n)


def under(*, ms: float) -> Under:
    """The run itself, without checks and waits for its turn, took at most so many milliseconds."""
    return Under(ms)


@dataclass(frozen=True)
class RanSteps(Helper):
    names: Any
    at_least: Any = 1

    def problem(self) -> str | None:
        return names_problem("names", self.names) or at_least_problem(self.at_least)

    def __call__(self, run: RunRecord) -> CheckResult:
        expected = Counter(self.names)
        actual = Counter(step.name or "" for step in run.steps if step.kind != "llm")
        if not run.steps:
            return CheckResult.failed(UNOBSERVED)
        value = _f1(expected, actual)
        explanation = _difference(expected, actual)
        return CheckResult(passed=value >= self.at_least, value=value, explanation=explanation)


def _f1(expected: Counter[str], actual: Counter[str]) -> float:
    """2 · common / (expected + actual); 1 where there is nothing on either side."""
    total = expected.total() + actual.total()
    return 2 * (expected & actual).total() / total if total else 1.0


def _difference(expected: Counter[str], actual: Counter[str]) -> str | None:
    missing, extra = list((expected - actual).elements()), list((actual - expected).elements())
    parts = [f"did not run {quote_some(missing)}"] if missing else []
    parts += [f"ran {quote_some(extra)} beyond what is named"] if extra else []
    return "; ".join(parts) or None


@dataclass(frozen=True)
class StepsAtMost(Helper):
    n: Any

    def problem(self) -> str | None:
        whole = isinstance(self.n, int) and not isinstance(self.n, bool) and self.n >= 0
        return None if whole else f"steps_at_most() takes a whole number from 0 on (got {self.n!r})"

    def __call__(self, run: RunRecord) -> CheckResult:
        if len(run.steps) > self.n:
            return CheckResult.failed(f"took {len(run.steps)} steps, at most {self.n} are allowed")
        return CheckResult(passed=True, value=1.0, explanation=None if run.steps else UNOBSERVED)


@dataclass(frozen=True)
class Under(Helper):
    ms: Any

    def problem(self) -> str | None:
        number = isinstance(self.ms, int | float) and not isinstance(self.ms, bool) and 0 < self.ms < float("inf")
        return None if number else f"under() takes milliseconds above 0 (got {self.ms!r})"

    def __call__(self, run: RunRecord) -> CheckResult:
        if run.ms <= self.ms:
            return CheckResult(passed=True, value=1.0)
        return CheckResult.failed(f"took {run.ms:.1f} ms, at most {self.ms:g} are allowed")
