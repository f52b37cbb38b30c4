"""One worker as the driver sees it: what it has in hand, whether it answers, and how it leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from trunchray.core.ledger import Dispatch
from trunchray.core.receipt import InHand
from trunchray.engine.ray_connection import GONE, LOST, absent, ray, told
from trunchray.engine.seating import Node

LOOK_EVERY = 1.0
"""Seconds between two questions for a worker's progress."""
CLOSING = 5.0
"""Seconds that a worker gets to give back what it holds."""

State = Literal["starting", "up", "down", "gone"]
"""down: it was up, and does not answer now; gone: it never will again."""


@dataclass(eq=False)
class Seat:
    """A worker on a node, from when it is asked for; times count seconds from anywhere."""

    actor: Any
    node: Node
    opened_at: float
    state: State = "starting"
    leaving: bool = False
    """It is given nothing more, and ends when it has nothing in hand."""
    drains: bool = False
    """That is because its node will be gone."""
    retires: bool = False
    """That is because calls hang in its threads."""
    hangs: bool = False
    """It said that calls which ran out of time go on in its threads."""
    lacks: str | None = None
    """Why it cannot work where it is."""
    out: dict[Any, Dispatch] = field(default_factory=dict[Any, Dispatch])
    progress: Mapping[str, InHand] = field(default_factory=dict[str, InHand])
    probe: Any = None
    _asked_at: float = -inf
    _closing: Any = None
    _closed_by: float = 0.0

    @property
    def takes(self) -> bool:
        """It may be given shards."""
        return self.state == "up" and not self.leaving

    @property
    def hands_back(self) -> bool:
        """What it does not finish is no loss: it had to leave."""
        return self.drains or self.retires

    def load(self, lane: str) -> tuple[int, int]:
        """How many shards it has of the lane, and in all."""
        return sum(work.lane == lane for work in self.out.values()), len(self.out)

    def give(self, work: Dispatch) -> None:
        self.out[self.actor.work.remote(work.shard, work.attempt)] = work

    def look(self, index: int, count: int, now: float) -> None:
        """Take in the answer to the last question, and ask again when that is due."""
        if self.probe is not None and ray.wait([self.probe], timeout=0)[0]:
            probe, self.probe = self.probe, None
            self._answered(probe)
        if self.probe is None and self.state != "gone" and now - self._asked_at >= LOOK_EVERY:
            self.probe, self._asked_at = self.actor.look.remote(index, count), now

    def lost(self, error: Exception) -> None:
        """A call failed."""
        self.progress = {}
        if isinstance(error, GONE):
            self.state = "gone"
            if self.lacks is None and "creation task" in str(error):
                self.lacks = _lack(told(error))
        elif self.state == "up":
            self.state = "down"

    def drain(self, grace: float) -> None:
        """Begin nothing more, and store what it has after at most `grace` seconds; unfinished shards come back."""
        if not self.drains:
            self.leaving = self.drains = True
            self.stop(grace)

    def retire(self) -> None:
        """Begin nothing more, and finish what is in flight; unfinished shards come back."""
        self.leaving = self.retires = True
        self.stop(inf)

    def stop(self, grace: float) -> None:
        """Begin nothing more, and cancel after so many seconds what is in flight."""
        self.actor.stop.remote(grace)

    def end(self, now: float) -> bool:
        """Close an idle worker and end its process; True when that is done. To be called until it is."""
        if self.state == "up" and self._closing is None:
            self._closing, self._closed_by = self.actor.close.remote(), now + CLOSING
        if self._closing is not None and now < self._closed_by and not ray.wait([self._closing], timeout=0)[0]:
            return False
        ray.kill(self.actor)
        self.state = "gone"
        return True

    def _answered(self, probe: Any) -> None:
        try:
            answer: tuple[Any, ...] = ray.get(probe)
        except LOST as e:
            self.lost(e)
            return
        kind, what, *hang = answer
        if kind == "ready":
            self.state, self.progress, self.hangs = "up", what, any(hang)
        else:
            self.lacks = what
            self.state = "down" if self.state == "up" else self.state


def _lack(said: str) -> str:
    """What a machine lacks on which not even our own module could be imported."""
    missing = re.search("No module named '([^']+)'", said)
    return absent(missing[1]) if missing else said
