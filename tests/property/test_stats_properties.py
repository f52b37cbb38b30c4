"""Laws of the statistics: range, order, and agreement with an independent implementation."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest

from trunchray.core.stats import Cluster, normal, pass_at_k, pass_hat_k, quantile, standard_error, wilson

shares = st.floats(0, 1)
clusters = st.lists(
    st.integers(1, 9).flatmap(lambda size: st.floats(0, size).map(lambda total: Cluster(size, total))), max_size=8
)


@given(shares, st.integers(1, 30_000))
def test_wilson_holds_the_estimate(rate: float, cases: int) -> None:
    """The interval lies within [0, 1], around the rate, and is never a single point."""
    low, high = wilson(rate, cases)
    assert 0 <= low <= rate <= high <= 1
    assert low < high


@given(st.integers(0, 400), st.integers(1, 400))
def test_wilson_agrees_with_scipy(passed: int, cases: int) -> None:
    """SciPy's Wilson interval without continuity correction is the same."""
    assume(passed <= cases)
    theirs = binomtest(passed, cases).proportion_ci(method="wilson")
    assert wilson(passed / cases, cases) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 200), shares, shares)
def test_more_confidence_is_wider(cases: int, rate: float, error: float) -> None:
    """A 99 % interval holds the 95 % one."""
    for narrow, wide in (
        (wilson(rate, cases), wilson(rate, cases, 0.99)),
        (normal(rate, error), normal(rate, error, 0.99)),
    ):
        assert wide.low - 1e-12 <= narrow.low <= narrow.high <= wide.high + 1e-12


@given(clusters.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_standard_error_ignores_order(pair: tuple[list[Cluster], list[Cluster]]) -> None:
    """The same clusters in another order give the very same number."""
    assert standard_error(pair[0]) == standard_error(pair[1])


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50).map(sorted), shares, shares)
def test_quantiles_ascend_within_the_values(values: list[float], a: float, b: float) -> None:
    """A larger share never has a smaller quantile, and no quantile leaves the range of the values."""
    low, high = sorted((a, b))
    assert values[0] <= quantile(values, low) <= values[-1]
    assert quantile(values, low) <= quantile(values, high) * (1 + 1e-12)


@given(st.integers(1, 40), st.data())
def test_pass_at_k_grows_and_pass_hat_k_shrinks(attempts: int, data: st.DataObject) -> None:
    """More tries help when one has to pass and hurt when all have to; with one try both are the pass rate."""
    passed = data.draw(st.integers(0, attempts))
    at = [pass_at_k(attempts, passed, k) for k in range(1, attempts + 1)]
    hat = [pass_hat_k(attempts, passed, k) for k in range(1, attempts + 1)]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert (at[0], hat[0]) == pytest.approx((passed / attempts, passed / attempts))
