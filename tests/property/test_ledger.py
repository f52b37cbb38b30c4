from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trunchray.core.ledger import (
    Abandon,
    Close,
    Commit,
    Dispatch,
    Event,
    Finished,
    Instruction,
    Ledger,
    Lost,
    Resize,
    Returned,
    Stop,
)

LANES = ("a", "b", "c")


class Cluster:
    """Workers as a ledger sees them: what was dispatched, what may still come back, what was settled."""

    def __init__(
        self,
        ledger: Ledger[str],
        widths: dict[str, int],
        lane_of: dict[str, str],
        after: dict[str, str] | None = None,
    ) -> None:
        self.ledger, self.widths, self.lane_of, self.after = ledger, widths, lane_of, after or {}
        self.out: list[Dispatch] = []
        self.zombies: list[Dispatch] = []
        self.dispatched: list[str] = []
        self.commits: list[str] = []
        self.abandoned: list[str] = []

    def carry_out(self, instructions: list[Instruction[str]]) -> None:
        for instruction in instructions:
            match instruction:
                case Dispatch():
                    assert self.is_its_turn(instruction.shard)
                    self.out.append(instruction)
                    assert self.running(instruction.lane) <= self.widths[instruction.lane]
                    self.dispatched.append(instruction.shard)
                case Commit(shard=shard):
                    self.commits.append(shard)
                case Abandon(shard=shard):
                    self.abandoned.append(shard)

    def tell(self, event: Event[str]) -> None:
        self.carry_out(self.ledger.handle(event))

    def resize(self, widths: dict[str, int]) -> None:
        """What runs beyond a narrower width may end; nothing is added to it."""
        self.widths = widths
        self.tell(Resize(widths))

    def running(self, lane: str) -> int:
        return sum(self.lane_of[d.shard] == lane for d in self.out)

    def is_its_turn(self, shard: str) -> bool:
        """Whether what has to be settled before it is."""
        first = self.after.get(shard)
        return first is None or first in self.ledger.committed or first in self.ledger.abandoned

    def check_full(self) -> None:
        """No place stays empty while a shard waits."""
        for lane, width in self.widths.items():
            waiting = {shard for shard, of in self.lane_of.items() if of == lane} - self.ledger.committed
            waiting -= self.ledger.abandoned.keys() | {d.shard for d in self.out}
            waiting = {shard for shard in waiting if self.is_its_turn(shard)}
            assert not waiting or self.running(lane) >= width


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[tuple[str, str]], dict[str, int], set[str]]:
    shards = [(f"s{i}", draw(st.sampled_from(LANES))) for i in range(draw(st.integers(0, 12)))]
    widths = {lane: draw(st.integers(1, 3)) for lane in LANES}
    done = draw(st.sets(st.sampled_from([name for name, _ in shards]))) if shards else set[str]()
    return shards, widths, done


@st.composite
def turns(draw: st.DrawFn, shards: list[tuple[str, str]]) -> dict[str, str]:
    """For some shards an earlier one of the same lane."""
    earlier = [[name for name, of in shards[:place] if of == lane] for place, (_, lane) in enumerate(shards)]
    firsts = [draw(st.sampled_from([None, *names])) for names in earlier]
    return {name: first for (name, _), first in zip(shards, firsts, strict=True) if first is not None}


@settings(max_examples=200, deadline=None)
@given(run=runs(), data=st.data())
def test_every_history_settles_each_shard_once(
    run: tuple[list[tuple[str, str]], dict[str, int], set[str]], data: st.DataObject
):
    """Whatever dies, leaves, joins, comes late or comes twice: each shard is committed or abandoned, never dispatched
    once it was committed nor before its turn, never committed twice, no lane dispatches beyond its width, and none
    stays below it."""
    shards, widths, done = run
    after = data.draw(turns(shards))
    ledger = Ledger[str](shards, widths, committed=done, after=after, max_losses=3)
    cluster = Cluster(ledger, widths, dict(shards), after)
    cluster.carry_out(ledger.start())
    while not ledger.finished:
        cluster.check_full()
        settled = set(cluster.commits)
        kind = data.draw(st.sampled_from(["finished", "partial", "lost", "returned", "resized", "late", "twice"]))
        if kind == "resized":
            widths = widths | {
                lane: data.draw(st.integers(1, 3)) for lane in data.draw(st.sets(st.sampled_from(LANES)))
            }
            cluster.resize(widths)
        elif kind in ("late", "twice") and cluster.zombies:
            work = data.draw(st.sampled_from(cluster.zombies))
            was_out = [d for d in cluster.out if d.shard == work.shard]
            cluster.out = [d for d in cluster.out if d not in was_out]
            cluster.tell(Finished(work.shard, work.attempt, "late", missing=0))
            cluster.zombies += was_out
        else:
            work = cluster.out.pop(data.draw(st.integers(0, len(cluster.out) - 1)))
            cluster.zombies.append(work)
            if kind == "lost":
                cluster.tell(Lost(work.shard, work.attempt, "died"))
            elif kind == "returned":
                cluster.tell(Returned(work.shard, work.attempt))
            else:
                cluster.tell(Finished(work.shard, work.attempt, "r", missing=1 if kind == "partial" else 0))
        assert not settled & {d.shard for d in cluster.out}
    assert len(cluster.commits) == len(set(cluster.commits))
    assert set(cluster.commits) | set(ledger.abandoned) | done == {name for name, _ in shards}
    assert not set(cluster.commits) & (set(ledger.abandoned) | done)
    assert not done & set(cluster.dispatched)


