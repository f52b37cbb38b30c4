"""Two models on the same cases: tests and intervals against published figures and independent computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from trunchray.core.bootstrap import bootstrap
from trunchray.core.contrast import Effect
from trunchray.core.paired import bonett_price, effect, mcnemar
from trunchray.core.stats import Cluster, detectable, holm, rule_of_three, standard_error, z


def one_cluster(cases: int) -> np.ndarray:
    return np.zeros(cases, dtype=np.int64)


def single(better: int, worse: int, same: int) -> Effect:
    """The effect of so many cases with one attempt each."""
    first = np.array([0.0] * better + [1.0] * (worse + same))
    second = np.array([1.0] * better + [0.0] * worse + [1.0] * same)
    return effect(first, second, one_cluster(len(first)), single=True)


@pytest.mark.parametrize(
    ("better", "worse", "p", "mid"),
    [
        # Fagerland, Lydersen & Laake, BMC Med. Res. Methodol. 13:91 (2013): airway hyper-responsiveness, 1 against 7.
        (1, 7, 0.070, 0.039),
        # Worked out by hand.
        (0, 0, 1, 1),
        (0, 1, 1, 0.5),
        (3, 3, 1, 1),
        (0, 6, 2 / 64, 1 / 64),
    ],
)
def test_mcnemar_matches_published_figures(better: int, worse: int, p: float, mid: float):
    """Exact p and mid-p come out to three digits, in both directions."""
    assert mcnemar(better, worse) == pytest.approx((p, mid), abs=5e-4)
    assert mcnemar(worse, better) == mcnemar(better, worse)


@pytest.mark.parametrize(("better", "worse"), [(5, 9), (40, 12), (6000, 6400)])
def test_mcnemar_is_the_binomial_test(better: int, worse: int):
    """It is the exact test that a discordant pair goes either way half of the time."""
    theirs = scipy_stats.binomtest(better, better + worse).pvalue
    assert mcnemar(better, worse)[0] == pytest.approx(theirs)


def test_bonett_price_matches_a_published_interval():
    """1 against 7 of 21 pairs give −0.508 to −0.013: Fagerland, Lydersen & Laake, Stat. Med. 33 (2014), table V."""
    centre, error = bonett_price(1, 7, 21)
    assert (centre - 1.96 * error, centre + 1.96 * error) == pytest.approx((-0.508, -0.0134), abs=5e-4)


def test_case_means_give_the_paired_t_test():
    """With several attempts a case is its mean; p and interval are those of SciPy's paired t-test."""
    chance = np.random.default_rng(1)
    first, second = chance.integers(0, 4, (2, 60)) / 3
    found = effect(first, second, one_cluster(60), single=False)
    theirs = scipy_stats.ttest_rel(second, first)
    interval = theirs.confidence_interval(0.95)
    assert (found.test, found.interval) == ("paired-t", "student")
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_no_variation_is_no_certainty():
    """Where all differences are the same there is no standard error: the sign test and an interval of some width."""
    same = effect(np.full(10, 0.5), np.full(10, 0.5), one_cluster(10), single=False)
    assert (same.difference, same.p, same.test) == (0, 1, "sign-exact")
    assert same.low is not None
    assert same.high is not None
    assert same.low < 0 < same.high
    better = effect(np.full(10, 0.25), np.full(10, 0.75), one_cluster(10), single=False)
    assert better.p == pytest.approx(2 / 1024)
    assert better.low is not None
    assert better.low <= 0.5


@pytest.mark.parametrize(("better", "worse", "same"), [(0, 0, 5), (5, 0, 0), (0, 3, 0), (1, 0, 0), (0, 0, 1)])
def test_all_alike_gives_figures(better: int, worse: int, same: int):
    """All passed, all broke or a single case: every figure is a number, and the interval has a width."""
    found = single(better, worse, same)
    figures = [found.difference, found.low, found.high, found.p, found.p_mid, found.detectable]
    assert all(figure is not None and math.isfinite(figure) for figure in figures)
    assert found.low is not None
    assert found.high is not None
    assert found.difference is not None
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.low < found.high


