"""Two models on the same cases: how far they differ, and how sure that is.

The unit is the case. Attempts at one case are collapsed to their mean first, so that repeating cases never counts as
having asked more of them.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from trunchray.core import stats
from trunchray.core.bootstrap import Floats, Integers, bootstrap
from trunchray.core.contrast import DifferenceInterval, Drawn, Effect, Test
from trunchray.core.distributions import fair_coin, student_quantile, student_tail
from trunchray.core.stats import Cluster, rounded

DRAWN_CLUSTERS = 10
"""Clusters below which the bootstrap draws cases instead."""


class _Counts(NamedTuple):
    """Cases on which the second is better, on which it is worse, and all."""

    better: int
    worse: int
    cases: int


class _Spread(NamedTuple):
    """Where an interval has its centre, what one standard error is, and how many of them it reaches to each side."""

    centre: float
    error: float
    reach: float
    method: DifferenceInterval


def effect(
    first: Floats,
    second: Floats,
    clusters: Integers,
    *,
    single: bool,
    resample: bool = False,
    confidence: float = stats.CONFIDENCE,
) -> Effect:
    """The difference between the means of two models over the same cases, in the same order.

    `clusters` numbers, from 0, the cluster of each case. `single`: every mean is of one attempt that passed or failed.
    Then the test is McNemar's, else the paired t, or the sign test where all differences are the same. The interval is
    never narrower than the clustered one, when there are several clusters. `resample` asks for the bootstrap too.
    """
    differences = second - first
    if not len(differences):
        return Effect()
    counts = _Counts(int((differences > 0).sum()), int((differences < 0).sum()), len(differences))
    difference, by_case = float(differences.mean()), _student_error(differences)
    together = _clusters(differences, clusters)
    spread = _spread(difference, by_case, together, counts, single=single, confidence=confidence)
    drawn, drawn_from = _resampled(differences, together) if resample else (None, None)
    test, p, mid = _tested(difference, by_case, counts, single=single)
    return Effect(
        cases=counts.cases,
        clusters=len(together),
        first=rounded(float(first.mean())),
        second=rounded(float(second.mean())),
        difference=rounded(difference),
        low=rounded(max(-1.0, min(difference, spread.centre - spread.reach * spread.error))),
        high=rounded(min(1.0, max(difference, spread.centre + spread.reach * spread.error))),
        interval=spread.method,
        bootstrap_low=rounded(drawn.low) if drawn else None,
        bootstrap_high=rounded(drawn.high) if drawn else None,
        bootstrap_of=drawn_from,
        better=counts.better,
        worse=counts.worse,
        test=test,
        p=rounded(p),
        p_mid=None if mid is None else rounded(mid),
        detectable=rounded(min(1.0, stats.detectable(spread.error))),
    )


def mcnemar(better: int, worse: int) -> tuple[float, float]:
    """McNemar's exact two-sided p, and its mid-p, from the discordant pairs of either kind.

    Both are binomial tails of the smaller count, the mid-p with half the chance of that count itself: Fagerland,
    Lydersen & Laake, "The McNemar test for binary matched-pairs data: mid-p and asymptotic are better than exact
    conditional", BMC Med. Res. Methodol. 13:91 (2013). With no discordant pair both are 1.
    """
    tail, exactly = fair_coin(min(better, worse), better + worse)
    return min(1.0, 2 * tail), min(1.0, 2 * tail - exactly)


def bonett_price(better: int, worse: int, cases: int) -> tuple[float, float]:
    """The centre and the standard error of an adjusted interval for the difference of two paired shares.

    Bonett & Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on paired data",
    J. Educ. Behav. Stat. 37 (2012): one more discordant pair of each kind. It is never of width 0. Limits are the
    centre ± z standard errors.
    """
    up, down = (better + 1) / (cases + 2), (worse + 1) / (cases + 2)
    return up - down, sqrt((up + down - (up - down) ** 2) / (cases + 2))


def paired_t(difference: float, error: float, cases: int) -> float:
    """The two-sided p of a mean difference with this standard error > 0 over at least two cases.

    Student, "The probable error of a mean", Biometrika 6 (1908): t with n − 1 degrees of freedom.
    """
    return student_tail(difference / error, cases - 1)


def _student_error(differences: Floats) -> float:
    """The standard error of the mean difference over cases; 0 when all are the same or there is only one."""
    if len(differences) < 2 or differences.min() == differences.max():
        return 0.0
    return float(differences.std(ddof=1)) / sqrt(len(differences))


def _spread(
    difference: float,
    by_case: float,
    clusters: list[Cluster],
    counts: _Counts,
    *,
    single: bool,
    confidence: float,
) -> _Spread:
    by_cluster, reach = stats.standard_error(clusters) or 0.0, stats.z(confidence)
    if single or not by_case:
        spread = _Spread(*bonett_price(*counts), reach, "bonett-price")
    else:
        spread = _Spread(difference, by_case, student_quantile((1 + confidence) / 2, counts.cases - 1), "student")
    if by_cluster * reach > spread.error * spread.reach:
        return _Spread(difference, by_cluster, reach, "normal-clustered")
    return spread


def _tested(difference: float, by_case: float, counts: _Counts, *, single: bool) -> tuple[Test, float, float | None]:
    exact, mid = mcnemar(counts.better, counts.worse)
    if single:
        return "mcnemar-exact", exact, mid
    if not by_case:
        return "sign-exact", exact, None
    return "paired-t", paired_t(difference, by_case, counts.cases), None


def _clusters(differences: Floats, clusters: Integers) -> list[Cluster]:
    """The clusters that have a case."""
    sizes, totals = np.bincount(clusters).tolist(), np.bincount(clusters, weights=differences).tolist()
    return [Cluster(size, total) for size, total in zip(sizes, totals, strict=True) if size]


def _resampled(differences: Floats, clusters: list[Cluster]) -> tuple[stats.Interval | None, Drawn]:
    """The bootstrap over clusters when there are enough, else over cases.

    Of a few clusters no more than a few different draws exist, and their interval is far too narrow: Cameron, Gelbach &
    Miller, "Bootstrap-based improvements for inference with clustered errors", Rev. Econ. Stat. 90 (2008), table 2.
    """
    if len(clusters) >= DRAWN_CLUSTERS:
        sizes, totals = np.array([one.size for one in clusters]), np.array([one.total for one in clusters])
        return bootstrap(sizes, totals, np.ones_like(sizes)), "clusters"
    values, counts = np.unique(differences, return_counts=True)
    return bootstrap(np.ones_like(counts), values, counts), "cases"
