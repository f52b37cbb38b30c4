"""Reports on rows that are made up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from trunchray.core.report import CountedRow, Planned, PlannedModel, Report
from trunchray.core.tally import Tally

BEGAN = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
NOBODY_SAID = (None, None, None, None)

Outcomes = Mapping[str, Sequence[str]]
"""By eval, one text for each case: a letter for each attempt, `p`assed, `f`ailed, `e`rror or `-` not run."""


def made_report(
    models: Mapping[str, Outcomes],
    *,
    title: str = "Title",
    case: Callable[[str, int], str] = "{}/{}".format,
    cost: Callable[[str], float | None] = lambda _: 0.01,
    failure: tuple[str, str, str] = ("provider", "timeout", "no answer within 120 s"),
) -> Report:
    """A report of these outcomes; all models have the same evals and cases.

    `case` gives the id of a case from its eval and its number from 0, `cost` the cost of a model's trial.
    """
    some = next(iter(models.values()))
    attempts = max((len(letters) for cases in some.values() for letters in cases), default=1)
    trials = {eval_id: len(cases) * attempts for eval_id, cases in some.items()}
    planned = tuple(PlannedModel(name, "a" * 64, f"provider/{name}", trials) for name in models)
    tally = Tally(Planned("run-1", "d" * 64, title, attempts, planned))
    for place, (name, evals) in enumerate(models.items(), 1):
        for eval_id, cases in evals.items():
            for number, letters in enumerate(cases):
                for attempt, letter in enumerate(letters, 1):
                    if letter != "-":
                        row = _row(letter, 0.5 * place + number % 7, cost(name), failure)
                        tally.add(CountedRow(name, eval_id, case(eval_id, number), attempt, *row))
                        tally.during(BEGAN, BEGAN + timedelta(minutes=number))
    return tally.report(otherwise="budget")


def large_report(models: int, evals: int, cases: int = 10) -> Report:
    """A report in which models are about as good as their number says, with few errors."""
    chance = random.Random(1)

    def letter(model: int) -> str:
        return "e" if chance.random() < 0.01 else "p" if chance.random() < 0.4 + 0.5 * model / models else "f"

    outcomes = {
        f"model-{model}": {f"eval-{number}": [letter(model) for _ in range(cases)] for number in range(evals)}
        for model in range(models)
    }
    return made_report(outcomes, cost=lambda name: 1e-5 * 1.7 ** int(name.removeprefix("model-")))


def _row(
    letter: str, latency: float, cost: float | None, failure: tuple[str, str, str]
) -> tuple[
    str, float | None, tuple[int | None, ...], float | None, float, str | None, int, tuple[str, str, str] | None
]:
    """The fields of a row from its outcome on."""
    if letter == "e":
        return "error", None, NOBODY_SAID, None, latency, None, 0, failure
    score = 1.0 if letter == "p" else 0.0
    return "passed" if letter == "p" else "failed", score, (100, 20, None, None), cost, latency, "stop", 1, None
