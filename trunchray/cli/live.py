"""How far a run is, for people: a table that moves on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.table import Table

from trunchray.cli.output import Output
from trunchray.cli.screen import Line, fitted
from trunchray.cli.standing import standings
from trunchray.cli.tables import cost_cell, errors_cell, spent_of
from trunchray.core.budget import Budget
from trunchray.engine.progress import AgentProgress, Snapshot

LINE_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""
WINDOW = 60.0
"""Seconds that rates look back."""
SETTLED = 2.0
"""Seconds after which a rate means something."""

_COLUMNS = (
    *(("done", 0), ("of", 0), ("passed", 3), ("errors", 1)),
    *(("tokens", 4), ("in flight", 5), ("rate", 2), ("ETA", 0)),
)
"""What the table shows of a model, each with its rank as in `fitted`."""
_COST = ("cost $", 4)
"""Shown last, of a run that costs something."""


class LiveProgress:
    """An observer of a run that may cost as much as `budget` says. `clock` counts seconds from anywhere."""

    def __init__(
        self, output: Output, clock: Callable[[], float] = time.monotonic, *, budget: Budget | None = None
    ) -> None:
        self._output, self._clock, self._budget = output, clock, budget or Budget()
        self._started = clock()
        self._rates = Rates()
        self._line_due = self._started + LINE_EVERY
        self._live = Live(console=output.stderr, auto_refresh=False, transient=True)
        self._moving = output.stderr.is_terminal
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
        self._rates.see(self._clock(), snapshot)
        if self._moving:
            self._live.update(self._table(snapshot), refresh=True)
        elif self._clock() >= self._line_due:
            self._line_due = self._clock() + LINE_EVERY
            self._output.note(self._line(snapshot))

    def note(self, message: str) -> None:
        self._output.note(message)

    def warn(self, message: str) -> None:
        self._output.warn(message)

    def _table(self, snapshot: Snapshot) -> Table:
        lines = [self._row(agent) for agent in snapshot.agents]
        columns = [*_COLUMNS]
        if snapshot.spent.cost:
            columns.append(_COST)
            lines = [
                replace(line, cells=[*line.cells, cost_cell(agent.spent_usd)])
                for line, agent in zip(lines, snapshot.agents, strict=True)
            ]
        table = fitted(self._output.stderr, "model", columns, lines)
        title = (snapshot.run_id, _duration(self._clock() - self._started), spent_of(snapshot.spent, self._budget))
        table.title, table.title_justify = "  ".join(filter(None, title)), "left"
        table.caption, table.caption_justify = "\n".join(standings(snapshot, everything=True)), "left"
        return table

    def _row(self, agent: AgentProgress) -> Line:
        rate, counts = self._rates.rate(agent.name), agent.counts
        figures = (counts.rows, agent.planned, counts.passed, counts.tokens, agent.in_flight)
        done, planned, passed, tokens, in_flight = (f"{number:,}" for number in figures)
        errors = errors_cell(counts.error)
        speed = "–" if rate is None else f"{rate:,.1f}/s"
        return Line(agent.name, [done, planned, passed, errors, tokens, in_flight, speed, _remaining(agent, rate)])

    def _line(self, snapshot: Snapshot) -> str:
        models = "; ".join(self._part(agent) for agent in snapshot.agents)
        elapsed = _duration(self._clock() - self._started)
        spent = spent_of(snapshot.spent, self._budget)
        done = f"{snapshot.rows:,}/{snapshot.planned:,} trials" + (f", {spent}" if spent else "")
        return "; ".join([f"[{elapsed}] {snapshot.run_id}: {done}", models, *standings(snapshot)])

    def _part(self, agent: AgentProgress) -> str:
        rate = self._rates.rate(agent.name)
        counts = agent.counts
        speed = "" if rate is None else f", {rate:,.1f}/s, ETA {_remaining(agent, rate)}"
        cost = f", ${cost_cell(agent.spent_usd)}" if agent.spent_usd else ""
        return (
            f"{agent.name} {counts.rows:,}/{agent.planned:,} "
            f"(passed {counts.passed:,}, errors {counts.error:,}, tokens {counts.tokens:,}{cost}{speed})"
        )


class Rates:
    """How many rows a second each model has been getting in the last minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def see(self, now: float, snapshot: Snapshot) -> None:
        """Take in a snapshot made at `now`, in seconds."""
        self._seen.append((now, {agent.name: agent.counts.rows for agent in snapshot.agents}))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    def rate(self, name: str) -> float | None:
        """Rows a second; None while it is too early to tell."""
        if not self._seen:
            return None
        (before, old), (now, new) = self._seen[0], self._seen[-1]
        if now - before < SETTLED:
            return None
        # A worker that is lost takes the rows it had not stored with it.
        return max(0, new[name] - old.get(name, 0)) / (now - before)


def _remaining(agent: AgentProgress, rate: float | None) -> str:
    owed = agent.planned - agent.counts.rows
    if owed <= 0:
        return "done"
    return _duration(owed / rate) if rate else "–"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
