"""How far a run is, for people: a table that moves on a terminal, short lines every ten seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live

from trunchray.cli.output import Output
from trunchray.cli.screen import Line, fitted, paragraph
from trunchray.cli.standing import FEW_MODELS, machines, standings
from trunchray.cli.states import agent_pace, pace
from trunchray.cli.tables import cost_cell, errors_cell, spent_of
from trunchray.core.wording import duration
from trunchray.engine.progress import AgentProgress, Snapshot

LINE_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""
MODELS_EVERY = 60.0
"""Seconds between two lines of each model; what holds one up is said at once."""

_COLUMNS = (
    *(("done", 0), ("of", 0), ("passed", 3), ("errors", 1)),
    *(("tokens", 4), ("in flight", 5), ("/min", 2), ("ETA", 0)),
)
"""What the table shows of a model, each with its rank as in `fitted`."""
_COST = ("cost $", 4)
"""Shown last, of a run that costs something."""


class LiveProgress:
    """An observer of a run; a `quiet` one passes on warnings only. `clock` counts seconds from anywhere."""

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False) -> None:
        self._output, self._clock, self._quiet = output, clock, quiet
        self._started = clock()
        self._line_due = self._models_due = self._started + LINE_EVERY
        self._held_up: set[str] = set()
        self._live = Live(console=output.stderr, auto_refresh=False, transient=True)
        self._moving = output.stderr.is_terminal and not quiet
        self.last: Snapshot | None = None
        """The latest one; None before the first."""

    def __enter__(self) -> Self:
        if self._moving:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._moving:
            self._live.stop()

    def progress(self, snapshot: Snapshot) -> None:
        self.last = snapshot
        if self._moving:
            self._live.update(self._screen(snapshot), refresh=True)
        elif not self._quiet and self._clock() >= self._line_due:
            self._line_due = self._clock() + LINE_EVERY
            for line in self._lines(snapshot):
                self._output.note(line)

    def note(self, message: str) -> None:
        if not self._quiet:
            self._output.note(message)

    def warn(self, message: str) -> None:
        self._output.warn(message)

    def _screen(self, snapshot: Snapshot) -> Group:
        columns, lines = [*_COLUMNS], [_row(agent) for agent in snapshot.agents]
        if snapshot.spent.cost:
            columns.append(_COST)
            lines = [
                Line(line.name, [*line.cells, cost_cell(agent.spent_usd)])
                for line, agent in zip(lines, snapshot.agents, strict=True)
            ]
        title = filter(None, (snapshot.run_id, self._elapsed(), spent_of(snapshot.spent, snapshot.budget)))
        below = standings(snapshot, everything=len(snapshot.agents) <= FEW_MODELS)
        below += machines(snapshot.nodes) if len(snapshot.nodes) > 1 else []
        table = fitted(self._output.stderr, "model", columns, lines)
        return Group(paragraph("  ".join(title), "italic"), table, *map(paragraph, below))

    def _lines(self, snapshot: Snapshot) -> list[str]:
        """The run's; now and then one of each model; and what holds models up, when that is news."""
        first = f"[{self._elapsed()}] {snapshot.run_id}: {_done(snapshot)}"
        each = len(snapshot.agents) > 1 and self._clock() >= self._models_due
        if each:
            self._models_due = self._clock() + MODELS_EVERY
        held_up = {line.partition(": ")[0]: line for line in standings(snapshot)}
        news = [line for name, line in held_up.items() if each or name not in self._held_up]
        self._held_up = set(held_up)
        return [first, *(f"  {_part(agent)}" for agent in snapshot.agents if each), *(f"  {line}" for line in news)]

    def _elapsed(self) -> str:
        return duration(self._clock() - self._started)


def _row(agent: AgentProgress) -> Line:
    counts, (rate, left) = agent.counts, agent_pace(agent)
    figures = (agent.done, agent.planned, counts.passed, counts.tokens, agent.in_flight)
    done, planned, passed, tokens, in_flight = (f"{number:,}" for number in figures)
    return Line(agent.name, [done, planned, passed, errors_cell(counts.error), tokens, in_flight, rate, left])


def _done(snapshot: Snapshot) -> str:
    errors = sum(agent.counts.error for agent in snapshot.agents)
    said = [f"{snapshot.done:,}/{snapshot.planned:,} trials", f"{errors:,} errors" if errors else ""]
    return ", ".join(filter(None, [*said, spent_of(snapshot.spent, snapshot.budget), pace(snapshot)]))


def _part(agent: AgentProgress) -> str:
    counts, (rate, left) = agent.counts, agent_pace(agent)
    cost = f", ${cost_cell(agent.spent_usd)}" if agent.spent_usd else ""
    going = f"; {rate}/min, ETA {left}" if agent.per_minute is not None else ""
    rows = f"{agent.done:,}/{agent.planned:,}, passed {counts.passed:,}, errors {counts.error:,}"
    return f"{agent.name}: {rows}{cost}{going}"
