"""Counted rows → figures → `summary.json` and `report.md`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunchray.adapters.parts import SCHEMA, encode
from trunchray.core.agent import ModelAgent
from trunchray.core.plan import make_plan
from trunchray.core.report import Bounds, CountedRow, ErrorKind, ModelReport, Planned, PlannedModel, Report, Tokens
from trunchray.core.report_markdown import report_markdown
from trunchray.core.run import RunSpec
from trunchray.core.stats import wilson
from trunchray.core.tally import Tally
from trunchray.errors import StoreError
from trunchray.pages.report.page import report_page

PASS = CountedRow(
    agent="m",
    eval_id="e",
    case_id="c1",
    attempt=1,
    outcome="passed",
    score=1.0,
    usage=(100, 20, None, None),
    cost_usd=0.1,
    latency=2.0,
    finish_reason="stop",
    tool_calls=1,
    failure=None,
)
FAIL = replace(PASS, case_id="c2", outcome="failed", score=0.25, latency=4.0, finish_reason="length", tool_calls=0)
ERROR = replace(
    FAIL,
    case_id="c3",
    outcome="error",
    score=None,
    usage=(None, None, None, None),
    cost_usd=None,
    latency=9.0,
    finish_reason=None,
    failure=("provider", "timeout", "no answer | within 120 s"),
)


def planned(attempts: int = 1, **trials: int) -> Planned:
    model = PlannedModel("m", "a" * 64, "openai/x", trials or {"e": 4})
    return Planned("r", "d" * 64, "Title", attempts, (model,))


def report(*rows: CountedRow, plan: Planned | None = None) -> Report:
    tally = Tally(plan or planned())
    for row in rows:
        tally.add(row)
    return tally.report({"m": "budget"})


def only(*rows: CountedRow, plan: Planned | None = None) -> ModelReport:
    (model,) = report(*rows, plan=plan).models
    return model


def test_counts_rates_and_sums() -> None:
    """Every figure of a small run, computed by hand."""
    model = only(PASS, FAIL, ERROR)
    assert (model.planned, model.passed, model.failed, model.error, model.not_run) == (4, 1, 1, 1, 1)
    assert (model.coverage, model.pass_rate, model.mean_score) == (0.5, 0.5, 0.625)
    assert model.mean_score_se == pytest.approx(0.375)
    assert (model.pass_rate_low, model.pass_rate_high, model.interval) == (*wilson(0.5, 2), "wilson")
    assert model.bounds == Bounds(errors_failed=1 / 3, errors_passed=2 / 3)
    assert model.usage == Tokens(input_tokens=200, output_tokens=40)
    assert model.cost_usd == pytest.approx(0.2)
    assert model.latency is not None
    assert (model.latency.p50, model.latency.p95) == pytest.approx((4.0, 8.5))
    assert model.finish_reasons == {"length": 1, "stop": 1}
    assert model.tool_calls == 1
    assert model.errors == (ErrorKind(kind="provider/timeout", count=1, example="no answer | within 120 s"),)
    assert model.not_run_reason == "budget"
    assert (model.pass_at_k, model.pass_hat_k) == ({}, {})


def test_a_run_without_rows_has_no_figures() -> None:
    """Nothing graded is None, never 0: no rate, no interval, no latency."""
    model = only()
    assert (model.not_run, model.coverage) == (4, 0)
    assert model.pass_rate is model.pass_rate_low is model.interval is model.mean_score is model.mean_score_se is None
    assert model.bounds is model.latency is model.usage.input_tokens is None


def test_errors_alone_are_no_failures() -> None:
    """A model that only met errors has no pass rate, and bounds from 0 to 1."""
    model = only(ERROR)
    assert model.pass_rate is None
    assert model.bounds == Bounds(errors_failed=0, errors_passed=1)


def test_complete_means_every_trial_has_a_row() -> None:
    """Errors are rows: a run of errors is complete, one with a trial missing is not."""
    plan = planned(e=2)
    assert report(PASS, ERROR, plan=plan).complete
    assert only(PASS, ERROR, plan=plan).not_run_reason is None
    assert not report(PASS, plan=plan).complete


def test_cost_is_unknown_when_a_price_is() -> None:
    """One answer without a price makes the sum unknown; an error that never reached the model does not."""
    assert only(PASS, ERROR).cost_usd == pytest.approx(0.1)
    assert only(PASS, replace(FAIL, cost_usd=None)).cost_usd is None
    assert only(PASS, replace(ERROR, usage=(5, 1, None, None))).cost_usd is None


def test_a_cost_is_known_in_part_where_the_price_is_known() -> None:
    """Answers whose tokens nobody counted are no missing price, and the others add up to a least cost."""
    silent = replace(FAIL, cost_usd=None, usage=(None, None, None, None), finish_reason="content-filter")
    told = only(PASS, silent)
    assert (told.cost_usd, told.uncounted, told.least_usd) == (None, 1, pytest.approx(0.1))
    priced = Planned("r", "d" * 64, "Title", 1, (PlannedModel("m", "a" * 64, "openai/x", {"e": 4}, priced=True),))
    free = only(replace(PASS, cost_usd=0.0), silent, plan=priced)
    assert (free.uncounted, free.least_usd) == (1, 0)
    unpriced = only(replace(PASS, cost_usd=None), silent)
    assert (unpriced.unpriced, unpriced.uncounted, unpriced.least_usd) == (2, 0, None)
    tool = Planned("r", "d" * 64, "Title", 1, (PlannedModel("m", "a" * 64, "tool", {"e": 4}, priced=None),))
    assert only(replace(PASS, cost_usd=None), plan=tool).unpriced == 0
    assert only(PASS, FAIL).least_usd is None
    found = report(PASS, silent)
    for text in (report_markdown(found), report_page(found).decode()):
        assert "≥ 0.1000" in text
        assert "trials of unknown cost, as their tokens or their price were not known: 1" in text


def test_evals_are_reported_apart_and_together() -> None:
    """Each eval has its own figures in the planned order, and the model has their sum."""
    model = only(PASS, replace(FAIL, eval_id="f"), plan=planned(f=2, e=1))
    assert [(each.eval_id, each.planned, each.passed, each.failed) for each in model.evals] == [
        ("f", 2, 0, 1),
        ("e", 1, 1, 0),
    ]
    assert (model.planned, model.pass_rate) == (3, 0.5)


def many(outcomes: list[bool], evals: int = 1, attempts: int = 1) -> list[CountedRow]:
    return [
        replace(
            PASS if passed else FAIL, case_id=f"c{i}", eval_id=f"e{i % evals}", attempt=attempt, score=float(passed)
        )
        for i, passed in enumerate(outcomes)
        for attempt in range(1, attempts + 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "evals", "method"),
    [
        ([True, False] * 149 + [True], 1, "wilson"),
        ([True, False] * 150, 1, "normal"),
        ([True, False] * 150, 3, "normal-clustered"),
        ([True] * 300, 3, "wilson"),
    ],
)
def test_interval_method(outcomes: list[bool], evals: int, method: str) -> None:
    """Wilson below 300 cases and where all agree; then normal, clustered when there are several evals."""
    model = only(*many(outcomes, evals), plan=planned(**{f"e{i}": len(outcomes) // evals + 1 for i in range(evals)}))
    assert model.interval == method
    assert model.pass_rate is not None
    assert model.pass_rate_low is not None
    assert model.pass_rate_high is not None
    assert model.pass_rate_low < model.pass_rate_high


def test_evals_that_differ_widen_the_interval() -> None:
    """When whole evals pass or fail, the standard error is that of evals, not of cases."""
    rows = many([i % 4 < 2 for i in range(400)], evals=4)
    error = only(*rows, plan=planned(e0=100, e1=100, e2=100, e3=100)).mean_score_se
    assert error == pytest.approx((1 / 3) ** 0.5 / 2)


def test_evals_that_agree_by_chance_do_not_make_it_vanish() -> None:
    """Two evals with the same rate leave the standard error that cases give."""
    rows = many([i % 4 < 2 for i in range(400)], evals=2)
    error = only(*rows, plan=planned(e0=200, e1=200)).mean_score_se
    assert error == pytest.approx((0.25 / 399) ** 0.5)


def test_repeated_attempts_count_cases() -> None:
    """Four equal attempts at each of ten cases give the interval of ten cases, not of forty."""
    rows = many([True] * 8 + [False] * 2, attempts=4)
    model = only(*(replace(row, eval_id="e") for row in rows), plan=planned(attempts=4, e=40))
    assert (model.pass_rate_low, model.pass_rate_high) == wilson(0.8, 10)
    assert model.pass_at_k == model.pass_hat_k == pytest.approx({"1": 0.8, "2": 0.8, "4": 0.8})


def test_pass_at_k_over_cases() -> None:
    """k doubles up to the attempts, and a case graded too rarely for a k is left out of it."""
    rows = [replace(PASS if n == 1 else FAIL, case_id="c1", attempt=n) for n in (1, 2, 3)]
    rows += [replace(PASS, case_id="c2"), replace(ERROR, case_id="c2", attempt=2)]
    model = only(*rows, plan=planned(attempts=3, e=6))
    assert model.pass_at_k == pytest.approx({"1": (1 / 3 + 1) / 2, "2": 2 / 3, "3": 1})
    assert model.pass_hat_k == pytest.approx({"1": (1 / 3 + 1) / 2, "2": 0, "3": 0})


def test_rows_outside_the_plan_are_refused() -> None:
    """A row of an unknown model or eval names both."""
    with pytest.raises(StoreError, match="model 'z' and eval 'e'"):
        report(replace(PASS, agent="z"))


row_sets = st.lists(
    st.builds(
        replace,
        st.sampled_from([PASS, FAIL, ERROR]),
        case_id=st.sampled_from(["c1", "c2", "c3"]),
        eval_id=st.sampled_from("ef"),
        latency=st.floats(0, 100),
        cost_usd=st.none() | st.floats(0, 1),
        failure=st.tuples(st.just("provider"), st.sampled_from(["timeout", "http"]), st.text(max_size=3)),
    ).map(lambda row: row if row.score is None else replace(row, score=row.latency / 100, failure=None)),
    max_size=12,
)


@given(row_sets.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
@settings(max_examples=25)
def test_the_order_of_rows_changes_no_byte(pair: tuple[list[CountedRow], list[CountedRow]]) -> None:
    """The same rows in any order give the same summary, byte for byte."""
    plan = planned(attempts=2, e=50, f=50)
    one, other = (report(*rows, plan=plan) for rows in pair)
    assert one.to_json() == other.to_json()
    assert report_markdown(one) == report_markdown(other)
    assert report_page(one) == report_page(other)


def test_summary_has_the_keys_that_others_read() -> None:
    """`summary.json` is readable JSON that ends in a newline and starts with what it is about."""
    content = report(PASS, FAIL, ERROR).to_json()
    summary: dict[str, Any] = json.loads(content)
    assert content.endswith(b"}\n")
    assert list(summary)[:3] == ["format", "run", "release_digest"]
    assert {"complete", "models"} <= summary.keys()
    (model,) = summary["models"]
    assert list(model)[:9] == [
        *("name", "agent_digest", "model", "not_run_reason", "planned", "passed", "failed", "error", "not_run")
    ]
    assert list(model)[-1] == "evals"
    assert {"pass_rate", "mean_score", "usage", "cost_usd"} <= model.keys()
    assert model["evals"][0]["eval_id"] == "e"
    assert Report.model_validate_json(content) == report(PASS, FAIL, ERROR)


def test_planned_of_a_plan() -> None:
    """A run's plan says how many trials each model owes in each eval, in release order."""
    agents = (ModelAgent(name="m", model="mock/echo"), ModelAgent(name="n", model="mock/echo", params={"seed": 1}))
    spec = RunSpec(run_id="r", title="T", release="x", release_digest="d" * 64, agents=agents, attempts=3)
    out = Planned.of(make_plan(spec, [("c1", "z"), ("c2", "a"), ("c3", "z")]))
    assert [(model.name, list(model.trials.items())) for model in out.models] == [
        ("m", [("z", 6), ("a", 3)]),
        ("n", [("z", 6), ("a", 3)]),
    ]


