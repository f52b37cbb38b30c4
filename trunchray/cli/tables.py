"""Reports and states as tables in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from trunchray.core.report import Figures, ModelReport, Report
    from trunchray.engine.progress import Snapshot
    from trunchray.engine.status import Status


@dataclass(frozen=True)
class _Column:
    """One figure of a model or eval; the `wide` ones are left out where the terminal is narrow."""

    name: str
    cell: Callable[[Figures], str]
    wide: bool = False


def show_report(console: Console, report: Report) -> None:
    """One table of models; each model's evals below it when there are several."""
    console.print(f"{report.title}  (run {report.run})", markup=False)
    table = _report_table(report, wide=True)
    if console.is_terminal and _width(console, table) > console.width:
        table = _report_table(report, wide=False)
    console.print(table)
    for model in report.models:
        _show_errors(console, model)


def _width(console: Console, table: Table) -> int:
    """What the table takes when nothing is cut."""
    return console.measure(table, options=console.options.update(width=1000)).maximum


def _report_table(report: Report, *, wide: bool) -> Table:
    columns = [column for column in _COLUMNS if wide or not column.wide]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model / eval", no_wrap=True)
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    for model in report.models:
        many = len(model.evals) > 1
        table.add_row(escape(model.name), *(column.cell(model) for column in columns), style="bold" if many else None)
        if many:
            for entry in model.evals:
                table.add_row(f"  {entry.eval_id}", *(column.cell(entry) for column in columns))
    return table


def show_status(console: Console, status: Status) -> None:
    """The state of a run, and how many rows each model has."""
    driver = f", driven by {status.driver}" if status.driver else ""
    hint = " (the same `trunchray run` command continues it)" if status.state == "waiting" else ""
    console.print(f"{status.run}: {status.state}{driver}{hint}", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model")
    for column in ("planned", "counted", "passed", "failed", "error", "in progress"):
        table.add_column(column, justify="right")
    for agent in status.committed.agents:
        counts = agent.counts
        numbers = (agent.planned, counts.rows, counts.passed, counts.failed, counts.error)
        underway = _rows(status.latest, agent.name) - counts.rows if status.latest else 0
        table.add_row(agent.name, *(f"{number:,}" for number in numbers), f"{max(0, underway):,}")
    console.print(table)


def _rows(snapshot: Snapshot, name: str) -> int:
    return sum(agent.counts.rows for agent in snapshot.agents if agent.name == name)


def _show_errors(console: Console, model: ModelReport) -> None:
    for kind in model.errors[:3]:
        console.print(f"{model.name}: {kind.count:,} × {kind.kind}: {_cut(kind.example)}", markup=False, style="red")


def _count(number: int) -> str:
    return f"{number:,}"


def _errors(figures: Figures) -> str:
    return f"[red]{figures.error:,}[/red]" if figures.error else "0"


def _rate(figures: Figures) -> str:
    if figures.pass_rate is None or figures.pass_rate_low is None or figures.pass_rate_high is None:
        return "–"
    return f"{figures.pass_rate:.1%} ({100 * figures.pass_rate_low:.1f}–{100 * figures.pass_rate_high:.1f})"


def _score(figures: Figures) -> str:
    return "–" if figures.mean_score is None else f"{figures.mean_score:.3f}"


def _tokens(figures: Figures) -> str:
    tokens = (figures.usage.input_tokens or 0) + (figures.usage.output_tokens or 0)
    return f"{tokens:,}" if tokens else "–"


def _cost(figures: Figures) -> str:
    return "–" if figures.cost_usd is None else f"{figures.cost_usd:.4f}"


_COLUMNS = (
    _Column("passed", lambda f: _count(f.passed)),
    _Column("failed", lambda f: _count(f.failed)),
    _Column("error", _errors),
    _Column("not run", lambda f: _count(f.not_run)),
    _Column("coverage", lambda f: f"{f.coverage:.0%}", wide=True),
    _Column("pass rate (95 %)", _rate),
    _Column("score", _score, wide=True),
    _Column("tokens", _tokens, wide=True),
    _Column("cost $", _cost, wide=True),
    _Column("p50 s", lambda f: f"{f.latency.p50:.2f}" if f.latency else "–"),
    _Column("p95 s", lambda f: f"{f.latency.p95:.2f}" if f.latency else "–"),
)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
