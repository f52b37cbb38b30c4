"""The cluster bootstrap: how far a mean would have moved, had other clusters been drawn from those there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trunchray.core.stats import CONFIDENCE, Interval

RESAMPLES = 2_000
_AT_ONCE = 2_000_000
"""Counts drawn at a time: 16 MB."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def bootstrap(sizes: Integers, totals: Floats, counts: Integers, confidence: float = CONFIDENCE) -> Interval | None:
    """The percentile interval of the mean of all values when whole clusters are drawn anew; None below two clusters.

    Field & Welsh, "Bootstrapping clustered data", JRSS B 69 (2007), the cluster bootstrap; Efron & Tibshirani, "An
    introduction to the bootstrap" (1993), chapter 13, the percentile interval. There are `counts` clusters of each of
    these sizes and totals; a draw of n clusters is then a multinomial count of each kind. The seed is fixed, so that
    the same values in the same order always give the same interval.
    """
    count = int(counts.sum())
    if count < 2:
        return None
    chance = np.random.Generator(np.random.PCG64(0))
    at_once = max(1, min(RESAMPLES, _AT_ONCE // len(counts)))
    means: list[float] = []
    while len(means) < RESAMPLES:
        drawn = chance.multinomial(count, counts / count, size=min(at_once, RESAMPLES - len(means)))
        means += ((drawn @ totals) / (drawn @ sizes)).tolist()
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))
