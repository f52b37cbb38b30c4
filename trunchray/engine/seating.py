"""Where workers go: how many each machine of a cluster gets. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from trunchray.core.frozen import Frozen

PoolName = Literal["auto", "local", "ray"]
"""Where a run is carried out: in this process, on Ray, or wherever it pays."""

Amount = Annotated[float, Field(gt=0, le=1e6)]

_RESERVED = {"CPU": "write ray.cpus instead", "GPU": "workers use none", "memory": "", "object_store_memory": ""}


class Seating(Frozen):
    """How many workers there should be, and what each takes of its machine."""

    workers: int | None = Field(default=None, ge=1, le=100_000)
    """As many as there is room for, up to this number; None for as many as there is room for."""
    cpus: Amount = 1
    """Processors that each worker takes; its evaluators use that many at a time."""
    resources: dict[str, Amount] = {}
    """What each takes of the resources that the cluster's nodes were started with, such as {eval: 1}."""

    @field_validator("resources")
    @classmethod
    def _custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name in resources:
            if name in _RESERVED:
                hint = f"; {_RESERVED[name]}" if _RESERVED[name] else ""
                raise ValueError(f"{name!r} is no resource of your own{hint}")
        return resources

    @property
    def needs(self) -> dict[str, float]:
        """What one worker takes, in Ray's words."""
        return {"CPU": self.cpus, **self.resources}


@dataclass(frozen=True)
class Node:
    """A machine of a cluster, with all it has, whoever uses it."""

    id: str
    address: str
    resources: Mapping[str, float]
    head: bool = False
    leaves_at: float | None = None
    """Seconds since 1970 at which it will be gone; None when it stays."""

    def room(self, seating: Seating) -> int:
        """How many workers fit when nothing else does."""
        return min(int(self.resources.get(name, 0) / amount + 1e-9) for name, amount in seating.needs.items())


def spread(nodes: Sequence[Node], seating: Seating, held: Mapping[str, int]) -> dict[str, int]:
    """How many workers each node should have; those it has `held` stay while it has room, others are spread evenly."""
    room = {node.id: node.room(seating) for node in nodes}
    if seating.workers is None:
        return room
    found = {name: min(held.get(name, 0), most) for name, most in room.items()}
    dear = {node.id: node.resources.get("GPU", 0) > 0 for node in nodes}
    for _ in range(seating.workers - sum(found.values())):
        free = [name for name in found if found[name] < room[name]]
        if not free:
            break
        # Where somebody else has better use for the processors comes last.
        found[min(free, key=lambda name: (dear[name], found[name]))] += 1
    return found


def lacking(nodes: Sequence[Node], seating: Seating) -> str | None:
    """Why no node can ever hold a worker, and what to do; None when one can."""
    if any(node.room(seating) for node in nodes):
        return None
    if not nodes:
        return "the cluster has no node that stays"
    number = len(nodes)
    for name, amount in seating.needs.items():
        most = max(node.resources.get(name, 0) for node in nodes)
        if most < amount:
            return (
                f"each worker takes {amount:g} {name!r}, and no node of the cluster (it has {number}) has more than "
                f"{most:g}; {_remedy(name, amount)}"
            )
    wanted = ", ".join(f"{amount:g} {name!r}" for name, amount in seating.needs.items())
    return f"each worker takes {wanted}, and no node of the cluster (it has {number}) has all of that; change `ray:`"


def _remedy(name: str, amount: float) -> str:
    if name == "CPU":
        return "lower ray.cpus, or start nodes with more processors (the head may have been given none)"
    return f"start nodes with --resources='{{\"{name}\": {amount:g}}}' or more, or change ray.resources"


def fair_share(shards: int, workers: int) -> int:
    """How many of so many shards one worker may have when all are to have the same."""
    return -(-shards // max(1, workers))
