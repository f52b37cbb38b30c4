"""The state of a run as people see it: on a screen, or in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Group

from trunchray.cli.screen import Line, fitted, paragraph
from trunchray.cli.standing import FEW_MODELS, machines, standings
from trunchray.cli.tables import cost_cell, errors_cell, spent_of
from trunchray.core.wording import ago, duration
from trunchray.engine.blocks import blocks

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from trunchray.engine.progress import AgentProgress, Snapshot
    from trunchray.engine.status import Status


@dataclass(frozen=True)
class StatusView:
    """What a console shows of a state, from top to bottom."""

    console: Console
    status: Status

    def show(self) -> None:
        self.console.print(Group(*self.parts()))

    def parts(self) -> list[RenderableType]:
        """The most important first: what does not fit on a screen is cut off below."""
        status = self.status
        lines = [status_headline(status), *_totals(status)]
        shown = [paragraph(line) for line in lines]
        shown += [paragraph(f"! {line}", "yellow") for line in blocks(status)]
        running = status.latest if status.state == "running" else None
        details = [*_models(running, status.clock_ahead), *machines(running.nodes)] if running else []
        return [*shown, self._table(), *map(paragraph, details)]

    def _table(self) -> RenderableType:
        status = self.status
        columns = [("planned", 2), ("counted", 0), ("passed", 1), ("failed", 3), ("error", 0)]
        lines = [_line(agent) for agent in status.committed.agents]
        if status.state != "complete":
            columns.append(("in progress" if status.state == "running" else "not yet counted", 4))
            lines = [_with(line, [_more(line.name, status)]) for line in lines]
        if status.state == "running" and status.latest:
            columns += [("in flight", 6), ("/min", 4), ("ETA", 1)]
            lines = [_with(line, _pace(status.latest, line.name)) for line in lines]
        costs = [_spent(status, agent.name) for agent in status.committed.agents]
        if any(costs):
            columns.append(("cost $", 5))
            lines = [_with(line, [cost_cell(usd)]) for line, usd in zip(lines, costs, strict=True)]
        return fitted(self.console, "model", columns, lines)


def state_of(status: Status) -> str:
    """The state in the words that `jobs` has, too."""
    if status.state == "waiting":
        return "incomplete"
    return "complete with errors" if status.state == "complete" and status.errors else status.state


def status_headline(status: Status) -> str:
    """The run, its state and who drives it."""
    if status.state != "running":
        return f"{status.run}: {state_of(status)}"
    heart = "" if status.heartbeat_age is None else f" (heartbeat {ago(status.heartbeat_age)})"
    return f"{status.run}: running, driven by {status.driver}{heart}"


def status_line(status: Status) -> str:
    """All of it in one line, with what blocks it most; of a complete run, with all that can be mended."""
    said = blocks(status)
    told = said if status.state == "complete" else said[:1]
    return "; ".join([f"{status.run}: {state_of(status)}", *_totals(status), *told])


def pace(snapshot: Snapshot) -> str:
    """How fast a run goes and what is left, as far as it can be told."""
    rate, tokens, eta = snapshot.per_minute, snapshot.tokens_per_minute, snapshot.eta
    if rate is None:
        return ""
    return ", ".join(
        [
            f"{rate:,.0f} trials/min",
            *([f"{tokens:,.0f} tokens/min"] if tokens else []),
            f"ETA {'–' if eta is None else duration(eta)}",
        ]
    )


def agent_pace(agent: AgentProgress) -> tuple[str, str]:
    """Trials a minute, and the time that is left."""
    rate = "–" if agent.per_minute is None else f"{agent.per_minute:,.0f}"
    left = "–" if agent.eta is None else duration(agent.eta) if agent.eta else "done"
    return rate, left


def _totals(status: Status) -> list[str]:
    latest, counted, planned = status.latest, status.committed.rows, status.committed.planned
    more = max(0, latest.rows - counted) if latest else 0
    rows = f"{counted:,} of {planned:,} trials counted" + (f", {more:,} {_whereabouts(status)}" if more else "")
    going = pace(latest) if latest and status.state == "running" else ""
    budgets = [spent_of(latest.spent, latest.budget)] if latest else []
    budgets += [f"{one.name} {said}" for one in _agents(latest) if (said := spent_of(one.spent, one.budget))]
    return ["; ".join(filter(None, [rows, going])), *filter(None, ["; ".join(filter(None, budgets))])]


def _whereabouts(status: Status) -> str:
    """Where the trials are that have ended and are not counted."""
    if status.state == "running":
        return "more in progress"
    if status.latest and status.latest.final:
        return "more stored and not yet counted"
    return "more had ended when last heard of; those that were stored by then are not asked again"


def _agents(snapshot: Snapshot | None) -> Sequence[AgentProgress]:
    return snapshot.agents if snapshot else ()


def _models(snapshot: Snapshot, ahead: float) -> list[str]:
    return standings(snapshot, everything=len(snapshot.agents) <= FEW_MODELS, ahead=ahead)


def _line(agent: AgentProgress) -> Line:
    counts = agent.counts
    numbers = [f"{number:,}" for number in (agent.planned, counts.rows, counts.passed, counts.failed)]
    return Line(agent.name, [*numbers, errors_cell(counts.error)])


def _more(name: str, status: Status) -> str:
    """Rows of a model that no commit lists: those that workers have in hand, or have left behind."""
    counted, known = (
        sum(one.counts.rows for one in _agents(snapshot) if one.name == name)
        for snapshot in (status.committed, status.latest)
    )
    return f"{max(0, known - counted):,}"


def _pace(snapshot: Snapshot, name: str) -> list[str]:
    found = next((agent for agent in snapshot.agents if agent.name == name), None)
    return [f"{found.in_flight:,}", *agent_pace(found)] if found else ["–", "–", "–"]


def _with(line: Line, cells: Sequence[str]) -> Line:
    return replace(line, cells=[*line.cells, *cells])


def _spent(status: Status, name: str) -> float:
    """US dollars: what the driver last said of a model, or its commits, which may be newer."""
    return max(snapshot.spent_on(name).usd for snapshot in (status.committed, status.latest) if snapshot)
