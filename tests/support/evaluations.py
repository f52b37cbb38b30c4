"""Evaluations written as letters: by case, what each check made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunchray.core.allowance import allowances
from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation import CaseOutcome, EvaluationReport, conclude
from trunchray.core.experiment import Experiment

Letters = Mapping[str, str]
"""By case, a letter for each scorer: `p`assed, `f`ailed, `s`kipped, `m` failed what it must pass, `M` passed that."""


def concluded(
    cases: Letters, *, allow: Mapping[str, object] | None = None, before: Letters | None = None, **more: Any
) -> EvaluationReport:
    """An evaluation named `e` with the scorers S, T, …, as many as a case has letters."""
    scorers = more.pop("scorers", None) or scorers_of(cases)
    compare = experiment(before) if before is not None else more.pop("compare", None)
    outcomes = [outcome(name, letters) for name, letters in cases.items()]
    return conclude("e", None, outcomes, scorers=scorers, allow=allowances(allow, scorers), compare=compare, **more)


def experiment(cases: Letters) -> Experiment:
    """What a run with these results saves."""
    return concluded(cases).experiment


def scorers_of(cases: Letters) -> list[str]:
    return [chr(ord("S") + at) for at in range(max(map(len, cases.values()), default=0))]


def outcome(name: str, letters: str) -> CaseOutcome:
    named = {chr(ord("S") + at): letter for at, letter in enumerate(letters)}
    return CaseOutcome(
        name=name,
        input=name,
        output="out",
        checks={scorer: result(letter in "pM") for scorer, letter in named.items() if letter != "s"},
        must=frozenset(scorer for scorer, letter in named.items() if letter in "mM"),
        skip=frozenset(scorer for scorer, letter in named.items() if letter == "s"),
    )


def result(passed: bool, explanation: str | None = None) -> CheckResult:
    return CheckResult(passed=passed, value=float(passed), explanation=explanation)
