"""The workers of a run over the nodes of a cluster, which come and go.

    node joins ─▶ seats as there is room ─▶ up ⇄ down
                        │                    │
                 unfit: node left out    node drains, or calls hang: leaving ─▶ idle ─▶ gone

Every worker is bound to its node. Ray starts it again there when its process dies; when the node is gone, so is the
worker, and what it had in hand is lost. Where a worker cannot work, its node is left out, and tried again later.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from trunchray.engine import ray_connection
from trunchray.engine.progress import NodeStanding
from trunchray.engine.ray_seat import Seat
from trunchray.engine.seating import Node, Seating, lacking, spread
from trunchray.errors import Interrupted, UsageError

NODES_EVERY = 2.0
"""Seconds between two looks at the cluster's nodes."""
STARTING = 20.0
"""Seconds for which a worker that has not answered yet is counted on."""
AGAIN = 60.0
"""Seconds after which a node that lacked something is tried again."""
NO_ROOM = 180.0
"""Seconds that a run waits for a node that can hold a worker, where nobody has been asked to start one."""
SCALING = 900.0
"""Likewise where an autoscaler has."""
ALL_GONE = 300.0
"""Seconds without any live worker after which the run is stopped, where no autoscaler may bring another."""
LONGEST_GRACE = 60.0
"""Seconds that trials in flight get on a node that drains without a deadline, or with a later one."""
MARGIN = 5.0
"""Seconds before the deadline by which they have to end, so that all can be stored."""


class Cluster(Protocol):
    """Where nodes come and go; see `ray_connection`, which is one."""

    def nodes(self) -> list[Node]: ...

    def largest(self) -> Mapping[str, float] | None: ...

    def ask_for(self, workers: int, seating: Seating) -> None: ...


@dataclass(frozen=True)
class Voice:
    """Where to say that something takes its time, and what the run gets over by itself."""

    note: Callable[[str], None]
    warn: Callable[[str], None]


@dataclass
class _Unfit:
    """Why a node was left out, and until when."""

    node: Node
    reason: str
    until: float


