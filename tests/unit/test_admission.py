"""The admissions of a worker; the governor is a function of the test, and nothing waits for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from trunchray.adapters.models.base import ModelReply
from trunchray.core.agent import ModelAgent, Price
from trunchray.core.budget import Spend
from trunchray.core.trial import Usage
from trunchray.engine.admission import Admissions, AgentAdmission
from trunchray.engine.demand import Allowance, Demand, Grant
from trunchray.errors import Interrupted, ProviderError

SPEC = ModelAgent(name="m", model="mock/echo", price=Price(input=1, output=2))
REPLY = ModelReply("x", usage=Usage(input_tokens=10, output_tokens=5))


def allowance(
    permits: int = 10,
    requests: int | None = None,
    *,
    pause: float = 0,
    trials: int | None = None,
    closed: str | None = None,
) -> Allowance:
    return Allowance(Grant(permits, requests, pause), trials, closed)


class World:
    """An admission, the time, and how often it asked to be heard."""

    def __init__(self) -> None:
        self.now = 100.0
        self.woken = 0
        self.admission = AgentAdmission(SPEC, self._wake, lambda: self.now)

    def _wake(self) -> None:
        self.woken += 1

    def exchange(self, answer: Allowance) -> Demand:
        told = self.admission.demand()
        self.admission.allow(answer, told)
        return told

    async def enter(self) -> asyncio.Task[float]:
        """A request that is let in, or waits."""
        task = asyncio.create_task(self.admission.enter())
        await settle()
        return task


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_nothing_begins_before_the_governor_was_heard() -> None:
    """Requests and trials wait, and ask for an answer at once."""
    world = World()
    entering, beginning = await world.enter(), asyncio.create_task(world.admission.begin())
    await settle()
    assert not entering.done()
    assert not beginning.done()
    assert world.woken == 2
    told = world.exchange(allowance())
    assert (told.waiting, told.wanted, told.trials_waiting) == (1, 1, 1)
    world.now += 3
    assert await entering == 3
    assert await beginning == 1


async def test_permits_are_handed_on_in_order() -> None:
    """No more are in flight than permitted; who came first goes first."""
    world = World()
    world.exchange(allowance(permits=2))
    tasks = [await world.enter() for _ in range(4)]
    assert [task.done() for task in tasks] == [True, True, False, False]
    world.admission.leave(REPLY)
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False]
    told = world.exchange(allowance(permits=2))
    assert (told.in_flight, told.waiting, told.peak, told.wanted, told.granted) == (2, 1, 2, 4, 2)
    tasks[3].cancel()


async def test_a_lease_is_used_up_and_given_back_while_asking() -> None:
    """Only so many requests begin; from the question until its answer, none does."""
    world = World()
    world.exchange(allowance(requests=2))
    tasks = [await world.enter() for _ in range(3)]
    assert [task.done() for task in tasks] == [True, True, False]
    world.exchange(allowance(requests=3))
    await settle()
    assert tasks[2].done()
    told = world.admission.demand()
    late = await world.enter()
    assert not late.done()
    world.admission.allow(allowance(requests=1), told)
    assert await late == 0


async def test_a_pause_holds_everybody_back() -> None:
    """Until it is over nothing begins, whatever is permitted."""
    world = World()
    world.exchange(allowance(pause=3600))
    waiting = await world.enter()
    assert not waiting.done()
    world.exchange(allowance())
    await settle()
    assert waiting.done()


async def test_outcomes_are_counted() -> None:
    """Answers with what they cost, refusals with their Retry-After, failures that no repetition mends in a row."""
    world = World()
    world.exchange(allowance())
    outcomes = [
        REPLY,
        None,
        ProviderError("slow down", type="rate_limited", retryable=True, retry_after=7),
        ProviderError("busy", type="server_error", retryable=True, retry_after=5),
        ProviderError("no", type="authentication"),
        ProviderError("no", type="authentication"),
    ]
    for outcome in outcomes:
        await world.admission.enter()
        world.admission.leave(outcome)
    told = world.admission.demand()
    assert (told.requests, told.succeeded, told.refused, told.in_flight) == (6, 1, 2, 0)
    assert (told.tokens, told.spent) == (15, Spend(20_000, 15))
    assert (told.retry_after, told.blocked, told.blocked_in_row, told.reason) == (7, 2, 2, "authentication")
    assert told.error == "authentication: no"
    assert world.admission.demand().error is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderError("no", type="authentication", retry_after=30), "authentication"),
        (ProviderError("no", type="quota_exhausted", retry_after=30), "quota_exhausted"),
        (ProviderError("tomorrow", type="rate_limited", retryable=True, retry_after=86_400), "quota_exhausted"),
        (ProviderError("tomorrow", type="server_error", retryable=True, retry_after=86_400), "quota_exhausted"),
    ],
)
async def test_what_waiting_does_not_mend_is_no_refusal_for_the_rate(error: ProviderError, reason: str) -> None:
    """A broken key with a Retry-After, or one longer than a call may wait, counts toward closing and pauses nothing."""
    world = World()
    world.exchange(allowance())
    await world.admission.enter()
    world.admission.leave(error)
    told = world.admission.demand()
    assert (told.refused, told.retry_after, told.blocked, told.reason) == (0, 0, 1, reason)


async def test_trials_begin_as_the_budget_allows() -> None:
    """What was allowed and not used is replaced, not added to."""
    world = World()
    tasks = [asyncio.create_task(world.admission.begin()) for _ in range(3)]
    await settle()
    world.exchange(allowance(trials=2))
    await settle()
    assert [task.done() for task in tasks] == [True, True, False]
    world.now += 4
    told = world.exchange(allowance(trials=0))
    assert (told.trials_waiting, told.trials_begun, told.trials_ended, told.oldest) == (1, 2, 0, 4)
    world.admission.end(1)
    world.admission.end(2)
    told = world.exchange(allowance(trials=0, closed="budget"))
    assert (told.trials_ended, told.oldest) == (2, None)
    assert await tasks[2] is None
    assert await world.admission.begin() is None
    assert world.admission.closed == "budget"


async def test_a_closed_budget_lets_trials_finish_and_a_refused_key_does_not() -> None:
    """Requests of trials in flight may begin while nothing else may; but nobody answers who refuses the key."""
    world = World()
    world.exchange(allowance(permits=1))
    first, second = await world.enter(), await world.enter()
    world.exchange(allowance(permits=2, closed="budget"))
    await settle()
    assert first.done()
    assert second.done()
    third = await world.enter()
    world.exchange(allowance(permits=2, closed="authentication"))
    with pytest.raises(asyncio.CancelledError):
        await third


async def test_who_stops_waiting_leaves_no_trace() -> None:
    """A cancelled request or trial gives back what it was just given."""
    world = World()
    world.exchange(allowance(permits=0, trials=0))
    entering, beginning = await world.enter(), asyncio.create_task(world.admission.begin())
    await settle()
    world.exchange(allowance(permits=1, trials=1))
    entering.cancel()
    beginning.cancel()
    await settle()
    told = world.admission.demand()
    assert (told.in_flight, told.waiting, told.trials_begun - told.trials_ended) == (0, 0, 0)


async def test_the_loop_asks_for_all_agents() -> None:
    """Demands of all agents go out together, and answers reach those who wait."""
    asked: list[Mapping[str, Demand]] = []

    async def governor(demands: Mapping[str, Demand]) -> Mapping[str, Allowance]:
        asked.append(demands)
        return dict.fromkeys(demands, allowance())

    admissions = Admissions(governor)
    one, two = admissions.of(SPEC), admissions.of(SPEC.model_copy(update={"name": "n"}))
    assert admissions.of(SPEC) is one
    await asyncio.gather(one.enter(), two.enter())
    await admissions.close()
    assert asked[0].keys() == {"m", "n"}


async def test_a_governor_that_breaks_down_is_not_waited_for() -> None:
    """Nothing more begins: trials in flight stay owed rather than failed, and further ones are told what broke."""

    async def governor(_demands: Mapping[str, Demand]) -> Mapping[str, Allowance]:
        raise KeyError("ours")

    admissions = Admissions(governor)
    for _ in range(2):
        with pytest.raises(asyncio.CancelledError):
            await admissions.of(SPEC).enter()
    with pytest.raises(Interrupted, match="KeyError: 'ours' in its governor"):
        await admissions.of(SPEC).begin()
    await admissions.close()
