"""Python values as JSON values."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from trunchray.core.plain import LEVELS, stable

SHUFFLED = """
from trunchray.core.plain import stable
print(stable({"tags": {"a", "b", "c", "d"}, "nested": [({frozenset({"x", "y"}), "z"},)]}))
"""


def nested(levels: int) -> Any:
    return [] if levels == 1 else [nested(levels - 1)]


def test_sets_are_the_same_in_every_process():
    """What tells one evaluation from another must not depend on how this process shuffles its sets."""
    said = {
        subprocess.run(
            [sys.executable, "-c", SHUFFLED], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert said == {"{'tags': ['a', 'b', 'c', 'd'], 'nested': [[['z', ['x', 'y']]]]}\n"}


def test_what_can_be_read_once_is_read_once():
    """A generator within a value is a list of what it gives."""
    assert stable({"x": (number for number in range(3)), "y": [map(str, {2, 1})]}) == {
        "x": [0, 1, 2],
        "y": [["1", "2"]],
    }
    with pytest.raises(ValueError, match="leaves nothing for others"):
        stable(iter([1]))


def test_values_without_sets_stay_what_they_are():
    """Lists keep their order."""
    value = {"b": [3, 1, 2], "a": (None, True, 1.5, "x")}
    assert stable(value) == {"b": [3, 1, 2], "a": [None, True, 1.5, "x"]}


def test_what_has_no_form_in_json_is_refused():
    """Also what holds itself, or is nested so deep that it could not be gone through."""
    itself: list[Any] = []
    itself.append([itself, itself])
    for value in (itself, {"x": {1, object()}}, nested(LEVELS + 1), nested(5 * LEVELS), {float("nan")}):
        with pytest.raises(ValueError, match="is not a JSON value"):
            stable(value)
    assert stable(nested(LEVELS)) == nested(LEVELS)
