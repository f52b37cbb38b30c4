"""Reports and states as tables in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trunchray.cli.screen import figures, fitting, one_line

if TYPE_CHECKING:
    from trunchray.core.report import Figures, ModelReport, Report
    from trunchray.engine.progress import Snapshot
    from trunchray.engine.status import Status


@dataclass(frozen=True)
class _Column:
    """One figure of a model or eval; where the terminal is narrow, those of the highest `rank` are left out first."""

    name: str
    cell: Callable[[Figures], str | Text]
    rank: int = 0


def show_report(console: Console, report: Report) -> None:
    """One table of models; each model's evals below it when there are several."""
    console.print(f"{report.title}  (run {report.run})")
    console.print(fitting(console, lambda rank: _report_table(report, rank), 4))
    for model in report.models:
        _show_errors(console, model)


def show_status(console: Console, status: Status) -> None:
    """The state of a run, and how many rows each model has."""
    driver = f", driven by {status.driver}" if status.driver else ""
    hint = "; the same `trunchray run` command continues it" if status.state == "waiting" else ""
    console.print(f"{status.run}: {status.state}{driver}{hint}")
    table = figures("model", "planned", "counted", "passed", "failed", "error", "in progress")
    for agent in status.committed.agents:
        counts = agent.counts
        underway = max(0, _rows(status.latest, agent.name) - counts.rows) if status.latest else 0
        errors = errors_cell(counts.error)
        numbers = (agent.planned, counts.rows, counts.passed, counts.failed)
        table.add_row(agent.name, *(f"{number:,}" for number in numbers), errors, f"{underway:,}")
    console.print(table)


def errors_cell(count: int) -> Text:
    return Text(f"{count:,}", style="red" if count else "")


def _report_table(report: Report, rank: int) -> Table:
    columns = [column for column in _COLUMNS if column.rank <= rank]
    table = figures("model / eval", *(column.name for column in columns))
    for model in report.models:
        many = len(model.evals) > 1
        table.add_row(model.name, *(column.cell(model) for column in columns), style="bold" if many else None)
        if many:
            for entry in model.evals:
                table.add_row(f"  {entry.eval_id}", *(column.cell(entry) for column in columns))
    return table


def _rows(snapshot: Snapshot, name: str) -> int:
    return sum(agent.counts.rows for agent in snapshot.agents if agent.name == name)


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


def _cost(figures: Figures) -> str:
    return "–" if figures.cost_usd is None else f"{figures.cost_usd:.4f}"


_COLUMNS = (
    _Column("passed", lambda f: f"{f.passed:,}"),
    _Column("failed", lambda f: f"{f.failed:,}", rank=1),
    _Column("error", lambda f: errors_cell(f.error)),
    _Column("not run", lambda f: f"{f.not_run:,}", rank=1),
    _Column("coverage", lambda f: f"{f.coverage:.0%}", rank=4),
    _Column("pass rate (95 %)", _rate),
    _Column("score", _score, rank=3),
    _Column("tokens", _tokens, rank=4),
    _Column("cost $", _cost, rank=3),
    _Column("p50 s", lambda f: f"{f.latency.p50:.2f}" if f.latency else "–", rank=2),
    _Column("p95 s", lambda f: f"{f.latency.p95:.2f}" if f.latency else "–", rank=2),
)
