"""When two JSON values are the same value."""

from __future__ import annotations

import math

from pydantic import JsonValue


def json_equal(a: JsonValue, b: JsonValue) -> bool:
    """Numbers by numeric value, strings exactly, arrays in order, objects whatever their key order; true is not 1.

    Numbers are JavaScript's: integers too large for a double are the double nearest to them. NaN, which Python values
    can have though JSON cannot, is NaN.
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float):
        return isinstance(b, int | float) and (a == b or _same_double(_double(a), _double(b)))
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(json_equal, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(json_equal(a[key], b[key]) for key in a)
    return a == b


def _same_double(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
