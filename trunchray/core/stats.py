"""The statistics that reports use. Everything is a pure function of values, never of their order.

The unit is the case: attempts at one case are not independent of each other, so they form a cluster, and intervals
count cases. Sums are exactly rounded (`math.fsum`), which makes them independent of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, floor, fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
"""Of every interval whose confidence nobody chose."""

FEW_CASES = 300
"""Below this number of cases the central limit theorem is not trusted (Bowyer et al. 2025, arXiv:2503.01747)."""

FEW_CLUSTERS = 30
"""Below this number of clusters a clustered standard error is itself uncertain, and more often too small than too large
(Cameron & Miller, "A practitioner's guide to cluster-robust inference", J. Human Resources 50 (2015), section VI)."""

POWER = 0.8
"""How often a difference that is called detectable is found."""


class Interval(NamedTuple):
    """A confidence interval: of a share within [0, 1], of a difference of shares within [−1, 1]."""

    low: float
    high: float


class Cluster(NamedTuple):
    """Values that may depend on each other: how many there are, and their sum."""

    size: int
    total: float


def wilson(rate: float, cases: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval for a share of `cases` independent cases, at least one.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). With no failure in
    n cases it ends at n / (n + z²), much as the rule of three would say. `rate` may lie between two whole counts, when
    it is a mean over attempts; then the interval is wider than need be, because attempts only make a mean steadier.
    """
    z2 = z(confidence) ** 2
    centre = (rate + z2 / (2 * cases)) / (1 + z2 / cases)
    half = sqrt(z2 * (rate * (1 - rate) / cases + z2 / (4 * cases * cases))) / (1 + z2 / cases)
    return _around(rate, centre - half, centre + half)


def normal(mean: float, error: float, confidence: float = CONFIDENCE) -> Interval:
    """`mean` ± z standard errors, cut to [0, 1]."""
    half = z(confidence) * error
    return _around(mean, mean - half, mean + half)


def rule_of_three(cases: int, confidence: float = CONFIDENCE) -> float:
    """What the share of failures is below, with this confidence, when none of `cases` ≥ 1 independent cases failed.

    Exactly 1 − (1 − confidence)^(1/n), about 3 / n: Hanley & Lippman-Hand, "If nothing goes wrong, is everything all
    right?", JAMA 249 (1983). One-sided; the same holds for passes when none passed.
    """
    return 1 - (1 - confidence) ** (1 / cases)


def standard_error(clusters: Sequence[Cluster]) -> float | None:
    """The standard error of the mean of all values, when only clusters are independent; None below two clusters.

    Liang & Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73 (1986), as in Miller,
    "Adding error bars to evals" (arXiv:2411.00640), times G / (G − 1) for G clusters. With clusters of one value it is
    the usual standard deviation / √n.
    """
    count = len(clusters)
    if count < 2:
        return None
    size = sum(cluster.size for cluster in clusters)
    mean = fsum(cluster.total for cluster in clusters) / size
    squares = fsum((cluster.total - cluster.size * mean) ** 2 for cluster in clusters)
    return sqrt(squares * count / (count - 1)) / size


def quantile(values: Sequence[float], share: float) -> float:
    """The `share` quantile of ascending `values`, of which there is at least one.

    Linear interpolation between the two nearest, R's type 7: Hyndman & Fan, "Sample quantiles in statistical packages",
    The American Statistician 50 (1996).
    """
    place = (len(values) - 1) * share
    below = floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """The chance that at least one of k attempts passes, from `attempts` ≥ k tries of which `passed` did.

    Unbiased: Chen et al., "Evaluating large language models trained on code" (arXiv:2107.03374), equation 1.
    """
    return 1 - comb(attempts - passed, k) / comb(attempts, k)


def pass_hat_k(attempts: int, passed: int, k: int) -> float:
    """pass^k, the chance that all of k attempts pass, from `attempts` ≥ k tries of which `passed` did.

    Unbiased: Yao et al., "τ-bench" (arXiv:2406.12045), section 4.
    """
    return comb(passed, k) / comb(attempts, k)


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted so that a level holds for any false alarm among all of them.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). In the given order.
    """
    adjusted, largest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = largest
    return adjusted


def detectable(error: float, confidence: float = CONFIDENCE, power: float = POWER) -> float:
    """The smallest difference that a two-sided test finds with this power, when its standard error is `error`.

    (z of the level + z of the power) standard errors: Miller, "Adding error bars to evals" (arXiv:2411.00640),
    section 5; Cohen, "Statistical power analysis for the behavioral sciences" (1988).
    """
    return (z(confidence) + NormalDist().inv_cdf(power)) * error


def z(confidence: float) -> float:
    """How many standard errors to each side of a mean hold this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def rounded(value: float) -> float:
    """To nine digits, so that no other version of a library changes them; never −0."""
    return float(f"{value:.9g}") + 0.0


def _around(estimate: float, low: float, high: float) -> Interval:
    """Within [0, 1], and around the estimate whatever rounding did."""
    return Interval(max(0.0, min(low, estimate)), min(1.0, max(high, estimate)))
