"""The statistics of reports against published figures and independent computations."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist, quantiles, stdev

import pytest

from trunchray.core.stats import Cluster, normal, pass_at_k, pass_hat_k, quantile, standard_error, wilson


@pytest.mark.parametrize(
    ("passed", "cases", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # Worked out by hand.
        (0, 10, 0.0000, 0.2775),
        (8, 10, 0.4902, 0.9433),
        (10, 10, 0.7225, 1.0000),
    ],
)
def test_wilson_matches_published_intervals(passed: int, cases: int, low: float, high: float) -> None:
    """Known intervals come out to four digits, also where nothing or everything passed."""
    assert wilson(passed / cases, cases) == pytest.approx((low, high), abs=5e-5)


def test_wilson_solves_the_score_equation() -> None:
    """Both ends are the shares whose distance from the observed one is z standard errors of their own."""
    z = NormalDist().inv_cdf(0.975)
    for end in wilson(0.3, 57):
        assert abs(0.3 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 57))


def test_zero_failures_leave_room_like_the_rule_of_three() -> None:
    """200 passes of 200 still allow about 2 % of failures (rule of three: 1.5 %, one-sided)."""
    assert wilson(1, 200).low == pytest.approx(1 - 3.84 / 203.84, abs=1e-4)


def test_normal_interval() -> None:
    """It is 1.96 standard errors to each side, cut to what a rate can be."""
    assert normal(0.5, 0.1) == pytest.approx((0.5 - 0.195996, 0.5 + 0.195996), abs=1e-6)
    assert normal(0.99, 0.1).high == 1


def test_standard_error_of_single_values_is_the_usual_one() -> None:
    """With clusters of one value it is the standard deviation over √n."""
    values = [0.0, 1.0, 1.0, 0.25, 0.5]
    error = standard_error([Cluster(1, value) for value in values])
    assert error == pytest.approx(stdev(values) / math.sqrt(len(values)))


def test_standard_error_of_clusters_sums_their_covariances() -> None:
    """It is Miller's double sum over pairs within clusters, with the correction for few clusters."""
    clusters = [[1.0, 1.0, 0.0], [0.0, 0.0], [1.0]]
    values = [value for cluster in clusters for value in cluster]
    centre = sum(values) / len(values)
    pairs = sum((a - centre) * (b - centre) for cluster in clusters for a in cluster for b in cluster)
    error = standard_error([Cluster(len(cluster), sum(cluster)) for cluster in clusters])
    assert error == pytest.approx(math.sqrt(pairs * 3 / 2) / len(values))


def test_repeating_a_case_adds_no_certainty() -> None:
    """Ten identical attempts at each case leave the standard error as it is with one."""
    once = [Cluster(1, 1.0), Cluster(1, 0.0), Cluster(1, 1.0)]
    assert standard_error([Cluster(10, 10 * total) for _, total in once]) == pytest.approx(standard_error(once))


def test_one_cluster_has_no_standard_error() -> None:
    """Nothing is known about variation from a single cluster."""
    assert standard_error([Cluster(7, 3.0)]) is None
    assert standard_error([]) is None


def test_quantiles_interpolate() -> None:
    """They equal Python's inclusive quantiles, which are R's type 7."""
    values = [0.1, 0.2, 0.7, 1.5, 9.0, 11.0]
    assert quantile(values, 0.5) == pytest.approx(1.1)
    assert [quantile(values, i / 20) for i in range(1, 20)] == pytest.approx(
        quantiles(values, n=20, method="inclusive")
    )
    assert quantile([3.0], 0.95) == 3.0


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_pass_at_k_and_pass_hat_k_count_all_draws(attempts: int) -> None:
    """Both are the share of all draws of k attempts in which one passes, or all do."""
    for passed in range(attempts + 1):
        outcomes = [place < passed for place in range(attempts)]
        for k in range(1, attempts + 1):
            draws = list(combinations(outcomes, k))
            assert pass_at_k(attempts, passed, k) == pytest.approx(sum(map(any, draws)) / len(draws))
            assert pass_hat_k(attempts, passed, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_pass_at_k_of_many_attempts() -> None:
    """A thousand attempts neither overflow nor lose precision."""
    assert pass_at_k(1000, 1, 500) == pytest.approx(0.5)
    assert pass_hat_k(1000, 999, 500) == pytest.approx(0.5)
