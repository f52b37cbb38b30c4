"""What a check may return, value by value; all else fails closed."""

from __future__ import annotations

import math
from collections import UserDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.ids import shown
from trunchray.core.check_result import CheckResult
from trunchray.evaluators.python.reading import read_result


@dataclass
class Found:
    passed: bool
    value: float | None = None
    explanation: str | None = None


@pytest.mark.parametrize(
    ("returned", "passed", "value"),
    [
        (True, True, 1),
        (False, False, 0),
        (1, True, 1),
        (1.0, True, 1),
        (0, False, 0),
        (0.0, False, 0),
        (-0.0, False, 0),
        (0.5, False, 0.5),
        (math.nextafter(1, 0), False, math.nextafter(1, 0)),
        (np.True_, True, 1),
        (np.False_, False, 0),
        (np.float32(1), True, 1),
        (np.float64(0.25), False, 0.25),
        (np.int64(1), True, 1),
        (np.array(True), True, 1),
        ({"pass": True}, True, 1),
        ({"pass": False}, False, 0),
        ({"pass": True, "value": 0.4}, True, 0.4),
        ({"pass": False, "value": 1}, False, 1),
        ({"pass": np.True_, "value": np.float32(0.5)}, True, 0.5),
        ({"pass": True, "value": None, "explanation": None}, True, 1),
        (UserDict({"pass": True}), True, 1),
        (Found(passed=True), True, 1),
        (Found(passed=False, value=0.5), False, 0.5),
        (SimpleNamespace(**{"pass": True, "value": 0.5}), True, 0.5),
        (CheckResult(passed=True, value=0.5), True, 0.5),
    ],
)
def test_a_bool_a_number_or_a_detailed_result_is_read(returned: Any, passed: bool, value: float) -> None:
    """A bool is tested first, a number passes only at 1, and a value left out is 1 or 0."""
    found = read_result(returned)
    assert (found.passed, found.value) == (passed, value)
    assert not (found.explanation or "").startswith("returned")
    assert math.copysign(1, found.value) == 1
    assert type(found.value) is float


@pytest.mark.parametrize(
    "returned",
    [
        None,
        "",
        "yes",
        b"1",
        math.nan,
        math.inf,
        -math.inf,
        1.2,
        -0.1,
        2,
        10**400,
        1 + 0j,
        np.float64("nan"),
        np.float32(1.5),
        np.array([1.0]),
        np.array([True, False]),
        np.str_("yes"),
        [],
        [True],
        (True, "why"),
        {},
        {"value": 1},
        {"passed": True},
        {"pass": 1},
        {"pass": "true"},
        {"pass": None},
        {"pass": True, "value": 1.2},
        {"pass": True, "value": math.nan},
        {"pass": True, "value": True},
        {"pass": True, "value": "1"},
        {"pass": True, "explanation": 3},
        Found(passed=1),  # type: ignore[arg-type]  # what is to be refused
        Found(passed=True, value=7),
        object(),
        int,
        lambda: True,
    ],
    ids=shown,
)
def test_anything_else_fails_closed_as_returned(returned: Any) -> None:
    """The explanation begins with the word, shows the value, and says what would be right."""
    found = read_result(returned)
    assert (found.passed, found.value) == (False, 0)
    assert (found.explanation or "").startswith("returned ")
    assert "a check returns a bool" in (found.explanation or "")


def test_a_fraction_says_that_it_is_below_1() -> None:
    """Otherwise a failed number would have no explanation at all."""
    assert read_result(0.5).explanation == "0.5 is below 1"
    assert read_result(1).explanation is None


def test_an_explanation_is_kept() -> None:
    """Of results that pass, too."""
    assert read_result({"pass": True, "explanation": "fine"}).explanation == "fine"
    assert read_result(CheckResult.failed("bad \ud800")).explanation == "bad \\ud800"


def test_a_long_explanation_is_cut_and_a_lone_surrogate_escaped() -> None:
    """It can be stored, whatever it is."""
    assert read_result({"pass": False, "explanation": "\udc00" + "x" * 9_999}).explanation == (
        "\\udc00" + "x" * 1_998 + "…"
    )


def test_what_is_shown_names_no_address() -> None:
    """The same explanation in every process."""
    assert " at 0x" not in (read_result(object()).explanation or "")
    assert "<object object>" in (read_result([object()]).explanation or "")
