"""How a run's models fare with their limits, in a line each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trunchray.cli.screen import one_line

if TYPE_CHECKING:
    from trunchray.engine.governor import Standing
    from trunchray.engine.progress import Snapshot

LONG_AGO = 60.0
"""Seconds after which a failure is no longer news."""


def standings(snapshot: Snapshot, *, everything: bool = False) -> list[str]:
    """What there is to say of each model: with `everything` all of it, else only what holds it up."""
    return [
        f"{agent.name}: {'; '.join(said)}"
        for agent in snapshot.agents
        if agent.standing and (said := _said(agent.standing, snapshot.at, everything=everything))
    ]


def _said(standing: Standing, at: datetime | None, *, everything: bool) -> list[str]:
    said = [f"closed ({standing.closed})"] if standing.closed else []
    if everything:
        said.append(f"{standing.in_flight:,} requests in flight of {standing.permits:,} permitted")
        if standing.waiting:
            said.append(f"{standing.waiting:,} waiting")
        if standing.rate:
            said.append(f"{60 * standing.rate:,.0f} requests a minute")
    if standing.cooling_for >= 1:
        until = (at + timedelta(seconds=standing.cooling_for)).astimezone() if at else None
        said.append(f"cooling until {until:%H:%M:%S}" if until else f"cooling for {standing.cooling_for:.0f} s")
    if standing.error and standing.error_age is not None and (everything or standing.error_age < LONG_AGO):
        said.append(f"last error {standing.error_age:.0f} s ago: {one_line(standing.error)}")
    if everything and standing.oldest is not None:
        said.append(f"oldest trial in flight {standing.oldest:.0f} s")
    return said