def test_no_case_gives_nothing():
    """Without a shared case there is no figure, and no error either."""
    empty = np.array([])
    assert effect(empty, empty, np.array([], dtype=np.int64), single=True, resample=True) == Effect()


def test_clusters_that_differ_widen_the_interval():
    """When whole evals go one way, the standard error is that of evals: Liang & Zeger's, computed apart."""
    clusters = np.repeat(np.arange(40), 10)
    chance = np.random.default_rng(2)
    up = (chance.random(40) < 0.4)[clusters]
    found = effect(np.zeros(400), up.astype(float), clusters, single=True)
    error = standard_error([Cluster(10, 10.0 * up[10 * number]) for number in range(40)])
    assert error is not None
    assert found.interval == "normal-clustered"
    assert found.clusters == 40
    assert (found.high or 0) - (found.difference or 0) == pytest.approx(z(0.95) * error)


@pytest.mark.parametrize(("evals", "reliable"), [([0] * 80, True), ([0] * 40 + [1] * 40, False)])
def test_a_difference_to_rely_on_is_one_by_p_and_by_its_interval(evals: list[int], reliable: bool):
    """Where one eval alone has all of it, p is small, but the interval, over evals, holds 0: that is no certainty."""
    second = np.array([1.0] * 20 + [0.0] * 60)
    found = effect(np.zeros(80), second, np.array(evals), single=True).model_copy(update={"p_adjusted": 0.049})
    assert (found.p or 1) < 0.001
    assert ((found.low or 0) > 0) is reliable
    assert (found.unlikely, found.reliable) == (True, reliable)
    chance = found.model_copy(update={"p_adjusted": 0.051})
    assert (chance.unlikely, chance.reliable) == (False, False)
    assert (Effect().unlikely, Effect().reliable) == (False, False)


def test_the_bootstrap_agrees_with_the_standard_error():
    """Over many clusters its interval is about 1.96 clustered standard errors to each side, and always the same."""
    chance = np.random.default_rng(3)
    sizes = chance.integers(5, 15, 200)
    totals = chance.normal(0, 1, 200) * sizes
    found = bootstrap(sizes, totals, np.ones_like(sizes))
    error = standard_error([Cluster(int(size), total) for size, total in zip(sizes, totals, strict=True)])
    assert found is not None
    assert error is not None
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.1)
    assert found == bootstrap(sizes, totals, np.ones_like(sizes))


def test_the_bootstrap_draws_cases_where_clusters_are_few():
    """Two evals have three different draws, which is no interval."""
    first, second = np.zeros(100), np.array([1.0, 0.0] * 50)
    found = effect(first, second, np.repeat([0, 1], 50), single=True, resample=True)
    assert found.bootstrap_of == "cases"
    assert (found.bootstrap_low, found.bootstrap_high) == pytest.approx((0.4, 0.6), abs=0.03)
    many = effect(first, second, np.repeat(np.arange(10), 10), single=True, resample=True)
    assert many.bootstrap_of == "clusters"


def test_holm():
    """The example of the method's textbook: each p times the number of those not smaller, never falling, at most 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize(("cases", "points"), [(500, 4.0), (1_000, 2.8), (5_000, 1.25), (25_000, 0.56)])
def test_the_smallest_difference_that_is_found(cases: int, points: float):
    """With 10 % of pairs discordant, power 80 % and level 5 %."""
    assert 100 * detectable(math.sqrt(0.1 / cases)) == pytest.approx(points, abs=0.05)


@pytest.mark.parametrize("cases", [30, 100, 1000])
def test_the_rule_of_three(cases: int):
    """No failure in n cases leaves about 3 / n, and at that rate none would fail 5 times in 100."""
    bound = rule_of_three(cases)
    assert bound == pytest.approx(3 / cases, rel=0.06)
    assert (1 - bound) ** cases == pytest.approx(0.05)
