"""Which shards are pending, running and settled: the run's only mutable state, and no I/O.

    pending ──Dispatch──▶ running ──Finished, whole──▶ committed
       ▲                     │
       ├── Returned ─────────┤
       └── Lost, or Finished with trials missing; after `max_losses` of them ──▶ abandoned

A lane that is closed dispatches nothing more: what runs in it may end, what is missing stays owed.

Theory of operation. Each agent has a lane of its own with a width, so that a model that crawls cannot take the places
of one that flies. A shard that was lost may still be finished by the worker that was given up for dead, even while
another one runs it: the first whole receipt wins, and whatever comes later is ignored. Rows are safe in either case: a
receipt only lists parts that are already stored, and a re-dispatched shard runs only what is missing from its parts.

A shard may have to wait until another one of its lane is settled: committed, or abandoned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Receipt = TypeVar("Receipt")


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Give this shard to a worker. `attempt` counts from 1 in this ledger."""

    shard: str
    attempt: int
    lane: str


@dataclass(frozen=True, slots=True)
class Commit(Generic[Receipt]):
    """Write down that this receipt counts for the shard."""

    shard: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give up on the shard for this run of the command; its trials stay owed."""

    shard: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Generic[Receipt]):
    """A worker came back. `missing` counts the trials that it was to do and of which no stored part has a row.

    `closed` says why it ran no more of them, when that is because the lane is closed.
    """

    shard: str
    attempt: int
    receipt: Receipt
    missing: int
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker died or broke down while it had the shard."""

    shard: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Returned:
    """A worker that has to leave stored what it has of the shard; nothing is wrong with either."""

    shard: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Resize:
    """From now on, so many shards of each lane may run at once; lanes that are not named stay as they are."""

    widths: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Close:
    """Dispatch nothing more of this lane; what is running may still finish."""

    lane: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Dispatch nothing more; what is running may still finish."""


Instruction = Dispatch | Commit[Receipt] | Abandon
Ended = Finished[Receipt] | Lost | Returned
"""How a dispatched shard came back."""
Event = Ended[Receipt] | Resize | Close | Stop


@dataclass(slots=True)
class _Lane:
    name: str
    width: int
    pending: deque[str] = field(default_factory=deque[str])
    running: set[str] = field(default_factory=set[str])
    closed: str | None = None

    @property
    def done(self) -> bool:
        return not self.running and (self.closed is not None or not self.pending)


class Ledger(Generic[Receipt]):
    """The shards of a run by lane, in order of work; those already `committed` are settled from the start."""

    def __init__(
        self,
        shards: Sequence[tuple[str, str]],
        widths: dict[str, int],
        *,
        committed: Collection[str] = (),
        after: Mapping[str, str] | None = None,
        max_losses: int = 8,
    ) -> None:
        """`shards`: pairs of shard id and lane; `widths`: how many shards of each lane may run at once.

        `after` maps a shard to the one, earlier in the same lane, that has to be settled before it is dispatched.
        """
        self._lanes = {name: _Lane(name, width) for name, width in widths.items()}
        self._lane_of = {shard: self._lanes[lane] for shard, lane in shards}
        self._after = after or {}
        self._max_losses = max_losses
        self._attempts: dict[str, int] = {}
        self._losses: dict[str, int] = {}
        self._stopped = False
        self.committed = set(committed) & self._lane_of.keys()
        self.abandoned: dict[str, str] = {}
        for shard, lane in shards:
            if shard not in self.committed:
                self._lanes[lane].pending.append(shard)

    @property
    def running(self) -> int:
        """How many shards are out with workers."""
        return sum(len(lane.running) for lane in self._lanes.values())

    @property
    def finished(self) -> bool:
        """Nothing runs and nothing more will be dispatched."""
        return not self.running and (self._stopped or all(lane.done for lane in self._lanes.values()))

    @property
    def closed(self) -> dict[str, str]:
        """The lanes that are closed, and why."""
        return {name: lane.closed for name, lane in self._lanes.items() if lane.closed is not None}

    def start(self) -> list[Instruction[Receipt]]:
        """The first dispatches."""
        return [dispatch for lane in self._lanes.values() for dispatch in self._fill(lane)]

    def handle(self, event: Event[Receipt]) -> list[Instruction[Receipt]]:
        """Take in one event; give back what must now be done, in order."""
        match event:
            case Stop():
                self._stopped = True
            case Close(lane=name, reason=reason):
                if lane := self._lanes.get(name):
                    lane.closed = lane.closed or reason
            case Resize(widths=widths):
                return self._resize(widths)
            case Finished(shard=shard, receipt=receipt, missing=0):
                return self._settle(shard, receipt)
            case Finished(shard=shard, attempt=attempt, missing=missing, closed=closed):
                lane = self._lane_of[shard]
                lane.closed = lane.closed or closed
                return self._retry(shard, attempt, f"{missing} trials were not run")
            case Lost(shard=shard, attempt=attempt, reason=reason):
                return self._retry(shard, attempt, reason)
            case Returned(shard=shard, attempt=attempt):
                return self._retry(shard, attempt, None)
        return []

    def _resize(self, widths: Mapping[str, int]) -> list[Instruction[Receipt]]:
        named = [(self._lanes[name], width) for name, width in widths.items() if name in self._lanes]
        for lane, width in named:
            lane.width = width
        return [dispatch for lane, _ in named for dispatch in self._fill(lane)]

    def _settle(self, shard: str, receipt: Receipt) -> list[Instruction[Receipt]]:
        if shard in self.committed:
            return []
        lane = self._lane_of[shard]
        if shard in lane.running:
            lane.running.remove(shard)
        elif shard in lane.pending:  # looked for only when it was lost: thousands may be pending
            lane.pending.remove(shard)
        self.abandoned.pop(shard, None)
        self.committed.add(shard)
        return [Commit(shard, receipt), *self._fill(lane)]

    def _retry(self, shard: str, attempt: int, reason: str | None) -> list[Instruction[Receipt]]:
        """Dispatch it again; `reason` says what went wrong, None when nothing did."""
        lane = self._lane_of[shard]
        if shard not in lane.running or attempt != self._attempts[shard]:
            return []
        lane.running.discard(shard)
        if self._stopped or lane.closed is not None:
            return []
        if reason is not None:
            self._losses[shard] = self._losses.get(shard, 0) + 1
        if reason is not None and self._losses[shard] >= self._max_losses:
            self.abandoned[shard] = reason
            return [Abandon(shard, reason), *self._fill(lane)]
        lane.pending.appendleft(shard)
        return self._fill(lane)

    def _fill(self, lane: _Lane) -> list[Instruction[Receipt]]:
        out: list[Instruction[Receipt]] = []
        while len(lane.running) < lane.width and not self._stopped and lane.closed is None:
            shard = next(filter(self._may_run, lane.pending), None)
            if shard is None:
                break
            lane.pending.remove(shard)
            lane.running.add(shard)
            self._attempts[shard] = self._attempts.get(shard, 0) + 1
            out.append(Dispatch(shard, self._attempts[shard], lane.name))
        return out

    def _may_run(self, shard: str) -> bool:
        """Whether nothing that it has to wait for is still to be settled."""
        first = self._after.get(shard)
        return first not in self._lane_of or first in self.committed or first in self.abandoned
