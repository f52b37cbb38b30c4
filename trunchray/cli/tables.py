"""Reports as tables in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trunchray.cli.screen import Line, fitted, one_line
from trunchray.core.wording import cost, coverage, unknown_costs

if TYPE_CHECKING:
    from trunchray.core.budget import Budget, Spend
    from trunchray.core.report import Figures, ModelReport, Report


@dataclass(frozen=True)
class _Column:
    """One figure of a model or eval; `rank` as in `fitted`."""

    name: str
    cell: Callable[[Figures], str | Text]
    rank: int = 0


def show_report(console: Console, report: Report) -> None:
    """One table of models; each model's evals below it when there are several."""
    console.print(f"{report.title}  (run {report.run})")
    columns = [(column.name, column.rank) for column in _COLUMNS]
    console.print(fitted(console, "model / eval", columns, _lines(report)))
    for reason in unknown_costs(report.models):
        console.print(one_line(reason, 600))
    for model in report.models:
        _show_cached(console, model)
        _show_retried(console, model)
        _show_errors(console, model)


def errors_cell(count: int) -> Text:
    return Text(f"{count:,}", style="red" if count else "")


def cost_cell(usd: float) -> str:
    """US dollars that were spent; none is shown as unknown, because the price may be."""
    return f"{usd:,.4f}" if usd else "–"


def spent_of(spent: Spend, budget: Budget) -> str:
    """What is spent of what may be; empty when nothing is limited."""
    usd = [] if budget.usd is None else [f"spent ${spent.usd:,.4f} of ${budget.usd:,.4f}"]
    tokens = [] if budget.tokens is None else [f"spent {spent.tokens:,} of {budget.tokens:,} tokens"]
    return ", ".join([*usd, *tokens])


def _lines(report: Report) -> list[Line]:
    lines: list[Line] = []
    for model in report.models:
        many = len(model.evals) > 1
        lines.append(Line(model.name, _cells(model), "bold" if many else None))
        lines += [Line(f"  {entry.eval_id}", _cells(entry)) for entry in model.evals if many]
    return lines


def _cells(figures: Figures) -> list[str | Text]:
    return [column.cell(figures) for column in _COLUMNS]


def _show_cached(console: Console, model: ModelReport) -> None:
    if model.cache_hits:
        calls = f"{model.cache_hits:,} model call{'s' if model.cache_hits > 1 else ''}"
        console.print(f"{model.name}: {calls} answered from the cache, which saved {model.saved_tokens:,} tokens")


def _show_retried(console: Console, model: ModelReport) -> None:
    if model.retried:
        rows = f"{model.retried:,} row{'s' if model.retried > 1 else ''}"
        console.print(f"{model.name}: {rows} from retries: of trials that had ended in an error before")


def _show_errors(console: Console, model: ModelReport) -> None:
    for kind in model.errors[:3]:
        console.print(f"{model.name}: {kind.count:,} × {kind.kind}: {one_line(kind.example)}", style="red")
    if len(model.errors) > 3:
        console.print(f"{model.name}: and {len(model.errors) - 3} more kinds of errors, all in the report", style="red")


def _rate(figures: Figures) -> str:
    if figures.pass_rate is None or figures.pass_rate_low is None or figures.pass_rate_high is None:
        return "–"
    return f"{figures.pass_rate:.1%} ({100 * figures.pass_rate_low:.1f}–{100 * figures.pass_rate_high:.1f})"


def _score(figures: Figures) -> str:
    return "–" if figures.mean_score is None else f"{figures.mean_score:.3f}"


def _tokens(figures: Figures) -> str:
    tokens = (figures.usage.input_tokens or 0) + (figures.usage.output_tokens or 0)
    return f"{tokens:,}" if tokens else "–"


_COLUMNS = (
    _Column("passed", lambda f: f"{f.passed:,}", rank=1),
    _Column("failed", lambda f: f"{f.failed:,}", rank=2),
    _Column("error", lambda f: errors_cell(f.error)),
    _Column("not run", lambda f: f"{f.not_run:,}", rank=3),
    _Column("coverage", coverage, rank=9),
    _Column("pass rate (95 %)", _rate),
    _Column("score", _score, rank=7),
    _Column("tokens", _tokens, rank=8),
    _Column("cost $", cost, rank=4),
    _Column("p50 s", lambda f: f"{f.latency.p50:.2f}" if f.latency else "–", rank=6),
    _Column("p95 s", lambda f: f"{f.latency.p95:.2f}" if f.latency else "–", rank=5),
)
