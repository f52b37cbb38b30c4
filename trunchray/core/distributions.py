"""Distribution functions, from SciPy, whose import takes half a second: it is for the first that asks for one."""

from __future__ import annotations

from math import comb


def fair_coin(heads: int, throws: int) -> tuple[float, float]:
    """The chance of at most `heads` heads in `throws` throws of a fair coin, and of exactly so many."""
    from scipy.special import bdtr  # noqa: PLC0415

    return float(bdtr(heads, throws, 0.5)), comb(throws, heads) / 2**throws


def student_tail(t: float, degrees: int) -> float:
    """The chance that Student's t, with at least one degree of freedom, is further from 0 than `t`, on either side."""
    from scipy.special import stdtr  # noqa: PLC0415

    return float(2 * stdtr(degrees, -abs(t)))


def student_quantile(share: float, degrees: int) -> float:
    """The `share` quantile of Student's t with at least one degree of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, share))
