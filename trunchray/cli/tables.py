"""Reports and states as tables in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trunchray.cli.screen import Line, fitted, one_line
from trunchray.cli.standing import standings
from trunchray.core.closing import remedy
from trunchray.core.wording import coverage

if TYPE_CHECKING:
    from trunchray.core.budget import Budget, Spend
    from trunchray.core.report import Figures, ModelReport, Report
    from trunchray.engine.progress import AgentProgress, Snapshot
    from trunchray.engine.status import Status


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
    for model in report.models:
        _show_cached(console, model)
        _show_errors(console, model)


def show_status(console: Console, status: Status) -> None:
    """The state of a run, and how many rows each model has."""
    driver = f", driven by {status.driver}" if status.driver else ""
    hint = "; the same `trunchray run` command continues it" if status.state == "waiting" else ""
    console.print(f"{status.run}: {status.state}{driver}{hint}")
    more = "in progress" if status.state == "running" else "stored"  # by a driver that is gone
    columns = [("planned", 2), ("counted", 0), ("passed", 1), ("failed", 3), ("error", 0), (more, 4)]
    lines = [_status_line(agent, status) for agent in status.committed.agents]
    costs = [_spent(status, agent.name) for agent in status.committed.agents]
    if any(costs):
        columns.append(("cost $", 5))
        lines = [replace(line, cells=[*line.cells, cost_cell(usd)]) for line, usd in zip(lines, costs, strict=True)]
    console.print(fitted(console, "model", columns, lines))
    for name, reason in (status.latest.closed if status.latest else {}).items():
        console.print(f"{name}: no further trial was begun ({reason}); {remedy(reason)}")
    for line in standings(status.latest, everything=True) if status.state == "running" and status.latest else []:
        console.print(line)


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


def _status_line(agent: AgentProgress, status: Status) -> Line:
    counts = agent.counts
    underway = max(0, _rows(status.latest, agent.name) - counts.rows) if status.latest else 0
    numbers = [f"{number:,}" for number in (agent.planned, counts.rows, counts.passed, counts.failed)]
    return Line(agent.name, [*numbers, errors_cell(counts.error), f"{underway:,}"])


def _lines(report: Report) -> list[Line]:
    lines: list[Line] = []
    for model in report.models:
        many = len(model.evals) > 1
        lines.append(Line(model.name, _cells(model), "bold" if many else None))
        lines += [Line(f"  {entry.eval_id}", _cells(entry)) for entry in model.evals if many]
    return lines


def _cells(figures: Figures) -> list[str | Text]:
    return [column.cell(figures) for column in _COLUMNS]


def _rows(snapshot: Snapshot, name: str) -> int:
    return sum(agent.counts.rows for agent in snapshot.agents if agent.name == name)


def _spent(status: Status, name: str) -> float:
    """US dollars: what the driver last said of a model, or its commits, which may be newer."""
    return max(snapshot.spent_on(name).usd for snapshot in (status.committed, status.latest) if snapshot)


def _show_cached(console: Console, model: ModelReport) -> None:
    if model.cache_hits:
        calls = f"{model.cache_hits:,} model call{'s' if model.cache_hits > 1 else ''}"
        console.print(f"{model.name}: {calls} answered from the cache, which saved {model.saved_tokens:,} tokens")


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
    _Column("passed", lambda f: f"{f.passed:,}", rank=1),
    _Column("failed", lambda f: f"{f.failed:,}", rank=2),
    _Column("error", lambda f: errors_cell(f.error)),
    _Column("not run", lambda f: f"{f.not_run:,}", rank=3),
    _Column("coverage", coverage, rank=9),
    _Column("pass rate (95 %)", _rate),
    _Column("score", _score, rank=7),
    _Column("tokens", _tokens, rank=8),
    _Column("cost $", _cost, rank=4),
    _Column("p50 s", lambda f: f"{f.latency.p50:.2f}" if f.latency else "–", rank=6),
    _Column("p95 s", lambda f: f"{f.latency.p95:.2f}" if f.latency else "–", rank=5),
)