def test_markdown_shows_models_evals_and_errors() -> None:
    """The page has one row for the model, one for its eval, the error, and how to read it; no text breaks a table."""
    page = report_markdown(report(PASS, FAIL, ERROR))
    assert "# Title" in page
    assert "**Incomplete**: 1 of 4 trials not run" in page
    assert (
        "| m | 50.0% | 9.5% to 90.5% | 0.625 ± 0.375 | 1 | 1 | 1 | 1 | 50.0% | 200 / 40 | 0.2000 | 4.00 / 8.50 |"
        in page
    )
    assert "| e | 50.0% |" in page
    assert "1 trials not run: budget; bounds 33.3% to 66.7%" in page
    assert "| provider/timeout | 1 | no answer \\| within 120 s |" in page
    assert page.count("\n- ") == 4
    assert "- Bounds: " in page
    assert "`results.parquet`" in page


def test_markdown_lists_what_did_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines that the page gives for finding failures work beside it."""
    (code,) = re.findall(r"```python\n(.*?)```", report_markdown(report(PASS)), flags=re.S)
    nothing: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    rows = [{**nothing, "case_id": outcome, "outcome": outcome} for outcome in ("passed", "failed", "error")]
    (tmp_path / "results.parquet").write_bytes(encode(rows))
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert re.findall("'case_id': '(.*?)'", capsys.readouterr().out) == ["failed", "error"]


def test_markdown_without_errors_has_no_bounds() -> None:
    """Where nothing went wrong, nothing is said of what errors could have changed."""
    assert "ounds" not in report_markdown(report(PASS, FAIL))


def test_markdown_of_several_attempts_has_pass_at_k() -> None:
    """A table of pass@k and pass^k appears when cases are repeated; what is unknown is a dash."""
    page = report_markdown(report(PASS, replace(FAIL, case_id="c1", attempt=2), plan=planned(attempts=2, e=2)))
    assert "| Model | pass@1 | pass@2 | pass^1 | pass^2 |" in page
    assert "| m | 50.0% | 100.0% | 50.0% | 0.0% |" in page
    assert "Complete." in page
    assert "| – | – |" in report_markdown(report())


def test_evals_of_one_source_are_one_cluster() -> None:
    """Four evals that one transformer made from the same data count as one cluster beside a fifth, not as four."""
    names = [f"e{i}" for i in range(5)]
    trials = dict.fromkeys(names, 100)
    rows = many([i % 5 < 4 for i in range(500)], evals=5)
    plan = Planned("r", "d" * 64, "T", 1, (PlannedModel("m", "a" * 64, "x", trials),), dict.fromkeys(names[:4], "t.ts"))
    apart, together = only(*rows, plan=planned(**trials)), only(*rows, plan=plan)
    assert apart.mean_score_se is not None
    assert together.mean_score_se is not None
    assert together.mean_score_se > 1.5 * apart.mean_score_se
    assert "clustered by 2 evals or sources" in report(*rows, plan=plan).notes[0]


def test_every_two_models_are_compared() -> None:
    """In their order, on shared graded cases, with what is left out; p adjusted over all pairs."""
    models = tuple(PlannedModel(name, name * 64, "x", {"e": 4}) for name in "abc")
    outcomes = {"a": [PASS, FAIL, FAIL, ERROR], "b": [PASS, PASS, FAIL, PASS], "c": [PASS, PASS, PASS, PASS]}
    rows = [
        replace(row, agent=name, case_id=f"c{number}")
        for name, listed in outcomes.items()
        for number, row in enumerate(listed)
    ]
    found = report(*rows, plan=Planned("r", "d" * 64, "T", 1, models))
    assert [(pair.first, pair.second) for pair in found.comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    first = found.comparisons[0]
    assert (first.pass_rate.cases, first.left_out, first.fixed.cases, first.broke.count) == (3, 1, ("c1",), 0)
    assert first.pass_rate.test == "mcnemar-exact"
    assert first.score is not None
    assert first.pass_rate.p_adjusted == min(1, 3 * (first.pass_rate.p or 0))
    assert "| b − a | 3 | 1 |" in report_markdown(found)


def test_what_no_failure_leaves_open() -> None:
    """When all passed, or none, the rule of three is told beside the rate."""
    all_passed, none_passed = (
        only(*many([True] * 20), plan=planned(e0=20)),
        only(*many([False] * 20), plan=planned(e0=20)),
    )
    assert all_passed.none_failed_below == none_passed.none_passed_below == pytest.approx(0.139, abs=5e-4)
    assert all_passed.none_passed_below is none_passed.none_failed_below is only(PASS, FAIL).none_failed_below is None
