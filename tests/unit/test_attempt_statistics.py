"""Figures of repeated attempts: what counts, and what the numbers are."""

from __future__ import annotations

import pytest

from trunchray.core.attempt_statistics import summarise, versus

BASELINE = [{"elapsed_s": 10.0, "total_tokens": 100}, {"elapsed_s": 12.0, "total_tokens": 200}, {"elapsed_s": 14.0}]
VARIANT = [{"elapsed_s": 13.0, "total_tokens": 90}, {"elapsed_s": 15.0, "total_tokens": 110}, {"elapsed_s": 17.0}]


def test_a_metric_has_mean_sample_deviation_and_range():
    """(10 + 12 + 14) / 3 = 12; ((−2)² + 0 + 2²) / (3 − 1) = 4, whose root is 2. A field counts where it is."""
    found = summarise(BASELINE)
    assert found.runs == 3
    assert list(found.metrics) == ["elapsed_s", "total_tokens"]
    assert found.metrics["elapsed_s"].model_dump() == {"n": 3, "mean": 12, "stddev": 2, "min": 10, "max": 14}
    assert found.metrics["total_tokens"].n == 2


def test_a_single_value_has_no_spread():
    """0.0, as there is nothing to tell it from."""
    assert summarise([{"x": 5}]).metrics["x"].model_dump() == {"n": 1, "mean": 5, "stddev": 0, "min": 5, "max": 5}


def test_every_number_is_a_metric_and_true_is_none():
    """Exit codes are numbers too; texts, tables, lists and null are not."""
    record = {"ok": True, "return_code": 3, "name": "4", "tool_calls": {"Read": 5}, "list": [6], "none": None}
    assert summarise([record]).metrics.keys() == {"return_code"}


def test_a_delta_is_the_variant_less_its_baseline():
    """On metrics that both have; in percent of the baseline's mean, if that is not 0."""
    found = versus(
        summarise([{**one, "zero": 0, "a": 1} for one in BASELINE]), summarise([{**one, "zero": 1} for one in VARIANT])
    )
    assert list(found.delta) == ["elapsed_s", "total_tokens", "zero"]
    assert found.delta["elapsed_s"].model_dump() == {
        "baseline_mean": 12,
        "variant_mean": 15,
        "delta": 3,
        "delta_pct": 25,
        "baseline_stddev": 2,
        "variant_stddev": 2,
    }
    assert found.delta["total_tokens"].delta_pct == pytest.approx(-100 / 3)
    assert (found.delta["zero"].delta, found.delta["zero"].delta_pct) == (1, None)
    tiny = versus(summarise([{"x": 5e-324}]), summarise([{"x": 1e300}]))
    assert tiny.delta["x"].delta_pct is None


def test_an_attempt_that_failed_does_not_count_with_the_time_it_was_given():
    """Only ok, and what does not say; the others are counted by how they ended, and with --all-statuses like any."""
    records = [{"elapsed_s": 600, "status": "timeout"}, {"elapsed_s": 2, "status": "ok"}, {"elapsed_s": 4}]
    found = summarise(records)
    assert (found.runs, found.metrics["elapsed_s"].mean, found.by_status) == (2, 3, {"ok": 2, "timeout": 1})
    everything = summarise(records, all_statuses=True)
    assert (everything.runs, everything.metrics["elapsed_s"].mean) == (3, 202)
    assert everything.by_status == found.by_status


def test_the_spread_between_cases_is_not_the_spread_of_a_case():
    """Two cases that always take the same have no spread of their own, whatever they have together."""
    records = [{"case_id": case, "x": value} for case, value in (("a", 1), ("b", 9)) for _ in range(3)]
    found = summarise(records)
    assert found.metrics["x"].stddev > 4
    assert {case: (one.runs, one.metrics["x"].stddev) for case, one in found.cases.items()} == {
        "a": (3, 0),
        "b": (3, 0),
    }
    assert found.settled


@pytest.mark.parametrize(
    ("records", "settled"),
    [
        ([{"x": 1}] * 3, True),
        ([{"x": 1}] * 2, False),
        ([{"case_id": case} for case in "aabbcc"], False),
        ([{"case_id": case} for case in "aaabb"], False),
        ([{"case_id": case} for case in "aaabbb"], True),
        ([{"case_id": "a"}] * 3 + [{"case_id": "b", "status": "error"}] * 3, False),
        ([{"case_id": "a"}] * 2 + [{"case_id": "a", "status": "error"}], False),
        ([], False),
    ],
)
def test_a_result_is_settled_with_three_attempts_of_each_case(records: list[dict[str, str]], settled: bool):
    """Not with three in all; and not while one case has none that counts."""
    assert summarise(records).settled is settled


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e301, 10**400])
def test_a_number_that_is_not_finite_is_refused(value: float):
    """It would make every figure meaningless; one of 10^400 does not even fit."""
    with pytest.raises(ValueError, match=r"'x' is .*; metrics must be finite and at most 1e300"):
        summarise([{"x": value}])
