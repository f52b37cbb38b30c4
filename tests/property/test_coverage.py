"""Made-up data whose truth is known: intervals hold it, and tests reject what is true, as often as they say.

`benchmarks/statistics/coverage.py` repeats this for clusters, repeats and the gate.
"""

from __future__ import annotations

import numpy as np

from trunchray.core.contrast import Effect
from trunchray.core.paired import effect
from trunchray.core.stats import wilson

REPETITIONS = 2_000


def pairs(cases: int, attempts: int, better: float) -> list[Effect]:
    """The second model is better by `better` on each case; the cases' own rates differ."""
    chance = np.random.default_rng(20260101)
    base = 0.25 + 0.4 * chance.random((REPETITIONS, cases))
    first = chance.binomial(attempts, base) / attempts
    second = chance.binomial(attempts, base + better) / attempts
    clusters = np.zeros(cases, dtype=np.int64)
    return [effect(one, other, clusters, single=attempts == 1) for one, other in zip(first, second, strict=True)]


def test_wilson_covers_the_truth():
    """Of 2,000 samples of 150 cases, 93 to 97 % of the intervals hold the rate they were drawn with."""
    passed = np.random.default_rng(20260101).binomial(150, 0.8, REPETITIONS)
    held = [low <= 0.8 <= high for low, high in (wilson(count / 150, 150) for count in passed.tolist())]
    assert 0.93 <= np.mean(held) <= 0.97


def test_intervals_of_differences_cover_the_truth():
    """So do those of a difference of 10 points, with one attempt and with three."""
    for attempts in (1, 3):
        found = pairs(120, attempts, 0.1)
        held = [(each.low or 0) <= 0.1 <= (each.high or 0) for each in found]
        assert 0.93 <= np.mean(held) <= 0.97, attempts


def test_equal_models_are_rarely_told_apart():
    """Of equal models, the mid-p and the paired t call 4 to 6 % different at 5 %, exact McNemar never more."""
    once = pairs(250, 1, 0.0)
    assert 0.04 <= np.mean([(each.p_mid or 0) < 0.05 for each in once]) <= 0.06
    assert 0.02 <= np.mean([(each.p or 0) < 0.05 for each in once]) <= 0.05
    repeated = pairs(120, 3, 0.0)
    assert 0.04 <= np.mean([(each.p or 0) < 0.05 for each in repeated]) <= 0.06
