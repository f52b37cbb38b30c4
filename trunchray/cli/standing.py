"""How a run's models and machines fare, in a line each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trunchray.cli.screen import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunchray.engine.governor import Standing
    from trunchray.engine.progress import NodeStanding, Snapshot

LONG_AGO = 60.0
"""Seconds after which a failure is no longer news."""
FEW_MODELS = 6
"""Up to so many, all there is to know of each is shown."""
FEW_NODES = 8
"""Up to so many get a line each."""


def standings(snapshot: Snapshot, *, everything: bool = False, ahead: float = 0) -> list[str]:
    """What there is to say of each model: with `everything` all of it, else only what holds it up.

    Times of day are those of this machine, whose clock the driver's is `ahead` of by so many seconds.
    """
    at = snapshot.at - timedelta(seconds=ahead) if snapshot.at else None
    return [
        f"{agent.name}: {'; '.join(said)}"
        for agent in snapshot.agents
        if agent.standing and agent.done < agent.planned and (said := _said(agent.standing, at, everything=everything))
    ]


def machines(nodes: Sequence[NodeStanding]) -> list[str]:
    """Where a run is at work."""
    if len(nodes) <= FEW_NODES:
        return [f"node {node.node}: {_node(node)}" for node in nodes]
    leaving = sum(node.draining for node in nodes)
    workers, down, shards = (sum(getattr(node, name) for node in nodes) for name in ("workers", "down", "shards"))
    return [f"{len(nodes):,} nodes: {_workers(workers, down, shards)}" + (f"; {leaving:,} leaving" if leaving else "")]


def _node(node: NodeStanding) -> str:
    return _workers(node.workers, node.down, node.shards) + ("; leaving, gets nothing more" if node.draining else "")


def _workers(workers: int, down: int, shards: int) -> str:
    silent = f" ({down:,} not answering)" if down else ""
    return (
        f"{workers:,} worker{'' if workers == 1 else 's'}{silent}, {shards:,} shard{'' if shards == 1 else 's'} in work"
    )


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
