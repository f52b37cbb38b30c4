"""Reports and states as tables."""

from __future__ import annotations

import io
from typing import Any

import pytest

from support.terminal import Terminal
from trunchray.cli.screen import console
from trunchray.cli.tables import show_report
from trunchray.core.report import CountedRow, Latency, Planned, PlannedModel, Report, Tokens
from trunchray.core.tally import Tally


def report(
    *names: str, evals: int = 2, failure: tuple[str, str, str] | None = None, cost: float | None = 0.5
) -> Report:
    """Each model has four trials in each eval: passed, failed, an error when `failure` is given, and none."""
    planned = {f"eval-{n}": 4 for n in range(evals)}
    tally = Tally(Planned("run", "d" * 64, "[b]Title[/b]", 1, tuple(PlannedModel(n, n, n, planned) for n in names)))
    for name in names:
        for eval_id in planned:
            common: dict[str, Any] = {"agent": name, "eval_id": eval_id, "attempt": 1, "tool_calls": 0}
            graded = {"usage": (1000, 500, None, None), "cost_usd": cost, "latency": 1.25, "finish_reason": "stop"}
            fine = {**common, **graded, "failure": None}
            tally.add(CountedRow(case_id=f"{eval_id}1", outcome="passed", score=1.0, **fine))
            tally.add(CountedRow(case_id=f"{eval_id}2", outcome="failed", score=0.0, **fine))
            if failure:
                unpaid = {"usage": (None,) * 4, "cost_usd": None, "latency": 9.0, "finish_reason": None}
                bad = {**common, **unpaid, "failure": failure}
                tally.add(CountedRow(case_id=f"{eval_id}3", outcome="error", score=None, **bad))
    return tally.report()


