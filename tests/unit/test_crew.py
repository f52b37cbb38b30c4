"""Who works where while nodes come and go; the cluster, the time and the workers are the test's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from trunchray.core.ledger import Dispatch
from trunchray.engine.ray_crew import (
    AGAIN,
    ALL_GONE,
    LONGEST_GRACE,
    MARGIN,
    NO_ROOM,
    NODES_EVERY,
    SCALING,
    STARTING,
    Crew,
    Voice,
)
from trunchray.engine.ray_seat import Seat, State
from trunchray.engine.seating import Node, Seating
from trunchray.errors import Interrupted, UsageError

HEAD, SECOND = (Node(name, f"10.0.0.{name}", {"CPU": 2}) for name in "12")
WORK = Dispatch("s", 1, "m")


class Worker(Seat):
    """One that does as the test says, without a process."""

    def look(self, index: int, count: int, now: float) -> None:
        self.turn = index, count
        if self.state != "gone":
            self.state, self.lacks = self.actor.get(self.node.id, ("up", None))

    def stop(self, grace: float) -> None:
        self.grace = grace

    def end(self, now: float) -> bool:
        self.state = "gone"
        return True


@dataclass
class World:
    """A cluster of two nodes on which all workers are up unless `fares` says otherwise."""

    there: list[Node] = field(default_factory=lambda: [HEAD, SECOND])
    most: Mapping[str, float] | None = None
    asked: list[int] = field(default_factory=list[int])
    fares: dict[str, tuple[State, str | None]] = field(default_factory=dict[str, tuple[State, str | None]])
    notes: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    seconds: float = 0

    def nodes(self) -> list[Node]:
        return self.there

    def largest(self) -> Mapping[str, float] | None:
        return self.most

    def ask_for(self, workers: int, seating: Seating) -> None:
        self.asked.append(workers)

    def crew(self, seating: Seating | None = None, *, grows: bool = True) -> Crew:
        return Crew(
            seating or Seating(),
            lambda node, _: Worker(self.fares, node, self.seconds),
            Voice(self.notes.append, self.warnings.append),
            grows=grows,
            cluster=self,
            clock=lambda: self.seconds,
            wall_clock=lambda: self.seconds,
        )

    def pass_by(self, crew: Crew, seconds: float = NODES_EVERY) -> list[str]:
        """Look again after so many seconds; gives the node of each worker."""
        self.seconds += seconds
        crew.look()
        return [seat.node.id for seat in crew.seats]


def test_nodes_that_join_get_workers():
    """As many as they hold, at the next look at the nodes; each worker knows which one of how many it is."""
    world = World([HEAD])
    crew = world.crew()
    assert world.pass_by(crew) == ["1", "1"]
    world.there.append(SECOND)
    assert world.pass_by(crew, NODES_EVERY / 2) == ["1", "1"]
    assert world.pass_by(crew) == ["1", "1", "2", "2"]
    world.pass_by(crew)
    assert [seat.turn for seat in crew.seats if isinstance(seat, Worker)] == [(n, 4) for n in range(4)]


def test_a_worker_that_starts_is_counted_on_for_a_while():
    """It gets its part of the shards from the start, but nobody waits for one that never comes."""
    world = World(fares={"2": ("starting", None)})
    crew = world.crew()
    world.pass_by(crew)
    assert (crew.counted_on, crew.starting) == (4, 2)
    world.pass_by(crew, STARTING)
    assert (crew.counted_on, crew.starting) == (2, 2)


def test_workers_of_a_node_that_is_gone():
    """It is said once, they go with it, and one that had something in hand is kept until that was taken back."""
    world = World()
    crew = world.crew()
    world.pass_by(crew)
    crew.seats[-1].out["call"] = WORK
    world.there.remove(SECOND)
    assert world.pass_by(crew) == ["1", "1", "2"]
    assert crew.seats[-1].state == "gone"
    crew.seats[-1].out.clear()
    assert world.pass_by(crew) == ["1", "1"]
    assert world.warnings == ["node 10.0.0.2 is gone; what its workers had in hand is run elsewhere"]


@pytest.mark.parametrize(("in_seconds", "grace"), [(30.0, 30 - MARGIN), (3.0, 0), (float("inf"), LONGEST_GRACE)])
def test_workers_of_a_node_that_drains(in_seconds: float, grace: float):
    """They store what they have before its deadline and leave when they have nothing in hand; nobody comes instead."""
    world = World()
    crew = world.crew()
    world.pass_by(crew)
    crew.seats[-1].out["call"] = WORK
    world.there[1] = replace(SECOND, leaves_at=world.seconds + NODES_EVERY + in_seconds)
    assert world.pass_by(crew) == ["1", "1", "2"]
    (leaving,) = (seat for seat in crew.seats if seat.drains)
    assert isinstance(leaving, Worker)
    assert (leaving.grace, leaving.takes) == (grace, False)
    leaving.out.clear()
    assert world.pass_by(crew) == ["1", "1"]
    world.there.pop()
    world.pass_by(crew)
    assert world.notes == ["node 10.0.0.2 is about to leave: its workers store what they have and end"]
    assert world.warnings == []


def test_workers_in_which_calls_hang_are_replaced():
    """One finishes what it has in flight, however long that takes, and another works on its node from then on."""
    world = World([HEAD])
    crew = world.crew()
    world.pass_by(crew)
    hung = crew.seats[0]
    hung.hangs, hung.out["call"] = True, WORK
    world.pass_by(crew)
    assert isinstance(hung, Worker)
    assert (hung.takes, hung.hands_back, hung.grace) == (False, True, inf)
    assert world.pass_by(crew) == ["1", "1", "1"]
    hung.out.clear()
    assert world.pass_by(crew) == ["1", "1"]
    assert hung not in crew.seats
    assert world.notes == ["calls that ran out of time go on in their threads: workers that hold such are replaced"]
    assert not any(node.draining for node in crew.standings())


def test_a_node_that_lacks_something_is_left_out_for_a_while():
    """The others work; it is tried again later, because somebody may have mended it."""
    world = World(fares={"2": ("starting", "no key")})
    crew = world.crew()
    assert world.pass_by(crew) == ["1", "1"]
    assert world.warnings == ["node 10.0.0.2 gets no work: no key"]
    world.fares.clear()
    assert world.pass_by(crew) == ["1", "1"]
    assert world.pass_by(crew, AGAIN) == ["1", "1", "2", "2"]


def test_when_all_nodes_lack_something_nothing_is_run():
    """What they lack is said with the nodes that lack it."""
    world = World(fares={"1": ("starting", "no key"), "2": ("starting", "no key")})
    with pytest.raises(UsageError, match=r"can do the work: nodes 10\.0\.0\.1, 10\.0\.0\.2: no key$"):
        world.pass_by(world.crew())


def test_a_machine_of_ones_own_does_not_grow():
    """That it cannot hold a worker is said at once."""
    world = World()
    with pytest.raises(UsageError, match=r"takes 3 'CPU', and no node of the cluster \(it has 2\) has more than 2"):
        world.pass_by(world.crew(Seating(cpus=3), grows=False))


@pytest.mark.parametrize(("most", "patience"), [(None, NO_ROOM), ({"CPU": 8.0}, SCALING)])
def test_waiting_for_a_node_that_can_hold_a_worker(most: Mapping[str, float] | None, patience: float):
    """Longer where an autoscaler was asked for one; it is said once, and the request is taken back in the end."""
    world = World(most=most)
    crew = world.crew(Seating(cpus=3))
    world.pass_by(crew)
    world.pass_by(crew, patience)
    with pytest.raises(UsageError, match=rf"has more than 2; .* \(waited for {patience + 1:.0f} s\)$"):
        world.pass_by(crew, 1)
    assert len(world.notes) == 1
    crew.close()
    assert world.asked == [1, 0]


def test_an_autoscaler_that_may_start_no_such_node():
    """Nobody waits for it."""
    world = World(most={"CPU": 2.0})
    with pytest.raises(UsageError, match=r"The cluster's autoscaler may start none that has$"):
        world.pass_by(world.crew(Seating(cpus=3)))


@pytest.mark.parametrize(("most", "patience"), [(None, ALL_GONE), ({"CPU": 8.0}, SCALING)])
def test_when_nobody_works_any_more(most: Mapping[str, float] | None, patience: float):
    """Workers may come back, and do; when they stay away, the run stops and can go on later."""
    world = World(most=most)
    crew = world.crew()
    world.pass_by(crew)
    world.fares |= {"1": ("down", None), "2": ("down", None)}
    world.pass_by(crew)
    world.pass_by(crew, patience)
    world.fares.clear()
    world.pass_by(crew)
    world.fares |= {"1": ("down", None), "2": ("down", None)}
    world.pass_by(crew)
    with pytest.raises(Interrupted, match=r"no worker has answered for \d+ s; the same command continues the run"):
        world.pass_by(crew, patience + 1)
