"""Where two values of plain JSON part."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from trunchray.adapters.sandbox.difference import first_difference

Case = tuple[JsonValue, JsonValue, tuple[str, str, str]]

CASES: dict[str, Case] = {
    "member": ({"a": 1, "b": [{"c": 2}]}, {"a": 1, "b": [{"c": 3}]}, ("b[0].c", "2", "3")),
    "first of two": ([1, 2, 3], [1, 4, 5], ("[1]", "2", "4")),
    "odd name": ({"a": {"x y": 1}}, {"a": {"x y": 2}}, ('a["x y"]', "1", "2")),
    "truth is no number": ({"a": 1}, {"a": True}, ("a", "1", "true")),
    "kind": ({"a": [1]}, {"a": {"b": 1}}, ("a", "[1]", '{"b": 1}')),
    "length": ({"a": [1]}, {"a": [1, 2]}, ("a", "an array of 1", "an array of 2")),
    "name": ({"a": {"b": 1}}, {"a": {"c": 1}}, ("a", 'the field "b"', 'the field "c"')),
    "more names": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 1}}, ("a", "no more fields", 'the field "c"')),
    "order": ({"b": 1, "a": 1}, {"a": 1, "b": 1}, ("", 'the field "b"', 'the field "a"')),
    "long": (["x" * 99], ["y"], ("[0]", '"' + "x" * 58 + "…", '"y"')),
}


@pytest.mark.parametrize(("one", "other", "difference"), CASES.values(), ids=CASES.keys())
def test_the_first_place_that_differs(one: JsonValue, other: JsonValue, difference: tuple[str, str, str]) -> None:
    """It is told with what each value has there."""
    assert first_difference(one, other) == difference
