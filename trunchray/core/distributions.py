"""Distribution functions, from SciPy. Importing it takes half a second, so only what compares imports this."""

from __future__ import annotations

from math import comb

from scipy.special import bdtr, stdtr, stdtrit


def fair_coin(heads: int, throws: int) -> tuple[float, float]:
    """The chance of at most `heads` heads in `throws` throws of a fair coin, and of exactly so many."""
    return float(bdtr(heads, throws, 0.5)), comb(throws, heads) / 2**throws


def student_tail(t: float, degrees: int) -> float:
    """The chance that Student's t, with at least one degree of freedom, is further from 0 than `t`, on either side."""
    return float(2 * stdtr(degrees, -abs(t)))


def student_quantile(share: float, degrees: int) -> float:
    """The `share` quantile of Student's t with at least one degree of freedom."""
    return float(stdtrit(degrees, share))
