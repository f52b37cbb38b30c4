"""How to read a report: the same sentences on every page."""

from __future__ import annotations

from collections.abc import Iterator

from trunchray.core.report import Report

_RATES = (
    "The pass rate and the mean score are over graded trials; errors and trials that did not run count neither way, so "
    "read them together with coverage."
)
_INTERVALS = (
    "A 95 % interval holds the model's true rate on cases like these 95 times in 100: two models whose intervals "
    "overlap may not differ. ± is one standard error, clustered by eval when there are several."
)
_BOUNDS = "Bounds: what the pass rate would have been, had every error been a fail, or a pass."
_PAIRS = (
    "Between models: the second minus the first on the cases that both have a verdict on, with its 95 % interval. p "
    "says how often two equal models would differ as far; adjusted, it allows for all pairs in the table (Holm), so "
    "that below 0.05, with an interval that does not hold 0, is a difference to rely on: p counts cases as "
    "independent, the interval takes those of one eval or source for alike. Fixed are cases that every attempt of the "
    "second passed and not of the first, broke the other way round. Detectable is the smallest difference that as many "
    "such cases would show in 4 of 5 repetitions."
)


def legend(report: Report) -> Iterator[str]:
    """What is to be said of this report."""
    yield _RATES
    yield _INTERVALS
    yield from (f"Note: {note}." for note in report.notes)
    if any(model.error for model in report.models):
        yield _BOUNDS
    if report.comparisons:
        yield _PAIRS
