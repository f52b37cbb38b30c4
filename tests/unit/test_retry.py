"""Tries, waits and giving up; no test waits for anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.retry import CAP, Completed, Open, complete_with_retries
from trunchray.core.agent import Pacing
from trunchray.errors import ProviderError

REQUEST = ModelRequest(({"role": "user", "content": "x"},), 16, "case-1")


def error(type: str = "server_error", *, retryable: bool = True, retry_after: float | None = None) -> ProviderError:
    return ProviderError(f"{type}!", type=type, retryable=retryable, retry_after=retry_after)


@dataclass
class World:
    """A provider that plays a list of outcomes, and the time around it. Each try takes `seconds`."""

    outcomes: Sequence[ProviderError | str]
    seconds: float = 0
    share: float = 1
    now: float = 100
    slept: list[float] = field(default_factory=list)
    ceilings: list[float] = field(default_factory=list)
    seen: list[ModelRequest] = field(default_factory=list)

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.seen.append(request)
        self.now += self.seconds
        outcome = self.outcomes[min(len(self.seen), len(self.outcomes)) - 1]
        if isinstance(outcome, ProviderError):
            raise outcome
        return ModelReply(outcome)

    async def close(self) -> None: ...

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def uniform(self, low: float, high: float) -> float:
        assert low == 0
        self.ceilings.append(high)
        return high * self.share

    async def call(self, pacing: Pacing | None = None) -> Completed:
        return await complete_with_retries(
            self,
            REQUEST,
            pacing or Pacing(),
            admission=Open(),
            clock=lambda: self.now,
            sleep=self.sleep,
            uniform=self.uniform,
        )


async def test_a_call_that_succeeds_waits_for_nothing() -> None:
    """The first reply is the result."""
    world = World(["ok"])
    assert await world.call() == Completed(ModelReply("ok"), retries=0, waited=0)
    assert world.seen == [REQUEST]


async def test_retryable_errors_are_tried_again() -> None:
    """Every try knows its number, and the result says how many there were and how long they waited."""
    world = World([error(), error("timeout"), "ok"], share=0.5)
    assert await world.call() == Completed(ModelReply("ok"), retries=2, waited=0.75)
    assert [request.retry for request in world.seen] == [0, 1, 2]
    assert world.slept == [0.25, 0.5]


async def test_waits_double_up_to_the_cap() -> None:
    """Full jitter: anything from nothing to a ceiling that doubles and stops at 60 seconds."""
    world = World([error()], share=0)
    with pytest.raises(ProviderError, match="gave up after 11 tries"):
        await world.call(Pacing(max_retries=10))
    assert world.ceilings[:10] == [0.5, 1, 2, 4, 8, 16, 32, CAP, CAP, CAP]
    assert world.slept == [0] * 10


@pytest.mark.parametrize(("asked", "share", "waited"), [(10, 1, 10.5), (10, 0, 10), (0, 1, 0.5), (90, 0.5, 90.25)])
async def test_retry_after_is_honoured(asked: float, share: float, waited: float) -> None:
    """Never less than the provider asked for, also beyond our own cap; jitter keeps callers apart."""
    world = World([error("rate_limited", retry_after=asked), "ok"], share=share)
    assert (await world.call()).waited == waited


async def test_other_errors_are_raised_at_once() -> None:
    """What cannot end differently is not tried again, and its message is left alone."""
    world = World([error("authentication", retryable=False), "ok"])
    with pytest.raises(ProviderError) as caught:
        await world.call()
    assert (str(caught.value), len(world.seen)) == ("authentication!", 1)


async def test_a_retry_that_meets_a_final_error_ends_the_call() -> None:
    """The last error is the one that is raised, with the number of tries."""
    world = World([error(), error("bad_request", retryable=False), "ok"])
    with pytest.raises(ProviderError, match=r"bad_request! \(gave up after 2 tries in 0\.5 s\)") as caught:
        await world.call()
    assert (caught.value.type, caught.value.retryable) == ("bad_request", False)


async def test_giving_up_keeps_the_last_error() -> None:
    """Type, retryability and Retry-After of the last error survive."""
    world = World([error(), error("rate_limited", retry_after=3)], share=0)
    with pytest.raises(ProviderError, match=r"rate_limited! \(gave up after 3 tries in 3\.0 s\)") as caught:
        await world.call(Pacing(max_retries=2))
    assert (caught.value.type, caught.value.retryable, caught.value.retry_after) == ("rate_limited", True, 3)


async def test_no_retries_means_one_try() -> None:
    """`max_retries: 0` gives up after the first try, without a wait."""
    world = World([error()])
    with pytest.raises(ProviderError, match="gave up after 1 try in"):
        await world.call(Pacing(max_retries=0))
    assert (len(world.seen), world.slept) == (1, [])


async def test_no_try_begins_after_the_deadline() -> None:
    """A wait that would end past the deadline is not begun."""
    world = World([error()], seconds=20)
    with pytest.raises(ProviderError, match="gave up after 3 tries in 61"):
        await world.call(Pacing(max_retries=50, timeout=20, deadline=62))
    assert world.slept == [0.5, 1]


async def test_waiting_longer_than_the_deadline_is_refused_at_once() -> None:
    """A provider that asks for a day is not waited for."""
    world = World([error("rate_limited", retry_after=86_400)])
    with pytest.raises(ProviderError, match="gave up after 1 try"):
        await world.call()
    assert world.slept == []


async def test_a_try_is_cut_at_the_deadline() -> None:
    """When less than a request's timeout is left, the request gets what is left."""

    class Hanging(World):
        async def complete(self, request: ModelRequest) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(ProviderError, match=r"deadline of 0\.001 s") as caught:
        await Hanging([]).call(Pacing(deadline=0.001))
    assert (caught.value.type, caught.value.retryable) == ("timeout", True)


async def test_cancelling_ends_a_call_between_tries() -> None:
    """A cancelled trial neither retries nor turns into an error of the provider."""
    world = World([error()])
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(
        complete_with_retries(
            world,
            REQUEST,
            Pacing(),
            admission=Open(),
            clock=lambda: world.now,
            sleep=sleep,
            uniform=world.uniform,
        )
    )
    await waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(world.seen) == 1


async def test_cancelling_ends_a_retry_in_flight() -> None:
    """Cancellation passes through the retrying of a request that hangs."""

    class Hanging(World):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if request.retry:
                hanging.set()
                await asyncio.Event().wait()
            return await super().complete(request)

    hanging = asyncio.Event()
    call = asyncio.create_task(Hanging([error()]).call())
    await hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_errors_of_our_own_are_not_retried() -> None:
    """Anything but a provider error passes through unchanged."""

    class Broken(World):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if request.retry:
                raise KeyError("ours")
            return await super().complete(request)

    with pytest.raises(KeyError, match="ours"):
        await Broken([error()]).call()
