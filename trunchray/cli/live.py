"""How far a run is, for people: a table that moves on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.table import Table

from trunchray.cli.output import Output
from trunchray.engine.progress import AgentProgress, Snapshot

LINE_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


class LiveProgress:
    """An observer of a run. `clock` counts seconds from anywhere."""

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._output, self._clock = output, clock
        self._started = clock()
        self._first: Snapshot | None = None
        self._line_due = self._started + LINE_EVERY
        self._live = Live(console=output.stderr, auto_refresh=False, transient=True)
        self._moving = output.stderr.is_terminal

    def __enter__(self) -> Self:
        if self._moving:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._moving:
            self._live.stop()

    def progress(self, snapshot: Snapshot) -> None:
        self._first = self._first or snapshot
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
        table = Table(title=snapshot.run_id, title_justify="left", box=None, pad_edge=False)
        table.add_column("model")
        for column in ("done", "passed", "errors", "in flight", "tokens", "rate", "ETA"):
            table.add_column(column, justify="right")
        for agent in snapshot.agents:
            rate = self._rate(agent)
            table.add_row(
                agent.name,
                f"{agent.counts.rows:,} / {agent.planned:,}",
                f"{agent.counts.passed:,}",
                f"[red]{agent.counts.error:,}[/red]" if agent.counts.error else "0",
                f"{agent.in_flight:,}",
                f"{agent.counts.tokens:,}",
                f"{rate:,.1f}/s",
                _duration((agent.planned - agent.counts.rows) / rate) if rate else "–",
            )
        return table

    def _line(self, snapshot: Snapshot) -> str:
        seconds = self._clock() - self._started
        models = "; ".join(
            f"{agent.name} {agent.counts.rows:,}/{agent.planned:,} "
            f"(passed {agent.counts.passed:,}, errors {agent.counts.error:,}, {self._rate(agent):,.1f}/s)"
            for agent in snapshot.agents
        )
        return f"[{_duration(seconds)}] {snapshot.rows:,}/{snapshot.planned:,} trials: {models}"

    def _rate(self, agent: AgentProgress) -> float:
        """Rows per second since this command started."""
        before = next((a.counts.rows for a in self._first.agents if a.name == agent.name), 0) if self._first else 0
        seconds = self._clock() - self._started
        return max(0, agent.counts.rows - before) / seconds if seconds > 0 else 0.0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
