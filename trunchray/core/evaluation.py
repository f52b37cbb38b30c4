"""A Python evaluation once it has run: what came of every case, and whether that is good enough."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.core.allowance import Allowance
from trunchray.core.changes import Changes, changes
from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation_markdown import FailedCheck, evaluation_markdown
from trunchray.core.evaluation_text import check_text, evaluation_text, failed_lines, named
from trunchray.core.experiment import CheckRecord, Experiment
from trunchray.core.frozen import Frozen
from trunchray.core.scorer_report import Marked, ScorerReport, scorer_report
from trunchray.errors import EvalFailure

FIRST = 5
"""Cases of which a message says why they failed; the report has all of them."""
UNDECIDED = "judge: "
"""How the reason begins why a check failed that the judge did not decide."""


class CaseOutcome(Frozen):
    """One case, all attempts together. Names of cases are unique in an evaluation."""

    name: str
    input: JsonValue
    output: JsonValue = None
    steps: tuple[JsonValue, ...] = ()
    ms: float = 0.0
    """Milliseconds that the task took."""
    error: str | None = None
    """Why there is no output; None when there is one."""
    checks: dict[str, CheckResult] = {}
    must: frozenset[str] = frozenset()
    """Scorers that have to pass whatever is allowed of them."""
    skip: frozenset[str] = frozenset()
    """Scorers that are not counted."""

    def counted(self, scorers: Sequence[str]) -> dict[str, CheckResult]:
        """The results that count, in the order of `scorers`. One that should be there and is not has failed."""
        missing = CheckResult.failed("no result")
        return {name: self.checks.get(name, missing) for name in scorers if name not in self.skip}

    def to_json(self) -> dict[str, JsonValue]:
        """What a report says of it; `error` only where there is one."""
        error: dict[str, JsonValue] = {} if self.error is None else {"error": self.error}
        return {
            "name": self.name,
            "input": self.input,
            "output": self.output,
            "steps": list(self.steps),
            "ms": self.ms,
            **error,
            "checks": {name: result.to_json() for name, result in self.checks.items()},
        }


class EvaluationReport(Frozen):
    """What an evaluation found."""

    name: str
    about: dict[str, JsonValue] | None
    """What the author says of it, such as the model."""
    passed: bool
    """No limit is broken."""
    scorers: dict[str, ScorerReport]
    cases: tuple[CaseOutcome, ...]
    flips: Changes
    experiment: Experiment
    """What a later run can be compared with."""
    run: str = ""
    """The folder, or the URI, of all that was stored of it."""

    def markdown(self) -> str:
        """A page for a pull request."""
        return evaluation_markdown(self.name, self.scorers, self._failed(), self.flips)

    def text(self) -> str:
        """The same for a terminal; ends with a newline."""
        return evaluation_text(self.name, self.scorers, self._failed(), self.flips)

    def to_json(self) -> dict[str, JsonValue]:
        """All of it."""
        return {
            "name": self.name,
            "about": self.about,
            "passed": self.passed,
            "scorers": {name: scorer.to_json() for name, scorer in self.scorers.items()},
            "cases": [case.to_json() for case in self.cases],
            "flips": self.flips.to_json(),
            "experiment": self.experiment.to_json(),
            "run": self.run,
        }

    def explained(self, scorer: str) -> str:
        """Which limits of one check are broken, on one line; then every case that failed it, and why."""
        return check_text(self.scorers[scorer], [each for each in self._failed() if each.check == scorer])

    def reasons(self, scorers: Collection[str]) -> list[str]:
        """Why the first cases failed that one of these checks failed, a line each."""
        return failed_lines([each for each in self._failed() if each.check in scorers], FIRST)

    def undecided(self, asked: Collection[str]) -> int:
        """How many of the results say that the judge decided nothing, where these checks are its."""
        found = [result for case in self.cases for name, result in case.checks.items() if name in asked]
        return sum(not each.passed and (each.explanation or "").startswith(UNDECIDED) for each in found)

    def _failed(self) -> list[FailedCheck]:
        return [
            FailedCheck(scorer, case.name, _reason(result), scorer in case.must)
            for scorer in self.scorers
            for case in self.cases
            if (result := case.checks.get(scorer)) and not result.passed
        ]


def conclude(
    name: str,
    about: Mapping[str, JsonValue] | None,
    cases: Sequence[CaseOutcome],
    *,
    scorers: Sequence[str],
    allow: Mapping[str, Allowance],
    compare: Experiment | None,
    run: str = "",
) -> EvaluationReport:
    """Judge an evaluation. `scorers` is in the order of the spec, `cases` in that of the data.

    A scorer that `allow` does not name has to pass every case.
    """
    counted = [case.model_copy(update={"checks": case.counted(scorers)}) for case in cases]
    experiment = _experiment(name, about, counted)
    reports = {
        scorer: scorer_report(scorer, _marked(scorer, counted), allow.get(scorer, Allowance()), compare)
        for scorer in scorers
    }
    return EvaluationReport(
        name=name,
        about=experiment.about,
        passed=not any(report.broken for report in reports.values()),
        scorers=reports,
        cases=tuple(counted),
        flips=changes(experiment, compare),
        experiment=experiment,
        run=run,
    )


def failure(report: EvaluationReport) -> EvalFailure:
    """The error that names every limit that the evaluation broke, with its cases, and why the first of them failed."""
    lines = [
        f"{scorer}: {broken}: {named(broken.cases)}"
        for scorer, each in report.scorers.items()
        for broken in each.broken
    ]
    reasons = report.reasons([scorer for scorer, each in report.scorers.items() if each.broken])
    return EvalFailure("\n  ".join([f"{report.name} does not pass", *lines, *reasons]), report)


def _experiment(name: str, about: Mapping[str, JsonValue] | None, cases: Sequence[CaseOutcome]) -> Experiment:
    records = {case.name: {name: CheckRecord.of(check) for name, check in case.checks.items()} for case in cases}
    said: dict[str, Any] | None = None if about is None else dict(about)
    return Experiment(name=name, about=said, cases=records)


def _marked(scorer: str, cases: Sequence[CaseOutcome]) -> list[Marked]:
    return [Marked(case.name, case.checks[scorer], must=scorer in case.must) for case in cases if scorer in case.checks]


def _reason(result: CheckResult) -> str:
    """Why a check failed, as far as is known."""
    return result.explanation or (f"value {result.value:.2f}" if result.value else "")