@settings(max_examples=100, deadline=None)
@given(run=runs(), data=st.data())
def test_after_stop_nothing_is_dispatched(
    run: tuple[list[tuple[str, str]], dict[str, int], set[str]], data: st.DataObject
):
    """A stopped ledger only waits: whole receipts are still committed, and it ends when the last worker is back."""
    shards, widths, done = run
    ledger = Ledger[str](shards, widths, committed=done)
    cluster = Cluster(ledger, widths, dict(shards))
    cluster.carry_out(ledger.start())
    cluster.tell(Stop())
    before = list(cluster.dispatched)
    for work in list(cluster.out):
        assert not ledger.finished
        whole = data.draw(st.booleans())
        cluster.tell(Finished(work.shard, work.attempt, "r", missing=0 if whole else 2))
        assert (work.shard in cluster.commits) is whole
    assert ledger.finished
    assert cluster.dispatched == before


def test_a_shard_that_is_given_back_has_lost_nothing():
    """However often machines leave, a shard is not given up for that."""
    ledger = Ledger[str]([("s", "a")], {"a": 1}, max_losses=2)
    ledger.start()
    for attempt in range(1, 6):
        assert ledger.handle(Returned("s", attempt)) == [Dispatch("s", attempt + 1, "a")]
        assert ledger.handle(Returned("s", attempt)) == []
    assert ledger.handle(Lost("s", 6, "died")) == [Dispatch("s", 7, "a")]
    assert ledger.handle(Lost("s", 7, "died")) == [Abandon("s", "died")]


def test_a_shard_waits_for_the_one_before_it():
    """Others take its place meanwhile; it is dispatched when that one is committed, or given up."""
    ledger = Ledger[str](
        [("a1", "a"), ("a2", "a"), ("b1", "a"), ("b2", "a")], {"a": 3}, after={"a2": "a1", "b2": "b1"}, max_losses=1
    )
    assert ledger.start() == [Dispatch("a1", 1, "a"), Dispatch("b1", 1, "a")]
    assert ledger.handle(Finished("b1", 1, "whole", missing=0)) == [Commit("b1", "whole"), Dispatch("b2", 1, "a")]
    assert ledger.handle(Lost("a1", 1, "died")) == [Abandon("a1", "died"), Dispatch("a2", 1, "a")]
    assert not ledger.finished


def test_a_closed_lane_dispatches_nothing_more():
    """What runs in it may end, whole or not; other lanes go on, and the ledger is finished without the rest."""
    ledger = Ledger[str]([("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")], {"a": 2, "b": 1})
    assert [found.shard for found in ledger.start() if isinstance(found, Dispatch)] == ["a1", "a2", "b1"]
    assert ledger.handle(Close("a", "budget")) == []
    assert ledger.handle(Close("a", "authentication")) == []
    assert ledger.closed == {"a": "budget"}
    assert ledger.handle(Finished("a1", 1, "part", missing=3, closed="budget")) == []
    assert ledger.handle(Finished("a2", 1, "whole", missing=0)) == [Commit("a2", "whole")]
    assert not ledger.finished
    assert ledger.handle(Finished("b1", 1, "whole", missing=0)) == [Commit("b1", "whole"), Dispatch("b2", 1, "b")]
    ledger.handle(Finished("b2", 1, "whole", missing=0))
    assert ledger.finished
    assert ledger.committed == {"a2", "b1", "b2"}


def test_a_worker_may_be_the_first_to_know_that_a_lane_is_closed():
    """Its shard is not sent out again, as it would come back at once."""
    ledger = Ledger[str]([("a1", "a"), ("a2", "a")], {"a": 1})
    ledger.start()
    assert ledger.handle(Finished("a1", 1, "part", missing=1, closed="authentication")) == []
    assert ledger.finished
    assert ledger.closed == {"a": "authentication"}
    assert not ledger.abandoned
