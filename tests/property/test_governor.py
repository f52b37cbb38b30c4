"""What the governor promises, whatever workers do and in whatever order they ask."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.limited import SlidingMinute, TokenBucket, World
from trunchray.core.agent import Mock, ModelAgent, Pacing, Quota
from trunchray.core.budget import Budget, Purse, Spend
from trunchray.engine.demand import Demand
from trunchray.engine.governor import SILENT, Governor
from trunchray.engine.scope import COOLING, FIRST, LONGEST_PAUSE
from trunchray.engine.sharing import fill


def model(name: str = "m", permits: int = 100, quota: Quota | None = None, *, mock: bool = False) -> ModelAgent:
    pacing = Pacing(max_in_flight=permits)
    if mock:
        return ModelAgent(name=name, model="mock/echo", mock=Mock(), pacing=pacing, quota=quota)
    return ModelAgent(name=name, model=f"x/{name}", base_url="http://h/v1", pacing=pacing, quota=quota)


def hungry(**changes: int) -> Demand:
    return Demand(**({"waiting": 1000, "wanted": 1000} | changes))


def accepts(_now: float) -> tuple[bool, None]:
    return False, None


@given(st.integers(0, 200), st.lists(st.integers(0, 50), max_size=12))
def test_shares_are_fair(total: int, wants: list[int]):
    """Nobody gets more than it wants or less than another who wants no less, and nothing wanted is left over."""
    shares = fill(total, wants)
    assert sum(shares) == min(total, sum(wants))
    assert all(0 <= share <= want for share, want in zip(shares, wants, strict=True))
    unsatisfied = [share for share, want in zip(shares, wants, strict=True) if share < want]
    assert max(shares, default=0) - min(unsatisfied, default=max(shares, default=0)) <= 1


@settings(deadline=None, max_examples=12)
@given(
    workers=st.integers(1, 6),
    permits=st.integers(1, 60),
    latency=st.sampled_from([0.02, 0.3, 2.0]),
    delay=st.sampled_from([0.0, 0.05, 0.5]),
    seed=st.integers(0, 1000),
)
def test_never_more_in_flight_than_permitted(workers: int, permits: int, latency: float, delay: float, seed: int):
    """Over all workers and models of a quota, however late answers come, the limit is kept at every moment."""
    quota = Quota(name="q", max_in_flight=permits)
    agents = [model("a", 40, quota), model("b", 40, quota)]
    world = World(agents, workers, accepts, latency=latency, delay=delay, want=20, seed=seed)
    world.run(5)
    assert 0 < world.most <= permits


@settings(deadline=None, max_examples=8)
@given(
    per_minute=st.integers(20, 3000), workers=st.integers(1, 5), delay=st.sampled_from([0.0, 0.1]), seed=st.integers()
)
def test_a_rate_that_was_told_is_never_exceeded(per_minute: int, workers: int, delay: float, seed: int):
    """In any stretch of time no more requests begin than the rate allows for it, and a second's worth or three."""
    quota = Quota(name="q", requests_per_minute=per_minute)
    world = World([model("a", quota=quota), model("b", quota=quota)], workers, accepts, 0.1, delay=delay, seed=seed)
    world.run(20)
    times = [at for at, *_ in world.sent]
    rate, burst = per_minute / 60, max(3.0, per_minute / 60)
    for first in range(0, len(times), max(1, len(times) // 40)):
        for last in range(first, len(times), max(1, len(times) // 40)):
            assert last - first + 1 <= rate * (times[last] - times[first]) + burst + 1e-6
    assert len(times) >= 0.9 * rate * 20


@settings(deadline=None, max_examples=10)
@given(tokens=st.integers(50, 2000), workers=st.integers(1, 4))
def test_tokens_a_minute_are_kept(tokens: int, workers: int):
    """Once it is known what requests use, what they use stays within the rate and its burst."""
    quota = Quota(name="q", tokens_per_minute=60_000)
    world = World([model("a", quota=quota)], workers, accepts, latency=0.1, tokens=tokens)
    world.run(40)
    later = [at for at, *_ in world.sent if at >= 10]
    used = tokens * len(later) / 30
    assert 0.85 * 1000 <= used <= 1000 + max(1000, 3 * tokens) / 30


@settings(deadline=None, max_examples=8)
@given(workers=st.integers(1, 5), models=st.integers(1, 3), permits=st.integers(1, 8), seed=st.integers())
def test_nobody_starves(workers: int, models: int, permits: int, seed: int):
    """With fewer permits than askers everybody gets its turn, again and again."""
    quota = Quota(name="q", max_in_flight=permits)
    agents = [model(f"m{number}", quota=quota) for number in range(models)]
    world = World(agents, workers, accepts, latency=0.3, want=5, seed=seed)
    world.run(40)
    served = Counter((worker, name) for at, worker, name, _ in world.sent if at > 20)
    assert len(served) == workers * models


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(), workers=st.integers(2, 5))
def test_models_and_workers_share_a_rate_alike(seed: int, workers: int):
    """Two models of a quota get the same, and so do its workers, but for what chance moves."""
    quota = Quota(name="q", requests_per_minute=1200)
    world = World([model("a", quota=quota), model("b", quota=quota)], workers, accepts, latency=0.2, seed=seed)
    world.run(30)
    for of in (1, 2):
        counts = Counter(request[of] for request in world.sent if request[0] > 5)
        assert max(counts.values()) <= 1.1 * min(counts.values()) + 5


def test_the_limit_doubles_each_round_trip_at_first():
    """From a few permits, one more for each success."""
    governor = Governor([model(permits=500)])
    found = [FIRST]
    assert governor.exchange("w", {"m": hungry()}, 0)["m"].grant.in_flight == FIRST
    for trip in range(1, 6):
        done = sum(found)
        demand = hungry(peak=found[-1], in_flight=0, requests=done, succeeded=done, granted=found[-1])
        found.append(governor.exchange("w", {"m": demand}, trip)["m"].grant.in_flight)
    assert found == [16, 32, 64, 128, 256, 500]


def test_a_limit_that_is_not_used_does_not_grow():
    """Successes of few requests at a time say nothing about many."""
    governor = Governor([model(permits=500)])
    governor.exchange("w", {"m": Demand(waiting=4, wanted=4)}, 0)
    governor.exchange("w", {"m": Demand(in_flight=4, peak=4, wanted=4, requests=90, succeeded=86, granted=4)}, 1)
    assert governor.snapshot(1)["m"].permits == FIRST


def test_refusals_cut_once_while_cooling():
    """A wave of refusals halves the limit once; the next one counts when the scope has cooled down."""
    governor = Governor([model(permits=500)])
    governor.exchange("w", {"m": hungry()}, 0)
    limits: list[int] = []
    for number, now in enumerate([1.0, 1.1, 1.5, 1.0 + COOLING + 0.1], start=1):
        demand = hungry(requests=100 * number, succeeded=99 * number, refused=number, granted=16)
        governor.exchange("w", {"m": demand}, now)
        limits.append(governor.snapshot(now)["m"].permits)
    assert limits[0] == limits[1] == limits[2] > limits[3]


def test_what_a_mock_refuses_cuts_nothing():
    """Its refusals are drawn for each request, whatever the rate; only its Retry-After is honoured."""
    governor = Governor([model(permits=50, mock=True)])
    assert governor.exchange("w", {"m": hungry()}, 0)["m"].grant.in_flight == 50
    demand = hungry(requests=50, refused=40, granted=50)._replace(retry_after=3)
    grant = governor.exchange("w", {"m": demand}, 1)["m"].grant
    assert (grant.in_flight, grant.requests, grant.paused_for) == (50, 0, 3)


@given(wait=st.floats(0.01, 86_400), later=st.floats(0, 1))
def test_retry_after_pauses_everybody(wait: float, later: float):
    """All workers and models of the scope rest as long as one was told, at most ten minutes; other scopes do not."""
    quota = Quota(name="q")
    governor = Governor([model("a", quota=quota), model("b", quota=quota), model("other")])
    governor.exchange("v", {"b": hungry(), "other": hungry()}, 0)
    governor.exchange("w", {"a": hungry(requests=1, refused=1)._replace(retry_after=wait)}, 10)
    found = governor.exchange("v", {"b": hungry(), "other": hungry()}, 10 + later)
    left = max(0.0, min(wait, LONGEST_PAUSE) - later)
    assert found["b"].grant.paused_for >= left - 1e-9
    if left:
        assert found["b"].grant.requests == 0
    assert (found["other"].grant.paused_for, found["other"].grant.requests) == (0, None)


def test_a_silent_worker_gives_its_permits_back():
    """What it held is free after a while, and not before."""
    governor = Governor([model(permits=16)])
    assert governor.exchange("gone", {"m": hungry()}, 0)["m"].grant.in_flight == 16
    for now in (1.0, 8.0, SILENT):
        assert governor.exchange("here", {"m": hungry()}, now)["m"].grant.in_flight == 0
    assert governor.exchange("here", {"m": hungry()}, SILENT + 0.1)["m"].grant.in_flight == 16


def test_a_governor_that_is_started_again_gives_out_nothing_twice():
    """Until all workers have asked, nobody gets more than it says it holds."""
    governor = Governor([model(permits=16)])
    held = hungry(requests=50, succeeded=40, in_flight=10, granted=10)
    assert governor.exchange("a", {"m": held}, 0)["m"].grant.in_flight == 10
    assert governor.exchange("b", {"m": held._replace(in_flight=6, granted=6)}, 0.1)["m"].grant.in_flight == 6


@pytest.mark.parametrize("says", [1, None], ids=["Retry-After", "silent"])
@pytest.mark.parametrize("latency", [0.5, 3.0])
def test_a_rate_that_nobody_told_is_learned(says: float | None, latency: float):
    """After half a minute nearly all of the rate is used and hardly a request is refused."""
    quota = Quota(name="q")
    provider = TokenBucket(600, 10, says)
    world = World([model("a", quota=quota), model("b", quota=quota)], 4, provider.refuses, latency=latency)
    world.run(200)
    assert world.refused(30, 200) < 0.01
    assert world.accepted(30, 200) > 0.9 * 10


def test_a_minute_that_is_used_up_is_waited_for():
    """A provider that takes no more until the minute is over is hardly asked meanwhile, and its rate is kept then."""
    world = World([model("a")], 4, SlidingMinute(600, says=True).refuses, latency=0.5)
    world.run(120)
    assert world.refused(10, 120) < 0.01
    assert world.accepted(60, 120) > 0.8 * 10


@pytest.mark.parametrize("reason", ["authentication", "quota_exhausted"])
def test_a_model_that_cannot_be_asked_is_closed(reason: str):
    """Three such failures in a row, by whichever worker, close it everywhere, and no other model."""
    governor = Governor([model("a"), model("b")])
    governor.exchange("w", {"a": Demand(blocked=2, blocked_in_row=2)._replace(reason=reason)}, 0)
    assert governor.exchange("v", {"a": Demand()}, 1)["a"].closed is None
    failed = Demand(blocked=1, blocked_in_row=1)._replace(reason=reason, error=f"{reason}: no")
    found = governor.exchange("v", {"a": failed, "b": Demand()}, 2)
    assert (found["a"].closed, found["b"].closed) == (reason, None)
    assert governor.exchange("w", {"a": Demand(blocked=2, blocked_in_row=2)}, 3)["a"].closed == reason
    standing = governor.snapshot(5)["a"]
    assert (standing.closed, standing.error, standing.error_age) == (reason, f"{reason}: no", 3)


def test_a_success_between_failures_keeps_a_model_open():
    """Single refusals of a key that works are the provider's failures, and are recorded as such."""
    governor = Governor([model("a")])
    governor.exchange("w", {"a": Demand(blocked=2, blocked_in_row=2)._replace(reason="authentication")}, 0)
    again = Demand(succeeded=1, blocked=4, blocked_in_row=2)._replace(reason="authentication")
    assert governor.exchange("w", {"a": again}, 1)["a"].closed is None


def test_a_budget_that_is_spent_closes_its_model():
    """Trials begin only as the purse allows, and none once it is empty; requests of those that run may still begin."""
    purse = Purse(None, {"a": Budget(tokens=1000)}, spent={}, expected={"a": Spend(0, 100)})
    governor = Governor([model("a"), model("b")], purse)
    first = governor.exchange("w", {"a": Demand(trials_waiting=50), "b": Demand(trials_waiting=50)}, 0)
    assert 0 < (first["a"].trials or 0) < 10
    begun = first["a"].trials or 0
    spent = Demand(trials_begun=begun, trials_ended=begun, trials_waiting=40)._replace(spent=Spend(0, 1000))
    found = governor.exchange("w", {"a": spent}, 1)["a"]
    assert (found.trials, found.closed) == (0, "budget")


@settings(deadline=None, max_examples=10)
@given(seed=st.integers())
def test_the_same_demands_are_decided_alike(seed: int):
    """No clock and no chance of its own."""
    random = Random(seed)
    demands = [(f"w{random.randrange(3)}", hungry(granted=random.randrange(5))) for _ in range(30)]
    runs = [
        [governor.exchange(worker, {"m": demand}, now) for now, (worker, demand) in enumerate(demands)]
        for governor in (Governor([model()]), Governor([model()]))
    ]
    assert runs[0] == runs[1]
    assert all(before is not after for before, after in pairwise(runs))