def shown(report: Report, columns: int | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a terminal that wide shows; None for a pipe."""
    monkeypatch.setenv("COLUMNS", str(columns or 80))
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = Terminal(), io.StringIO()
    show_report(console(terminal if columns else pipe), report)
    return [line.rstrip() for line in (terminal.text() or pipe.getvalue()).splitlines()]


def test_a_report(monkeypatch: pytest.MonkeyPatch):
    """A row for each model and each of its evals, all figures."""
    title, head, model, first, second = shown(report("m"), 140, monkeypatch)
    assert title == "[b]Title[/b]  (run run)"
    names = "model / eval passed failed error not run coverage pass rate (95 %) score tokens cost $ p50 s p95 s"
    assert " ".join(head.split()) == names
    assert " ".join(model.split()) == "m 2 2 0 4 50.0% 50.0% (15.0–85.0) 0.500 6,000 2.0000 1.25 1.25"
    assert first.split()[0] == "eval-0"
    assert second.split()[0] == "eval-1"
    assert len({len(line) for line in (head, model, first, second)}) == 1


def test_a_report_with_one_eval(monkeypatch: pytest.MonkeyPatch):
    """An only eval is the model, and is not shown twice."""
    assert len(shown(report("m", evals=1), 140, monkeypatch)) == 3


def test_what_the_cache_saved(monkeypatch: pytest.MonkeyPatch):
    """Answers that were found are said below the table, where there are any."""
    found = report("m", evals=1)
    hits = found.models[0].model_copy(update={"cache_hits": 1200, "saved_tokens": 34_000})
    lines = shown(found.model_copy(update={"models": (hits,)}), 140, monkeypatch)
    assert lines[3:] == ["m: 1,200 model calls answered from the cache, which saved 34,000 tokens"]


def test_what_came_of_retries(monkeypatch: pytest.MonkeyPatch):
    """How many counted rows there are because somebody tried again, where there are any."""
    found = report("m", evals=1)
    for count, said in ((1, "1 row"), (1200, "1,200 rows")):
        model = found.models[0].model_copy(update={"retried": count})
        lines = shown(found.model_copy(update={"models": (model,)}), 140, monkeypatch)
        assert lines[3:] == [f"m: {said} from retries: of trials that had ended in an error before"]


LONG = "provider/a-model-with-a-rather-long-name-2026-01-01"


def grown(figures: Any) -> Any:
    """The same figures with as many digits as a large run has."""
    large = {"passed": 1_234_567, "failed": 1_234_567, "error": 12_345, "not_run": 123_456, "planned": 2_604_935}
    more = {"usage": Tokens(input_tokens=9_123_456_789, output_tokens=1), "latency": Latency(p50=100.25, p95=599.99)}
    cost = None if figures.cost_usd is None else 12345.6789
    return figures.model_copy(update={**large, **more, "cost_usd": cost})


def large(found: Report) -> Report:
    models = [
        grown(model).model_copy(update={"evals": tuple(map(grown, model.evals)), "errors": ()})
        for model in found.models
    ]
    return found.model_copy(update={"models": tuple(models)})


@pytest.mark.parametrize("cost", [0.5, None], ids=["priced", "unpriced"])
@pytest.mark.parametrize("many", [False, True], ids=["few digits", "many digits"])
@pytest.mark.parametrize("names", [("m",), ("mock/echo", "mock/replay"), (LONG, "m")], ids=["short", "usual", "long"])
@pytest.mark.parametrize("columns", [60, 80, 100, 120])
def test_a_report_in_a_narrow_terminal(
    columns: int, names: tuple[str, ...], many: bool, cost: float | None, monkeypatch: pytest.MonkeyPatch
):
    """No row is wider than the terminal; names and pass rates are always there, and no figure is cut."""
    found = report(*names, cost=cost)
    _, head, *said = shown(large(found) if many else found, columns, monkeypatch)
    rows = [line for line in said if not line.startswith("cost –: ")]  # a sentence, which the terminal folds
    assert max(map(len, (head, *rows))) <= columns
    assert head.startswith("model / eval  ")
    assert "pass rate (95 %)" in head
    folded = "".join(row.split()[0] for row in rows if row)
    assert all(name in folded for name in names)
    assert sum("50.0% (" in row for row in rows) == 3 * len(names)
    error = "12,345" if many else " 0 "
    assert sum(error in row for row in rows) >= 3 * len(names)
    assert not any("…" in row for row in rows)


@pytest.mark.parametrize(
    ("columns", "heads"),
    [
        (42, "model / eval error pass rate (95 %)"),
        (80, "model / eval passed failed error not run pass rate (95 %) cost $ p95 s"),
        (94, "model / eval passed failed error not run pass rate (95 %) score cost $ p50 s p95 s"),
        (120, "model / eval passed failed error not run coverage pass rate (95 %) score tokens cost $ p50 s p95 s"),
    ],
)
def test_what_is_left_out_first(columns: int, heads: str, monkeypatch: pytest.MonkeyPatch):
    """The narrower the terminal, the fewer figures: coverage and tokens go first, counts of errors never."""
    assert " ".join(shown(report("mock/echo"), columns, monkeypatch)[1].split()) == heads


def test_a_model_without_a_price(monkeypatch: pytest.MonkeyPatch):
    """What was never paid for has no cost, before and after anything counted."""
    plan = (PlannedModel("m", "m", "m", {"e": 4}),)
    for found in (Tally(Planned("run", "d" * 64, "T", 1, plan)).report(), report("m", evals=1, cost=None)):
        assert shown(found, 140, monkeypatch)[2].split()[-3] == "–"


def test_only_some_models_have_a_price(monkeypatch: pytest.MonkeyPatch):
    """A dash for a cost is explained, once for all models that have it."""
    priced, others = report("m", evals=1), report("x", "y", evals=1, cost=None)
    found = priced.model_copy(update={"models": (*priced.models, *others.models)})
    said = "cost –: no price is known of x, y; `price` in the run config gives it"
    assert shown(found, 140, monkeypatch)[5:] == [said]
    assert shown(others, 140, monkeypatch)[4:] == [said]


def test_a_cost_that_is_known_in_part(monkeypatch: pytest.MonkeyPatch):
    """Answers without a count of tokens make a cost a least cost, and are counted; the price is not blamed."""
    found = report("m", evals=1)
    part = found.models[0].model_copy(update={"cost_usd": None, "least_usd": 0.0079, "uncounted": 6})
    lines = shown(found.model_copy(update={"models": (part,)}), 140, monkeypatch)
    assert "≥ 0.0079" in lines[2]
    assert lines[3:] == [
        "cost ≥: without trials whose tokens their provider did not count, or whose price was not known then: 6 of m"
    ]


@pytest.mark.parametrize(("failed", "told"), [(0, "100%"), (1, "99.9%"), (1000, "0.0%")])
def test_coverage_below_one(failed: int, told: str, monkeypatch: pytest.MonkeyPatch):
    """Only when every trial was graded is it 100%."""
    found = report("m", evals=1)
    model = found.models[0].model_copy(update={"planned": 1000, "passed": 1000 - failed, "failed": 0})
    assert f" {told} " in shown(found.model_copy(update={"models": (model,)}), 140, monkeypatch)[2]


def test_a_report_in_a_pipe(monkeypatch: pytest.MonkeyPatch):
    """A file gets every column and whole names, whatever the terminal's width."""
    _, head, row, *_ = shown(report("m" * 200), None, monkeypatch)
    assert "p95 s" in head
    assert row.startswith("m" * 200 + "  ")


def test_errors_below_a_report(monkeypatch: pytest.MonkeyPatch):
    """What went wrong is told with an example, on one line, exactly as it was said."""
    failure = ("provider", "bad_request", "[red]no[/red]\n\x1b[2J")
    lines = shown(report("m", failure=failure), 140, monkeypatch)
    assert lines[-1] == r"m: 2 × provider/bad_request: [red]no[/red] \x1b[2J"


def test_names_are_no_markup(monkeypatch: pytest.MonkeyPatch):
    """A model may be called anything."""
    assert any(
        line.startswith("[red]x[/red] :smile:") for line in shown(report("[red]x[/red] :smile:"), 140, monkeypatch)
    )
