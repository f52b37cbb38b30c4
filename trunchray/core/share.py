"""Numbers from 0 to 1: probabilities, credits and scores."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import TypeGuard

TOLERANCE = 0.02
"""How far the probabilities of one answer may be from adding up to 1."""


def is_share(value: object) -> TypeGuard[float]:
    """Whether it is a number from 0 to 1. NaN is not, and neither is a bool, though Python counts with it."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def check_total(probabilities: Iterable[float]) -> None:
    """Refuse probabilities that are not of one whole.

    Raises:
        ValueError: they do not add up to 1 ± 0.02.
    """
    total = fsum(probabilities)
    if abs(total - 1) > TOLERANCE + 1e-9:  # 1.02 itself is allowed, however it is added up
        raise ValueError(f"its probabilities add up to {total:.4g}, not to 1 ± {TOLERANCE:g}")
