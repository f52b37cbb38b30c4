"""Where workers go, and how many trials each may have in memory."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trunchray.engine.seating import Node, Seating, fair_share, lacking, spread
from trunchray.engine.semaphore import ResizableSemaphore


def node(name: str, **resources: float) -> Node:
    return Node(name, f"10.0.0.{name}", resources)


TWO = (node("1", CPU=4, eval=2), node("2", CPU=2.5))


def test_there_are_as_many_workers_as_fit():
    """Each node is filled: with as many as its processors and its other resources allow."""
    assert spread(TWO, Seating(), {}) == {"1": 4, "2": 2}
    assert spread(TWO, Seating(cpus=2), {}) == {"1": 2, "2": 1}
    assert spread(TWO, Seating(resources={"eval": 0.5}), {}) == {"1": 4, "2": 0}
    assert spread((node("1", CPU=0.3),), Seating(cpus=0.1), {}) == {"1": 3}


def test_some_workers_are_spread_over_the_nodes():
    """A given number is spread evenly, stays where it is, and comes last to where there is something better to do."""
    assert spread(TWO, Seating(workers=3), {}) == {"1": 2, "2": 1}
    assert spread(TWO, Seating(workers=3), {"1": 3}) == {"1": 3, "2": 0}
    assert spread((node("1", CPU=8, GPU=1), node("2", CPU=2)), Seating(workers=3), {}) == {"1": 1, "2": 2}


@given(
    cpus=st.lists(st.integers(0, 5), max_size=5),
    workers=st.none() | st.integers(1, 30),
    held=st.lists(st.integers(0, 6), min_size=5, max_size=5),
)
def test_no_node_gets_more_than_it_holds(cpus: list[int], workers: int | None, held: list[int]):
    """As many as were asked for, or as fit, and never more on a node than it has room for."""
    nodes = [node(str(index), CPU=count) for index, count in enumerate(cpus)]
    found = spread(nodes, Seating(workers=workers), {str(index): count for index, count in enumerate(held)})
    assert all(found[one.id] <= one.resources["CPU"] for one in nodes)
    stay = sum(min(count, have) for count, have in zip(cpus, held, strict=False))
    assert sum(found.values()) == (sum(cpus) if workers is None else min(sum(cpus), max(workers, stay)))


def test_what_no_node_has_is_named():
    """The message says which resource, how much of it there is, and how to have more."""
    assert lacking(TWO, Seating()) is None
    assert lacking((), Seating()) == "the cluster has no node that stays"
    assert lacking(TWO, Seating(resources={"evel": 1})) == (
        "each worker takes 1 'evel', and no node of the cluster (it has 2) has more than 0; start nodes with "
        "--resources='{\"evel\": 1}' or more, or change ray.resources"
    )
    assert "has more than 4; lower ray.cpus" in str(lacking(TWO, Seating(cpus=6)))
    both = lacking((node("1", CPU=4), node("2", CPU=1, eval=1)), Seating(cpus=2, resources={"eval": 1}))
    assert both == (
        "each worker takes 2 'CPU', 1 'eval', and no node of the cluster (it has 2) has all of that; change `ray:`"
    )


def test_rays_own_resources_are_asked_for_by_their_names():
    """`CPU` among the resources would be said twice, and workers use no GPU."""
    with pytest.raises(ValidationError, match=r"'CPU' is no resource of your own; write ray\.cpus instead"):
        Seating(resources={"CPU": 1})


@given(shards=st.integers(1, 500), workers=st.integers(0, 60))
def test_shares_hold_all_shards(shards: int, workers: int):
    """All workers together may have them all, and none much more than another."""
    assert fair_share(shards, workers) * max(1, workers) >= shards
    assert (fair_share(shards, workers) - 1) * max(1, workers) < shards


async def test_places_can_become_more_and_fewer() -> None:
    """More let those in who wait; of fewer, nobody loses one, and the next waits until there are few enough."""
    places, inside = ResizableSemaphore(1), [asyncio.Event() for _ in range(4)]
    leave = [asyncio.Event() for _ in range(4)]

    async def stay(number: int) -> None:
        async with places:
            inside[number].set()
            await leave[number].wait()

    stays = [asyncio.create_task(stay(number)) for number in range(4)]
    await inside[0].wait()
    assert not inside[1].is_set()
    places.resize(3)
    await inside[2].wait()
    assert not inside[3].is_set()
    places.resize(1)
    leave[0].set()
    leave[1].set()
    await asyncio.gather(*stays[:2])
    assert not inside[3].is_set()
    leave[2].set()
    await inside[3].wait()
    leave[3].set()
    await stays[3]


async def test_a_place_is_free_again_when_whoever_waits_is_cancelled() -> None:
    """Before it was let in, and at the very moment."""
    places = ResizableSemaphore(1)

    async def enter() -> None:
        async with places:
            await asyncio.Event().wait()

    first, second, third = (asyncio.create_task(enter()) for _ in range(3))
    await asyncio.sleep(0)
    third.cancel()
    first.cancel()
    await asyncio.gather(first, third, return_exceptions=True)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    async with asyncio.timeout(5), places:
        pass
