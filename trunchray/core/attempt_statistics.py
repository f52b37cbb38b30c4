"""What repeated attempts of a skill took: means, spreads, and how far two configs are apart.

Every field of a record that is a number is a metric, `return_code` too; true and false are none. Attempts of different
cases differ because the cases do, so each case is also told on its own.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from trunchray.core.frozen import Frozen

SETTLED = 3
"""Attempts of each case from which on a result is called settled; fewer are a quick look."""
LARGEST = 1e300
"""The largest number that a metric may be, so that no difference overflows."""

Record = Mapping[str, JsonValue]


class Metric(Frozen):
    """One number over several attempts."""

    n: int
    """Attempts that have it, at least 1."""
    mean: float
    stddev: float
    """Of the sample, by n − 1; 0 where n is 1, for want of a spread."""
    min: float
    max: float


class Group(Frozen):
    """Attempts that belong together."""

    runs: int
    """Attempts that were counted."""
    metrics: dict[str, Metric]
    """By name, sorted."""


class Config(Group):
    """All attempts of one config."""

    by_status: dict[str, int]
    """Attempts by how they ended, counted or not; those that do not say are "ok"."""
    cases: dict[str, Group]
    """The same by case, of records that name one, with the case's own spread."""
    settled: bool
    """Whether each case has at least 3 counted attempts; of records that name no case, whether those are 3."""


class Delta(Frozen):
    """How far a variant is from its baseline in one metric."""

    baseline_mean: float
    variant_mean: float
    delta: float
    """The variant's mean less the baseline's."""
    delta_pct: float | None
    """The same in percent of the baseline's mean; None where that is 0, or too small to divide by."""
    baseline_stddev: float
    variant_stddev: float


class Versus(Frozen):
    """Two configs, and the metrics that both have."""

    baseline: Config
    variant: Config
    delta: dict[str, Delta]


def summarise(records: Sequence[Record], *, all_statuses: bool = False) -> Config:
    """The figures of a config's records.

    Only attempts with the status "ok" count, and records without one: what failed did not take what it would have
    taken. `all_statuses` counts the others too.

    Raises:
        ValueError: a number is not finite, or larger than 1e300.
    """
    counted = [record for record in records if all_statuses or status(record) == "ok"]
    cases: dict[str, list[Record]] = {}
    for record in counted:
        if (case := record.get("case_id")) is not None:
            cases.setdefault(str(case), []).append(record)
    nameless = len(counted) - sum(map(len, cases.values()))
    sizes = [*map(len, cases.values()), *([nameless] if nameless else [])]
    missing = {str(record["case_id"]) for record in records if record.get("case_id") is not None} - cases.keys()
    group = _group(counted)
    return Config(
        runs=group.runs,
        metrics=group.metrics,
        by_status=dict(sorted(Counter(map(status, records)).items())),
        cases={case: _group(some) for case, some in sorted(cases.items())},
        settled=bool(sizes) and min(sizes) >= SETTLED and not missing,
    )


def versus(baseline: Config, variant: Config) -> Versus:
    """The variant set against its baseline."""
    shared = sorted(baseline.metrics.keys() & variant.metrics.keys())
    delta = {name: _delta(baseline.metrics[name], variant.metrics[name]) for name in shared}
    return Versus(baseline=baseline, variant=variant, delta=delta)


def status(record: Record) -> str:
    """How the attempt ended; "ok" where it does not say."""
    said = record.get("status")
    return "ok" if said is None else str(said)


def _group(records: Sequence[Record]) -> Group:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, number in _numbers(record):
            values.setdefault(name, []).append(number)
    return Group(runs=len(records), metrics={name: _metric(some) for name, some in sorted(values.items())})


def _numbers(record: Record) -> Iterable[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not abs(value) <= LARGEST:
                raise ValueError(f"{name!r} is {_short(value)}; metrics must be finite and at most 1e300")
            yield name, float(value)


def _short(value: float) -> str:
    return f"{value}" if isinstance(value, float) else f"an integer of {value.bit_length()} bits"


def _metric(values: Sequence[float]) -> Metric:
    return Metric(
        n=len(values),
        mean=float(statistics.mean(values)),
        stddev=_spread(values),
        min=min(values),
        max=max(values),
    )


def _spread(values: Sequence[float]) -> float:
    return float(statistics.stdev(values)) if len(values) > 1 else 0.0


def _delta(baseline: Metric, variant: Metric) -> Delta:
    delta = variant.mean - baseline.mean
    share = delta / baseline.mean * 100 if baseline.mean else math.nan
    return Delta(
        baseline_mean=baseline.mean,
        variant_mean=variant.mean,
        delta=delta,
        delta_pct=share if math.isfinite(share) else None,
        baseline_stddev=baseline.stddev,
        variant_stddev=variant.stddev,
    )