@dataclass
class Crew:
    """The seats of a run. `employ` starts a worker on a node, which is given its number, from 0.

    The cluster `grows` when nodes may join it. `clock` counts seconds from anywhere, `wall_clock` from 1970.
    """

    seating: Seating
    employ: Callable[[Node, int], Seat]
    voice: Voice
    grows: bool = True
    hires: bool = True
    """Workers are seated and missed; not when the run ends."""
    cluster: Cluster = ray_connection
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    seats: list[Seat] = field(default_factory=list[Seat])
    _opened: int = 0
    _looked_at: float = -inf
    _unfit: dict[str, _Unfit] = field(default_factory=dict[str, _Unfit])
    _used: dict[str, Node] = field(default_factory=dict[str, Node])
    _draining: set[str] = field(default_factory=set[str])
    _asked_for: int = 0
    _ever_up: bool = False
    _without_since: float | None = None
    _said: set[str] = field(default_factory=set[str])

    def look(self) -> None:
        """Seat workers on nodes that joined, let those leave whose nodes do, and ask each how it is.

        Raises:
            UsageError: no node can work, and nothing was run.
            Interrupted: nobody has worked for a long time.
        """
        now = self.clock()
        if self.hires and now - self._looked_at >= NODES_EVERY:
            self._looked_at = now
            self._look_at_nodes(self.cluster.nodes(), now)
        counted = [seat for seat in self.seats if self._counts(seat, now)]
        numbers = {seat: number for number, seat in enumerate(counted)}
        for seat in self.seats:
            index = numbers.get(seat, len(counted))
            seat.look(index, max(index + 1, len(counted)), now)
            if seat.lacks is not None:
                self._leave_out(seat, now)
            if seat.hangs and not seat.leaving and self.hires:
                seat.retire()
                self._say("calls that ran out of time go on in their threads: workers that hold such are replaced")
        self._dismiss(now)
        if self.hires:
            self._check_that_somebody_works(now)

    @property
    def counted_on(self) -> int:
        """Workers that work, or will in a moment."""
        now = self.clock()
        return sum(self._counts(seat, now) for seat in self.seats)

    @staticmethod
    def _counts(seat: Seat, now: float) -> bool:
        fresh = seat.state == "starting" and not seat.leaving and now - seat.opened_at < STARTING
        return seat.takes or fresh

    @property
    def starting(self) -> int:
        """Workers that have not answered yet."""
        return sum(seat.state == "starting" for seat in self.seats)

    def standings(self) -> tuple[NodeStanding, ...]:
        """The nodes that have or had workers, by address."""
        by_node: dict[str, list[Seat]] = {}
        for seat in self.seats:
            if seat.state in ("up", "down"):
                by_node.setdefault(seat.node.address, []).append(seat)
        return tuple(
            NodeStanding(
                node=address,
                workers=len(seats),
                down=sum(seat.state == "down" for seat in seats),
                shards=sum(len(seat.out) for seat in seats),
                draining=any(seat.drains for seat in seats),
            )
            for address, seats in sorted(by_node.items())
        )

    def close(self) -> None:
        """End all workers, in order where they answer in time."""
        for seat in self.seats:
            seat.progress = {}
        while self.seats:
            now = self.clock()
            self.seats = [seat for seat in self.seats if not seat.end(now)]
            if self.seats:
                time.sleep(0.02)
        if self._asked_for:
            self.cluster.ask_for(0, self.seating)

    def _look_at_nodes(self, nodes: list[Node], now: float) -> None:
        there = {node.id for node in nodes}
        self._miss({name: node for name, node in self._used.items() if name not in there})
        for node in nodes:
            if node.leaves_at is not None:
                self._drain(node)
        self._unfit = {name: one for name, one in self._unfit.items() if name in there and now < one.until}
        fit = [node for node in nodes if node.leaves_at is None and node.id not in self._unfit]
        held = Counter(seat.node.id for seat in self.seats if not seat.leaving and seat.state != "gone")
        for node_id, wanted in spread(fit, self.seating, held).items():
            for _ in range(wanted - held[node_id]):
                seat = self.employ(next(node for node in fit if node.id == node_id), self._opened)
                self.seats.append(seat)
                self._used[node_id] = seat.node
                self._opened += 1
        self._ask_for_room(nodes)

    def _miss(self, gone: dict[str, Node]) -> None:
        for name, node in gone.items():
            del self._used[name]
            if name not in self._draining and name not in self._unfit:
                self.voice.warn(f"node {node.address} is gone; what its workers had in hand is run elsewhere")
        for seat in self.seats:
            if seat.node.id in gone:
                seat.state = "gone"

    def _drain(self, node: Node) -> None:
        grace = max(0.0, min(LONGEST_GRACE, (node.leaves_at or 0) - self.wall_clock() - MARGIN))
        for seat in self.seats:
            if seat.node.id == node.id:
                seat.drain(grace)
        if node.id not in self._draining:
            self._draining.add(node.id)
            self.voice.note(f"node {node.address} is about to leave: its workers store what they have and end")

    def _ask_for_room(self, nodes: list[Node]) -> None:
        """Have an autoscaler make room for the workers that were asked for, or for one when there is none."""
        wanted = self.seating.workers or (1 if not self.seats else self._asked_for)
        if wanted != self._asked_for:
            self.cluster.ask_for(wanted, self.seating)
            self._asked_for = wanted
        seated = sum(not seat.leaving for seat in self.seats)
        if self.seating.workers and seated < self.seating.workers and seated:
            self._say(
                f"there is room for {seated} of the {self.seating.workers} workers now; "
                "the others start when nodes join"
            )
        why = lacking([node for node in nodes if node.leaves_at is None], self.seating)
        if why and not self._ever_up:
            if not self.grows:
                raise UsageError(why)
            most = self.cluster.largest()
            if most is not None and any(most.get(name, 0) < need for name, need in self.seating.needs.items()):
                raise UsageError(f"{why}. The cluster's autoscaler may start none that has")
            self._say(f"{why}. Waiting for such a node …")

    def _leave_out(self, seat: Seat, now: float) -> None:
        """A worker cannot work on its node: those there that do not work end, and none is started for a while."""
        node, reason = seat.node, seat.lacks or ""
        seat.lacks = None
        self._unfit[node.id] = _Unfit(node, reason, now + AGAIN)
        for other in self.seats:
            if other.node.id == node.id and other.state in ("starting", "down"):
                other.leaving = True
        message = f"node {node.address} gets no work: {reason}"
        if message not in self._said and self._others_can(node):
            self._said.add(message)
            self.voice.warn(message)

    def _others_can(self, node: Node) -> bool:
        return any(seat.node.id != node.id and not seat.leaving for seat in self.seats)

    def _dismiss(self, now: float) -> None:
        """End workers that leave and have nothing in hand; those that are gone with something are kept for it."""
        self.seats = [
            seat for seat in self.seats if seat.out or not (seat.state == "gone" or (seat.leaving and seat.end(now)))
        ]

    def _check_that_somebody_works(self, now: float) -> None:
        if any(seat.state == "up" for seat in self.seats):
            self._ever_up, self._without_since = True, None
            return
        if self._without_since is None:
            self._without_since = now
        waited = now - self._without_since
        hopes = any(not seat.leaving and seat.state != "gone" for seat in self.seats)
        if not self._ever_up and not hopes:
            if self._unfit:
                raise UsageError(self._nobody_fits())
            if self._in_vain(waited, NO_ROOM):
                why = lacking(self.cluster.nodes(), self.seating) or "no node of the cluster holds a worker"
                raise UsageError(f"{why} (waited for {waited:.0f} s)")
        elif self._in_vain(waited, ALL_GONE):
            why = f" ({self._nobody_fits()})" if self._unfit else ""
            raise Interrupted(f"no worker has answered for {waited:.0f} s{why}; the same command continues the run")
        elif waited > STARTING and not self._ever_up:
            self._say(
                f"no worker has started within {STARTING:.0f} s: the cluster may be slow to start them, or its "
                "processors in use by others; waiting …"
            )

    def _in_vain(self, waited: float, patience: float) -> bool:
        """Whether that was too long; an autoscaler that may still bring a node gets more time."""
        return waited > patience and (waited > SCALING or self.cluster.largest() is None)

    def _nobody_fits(self) -> str:
        by_reason: dict[str, list[str]] = {}
        for one in self._unfit.values():
            by_reason.setdefault(one.reason, []).append(one.node.address)
        each = [
            f"{'node' if len(found) == 1 else 'nodes'} {', '.join(sorted(found))}: {reason}"
            for reason, found in by_reason.items()
        ]
        return "no node of the cluster can do the work: " + "; ".join(each)

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self.voice.note(message)
