"""Laws of skill evals' files: names, conversions and figures hold for whatever stands in them."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.attempt_statistics import summarise, versus
from trunchray.frontends.skill.convert import EXPECTED, to_cases, to_evals
from trunchray.frontends.skill.labels import safe_name

line = st.one_of(
    st.sampled_from(["a", "b", EXPECTED, f"{EXPECTED}x", "output matches:"]), st.text("ab: \n", min_size=1)
)
lines = st.lists(line.filter(str.strip), max_size=4)
ids = st.one_of(st.integers(-3, 10**16), st.sampled_from(["7", "007", "a", "-1", "0", "٣", "1e3"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)
entries = st.one_of(line, st.fixed_dictionaries({}, optional={"text": line, "name": line, "weight": json_values}))
unknown = st.dictionaries(
    st.sampled_from(["name", "role", "timeout", "owner", "prompt_", "kept"]), json_values, max_size=2
)
evals = st.builds(
    lambda fixed, more: more | fixed,
    st.fixed_dictionaries(
        {"id": ids},
        optional={
            "prompt": st.text("ab ", max_size=3),
            "expected_output": st.one_of(line, json_values),
            "expectations": st.lists(entries, max_size=3),
            "assertions": st.lists(entries, max_size=3),
            "files": st.one_of(st.lists(st.sampled_from(["f", "g/h"]), max_size=2), json_values),
            "state_prefix": json_values,
        },
    ),
    unknown,
)
cases = st.builds(
    lambda fixed, more: more | fixed,
    st.fixed_dictionaries(
        {"id": ids, "input": st.text("ab ", max_size=3)},
        optional={
            "rubric": lines,
            "state_prefix": st.none() | st.text("ab", max_size=2),
            "files": st.lists(st.sampled_from(["f", "g/h"]), max_size=2),
            "timeout": st.integers(1, 9),
            "prompt": json_values,
            "expectations": json_values,
            "assertions": json_values,
        },
    ),
    unknown,
)
numbers = st.floats(-1e300, 1e300) | st.integers(-(10**20), 10**20)


def told(entry: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """What an entry says: of the fields that a format has, those that are empty say nothing."""
    return {key: value for key, value in entry.items() if key not in known or value not in (None, "", [])}


def exact(entries: list[dict[str, Any]]) -> str:
    """To tell 1 from true and 1.0."""
    return json.dumps(entries, sort_keys=True)


def as_text(case: dict[str, Any]) -> dict[str, Any]:
    """Ids are read as text, however they are written."""
    return case | {"id": str(case["id"])}


@given(st.lists(evals, min_size=1, max_size=3))
def test_evals_come_back_as_they_were(some: list[dict[str, Any]]):
    """Whatever they say, and whatever others of the same file say; empty fields may be left out or added."""
    known = ("prompt", "expected_output", "files", "expectations", "assertions", "state_prefix")
    made = to_cases({"skill_name": "s", "evals": some}, "evals.json")
    assert all(isinstance(text, str) for case in made.content["cases"] for text in case["rubric"] + case["files"])
    back = to_evals(json.loads(json.dumps(made.content)), "cases.json").content
    assert exact([told(one, known) for one in back["evals"]]) == exact([told(one, known) for one in some])


@given(st.lists(cases, min_size=1, max_size=3))
def test_cases_come_back_as_they_were(some: list[dict[str, Any]]):
    """Likewise."""
    known = ("rubric", "state_prefix", "files")
    evals = to_evals(some, "cases.json").content
    back = to_cases(json.loads(json.dumps(evals)), "evals.json").content["cases"]
    assert exact([told(as_text(one), known) for one in back]) == exact([told(as_text(one), known) for one in some])


@given(st.text())
def test_a_safe_name_is_one_folder(text: str):
    """Never none, never a step up, never more than one, and safe already."""
    name = safe_name(text)
    assert name
    assert set(name) != {"."}
    assert "/" not in name
    assert name.isascii()
    assert safe_name(name) == name


@given(st.lists(numbers, min_size=1, max_size=8))
def test_figures_agree_with_the_standard_library(values: list[float]):
    """Mean and sample deviation are exact, in any order; the range holds the mean."""
    metric = summarise([{"x": value} for value in values]).metrics["x"]
    floats = [float(value) for value in values]
    assert metric == summarise([{"x": value} for value in reversed(values)]).metrics["x"]
    assert metric.mean == pytest.approx(statistics.mean(floats), rel=1e-12)
    assert metric.stddev == (pytest.approx(statistics.stdev(floats), rel=1e-12) if len(floats) > 1 else 0)
    assert metric.min <= metric.mean <= metric.max


@given(st.lists(numbers, min_size=1, max_size=4), st.lists(numbers, min_size=1, max_size=4))
def test_deltas_are_finite_and_change_their_sign_when_turned_round(one: list[float], other: list[float]):
    """Printed as JSON, which has no infinity."""
    left, right = (summarise([{"x": value} for value in values]) for values in (one, other))
    there, back = versus(left, right).delta["x"], versus(right, left).delta["x"]
    assert there.delta == -back.delta
    assert math.isfinite(there.delta)
    json.dumps(versus(left, right).model_dump(mode="json"), allow_nan=False)
