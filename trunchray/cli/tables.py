"""Reports and states as tables in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from trunchray.core.report import Figures, ModelReport, Report
    from trunchray.engine.progress import Snapshot
    from trunchray.engine.status import Status

_COLUMNS = (
    "passed",
    "failed",
    "error",
    "not run",
    "coverage",
    "pass rate (95 %)",
    "score",
    "tokens",
    "cost $",
    "p50 s",
    "p95 s",
)


def show_report(console: Console, report: Report) -> None:
    """One table of models; each model's evals below it when there are several."""
    console.print(f"{report.title}  (run {report.run})", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model / eval", overflow="fold")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for model in report.models:
        table.add_row(model.name, *_cells(model), style="bold" if len(model.evals) > 1 else None)
        if len(model.evals) > 1:
            for entry in model.evals:
                table.add_row(f"  {entry.eval_id}", *_cells(entry))
    console.print(table)
    for model in report.models:
        _show_errors(console, model)


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


def _cells(figures: Figures) -> list[str]:
    usage, latency = figures.usage, figures.latency
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return [
        f"{figures.passed:,}",
        f"{figures.failed:,}",
        f"[red]{figures.error:,}[/red]" if figures.error else "0",
        f"{figures.not_run:,}",
        f"{figures.coverage:.0%}",
        _rate(figures),
        "–" if figures.mean_score is None else f"{figures.mean_score:.3f}",
        f"{tokens:,}" if tokens else "–",
        "–" if figures.cost_usd is None else f"{figures.cost_usd:.4f}",
        "–" if latency is None else f"{latency.p50:.2f}",
        "–" if latency is None else f"{latency.p95:.2f}",
    ]


def _rate(figures: Figures) -> str:
    if figures.pass_rate is None or figures.pass_rate_low is None or figures.pass_rate_high is None:
        return "–"
    return f"{figures.pass_rate:.1%} ({figures.pass_rate_low:.1%}–{figures.pass_rate_high:.1%})"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
