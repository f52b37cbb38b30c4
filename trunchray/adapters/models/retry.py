"""One model call with all its tries: when to try again, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple, Protocol

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from trunchray.adapters.models.base import ModelClient, ModelReply, ModelRequest
from trunchray.core.agent import Pacing
from trunchray.errors import ProviderError

BASE = 0.5
"""Seconds: the longest wait before the first retry; it doubles with each."""

CAP = 60.0
"""Seconds: the longest wait that we choose ourselves. A provider may ask for more."""


class Admission(Protocol):
    """Who says when a try may begin, and is told what came of it."""

    async def enter(self) -> float:
        """Wait until a try may begin; gives the seconds that took. Every entry is followed by one `leave`."""
        ...

    def leave(self, outcome: ModelReply | ProviderError | None) -> None:
        """The try ended; None when it was cancelled."""
        ...


class Waits(NamedTuple):
    """How time passes between tries: `clock` counts seconds, `uniform(a, b)` draws the jitter."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform


class Open:
    """Everybody may enter at any time."""

    async def enter(self) -> float:
        """No wait."""
        return 0.0

    def leave(self, outcome: ModelReply | ProviderError | None) -> None:
        """Nobody wants to know."""


WALL = "wall_limit"
"""The type of the error that ends a call because its trial has taken as long as it may."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A reply and what it took: tries after the first, and seconds spent waiting for or between tries.

    `cached` means that it took nothing: the cache knew it.
    """

    reply: ModelReply
    retries: int = 0
    waited: float = 0
    cached: bool = False


async def complete_with_retries(
    client: ModelClient,
    request: ModelRequest,
    pacing: Pacing,
    *,
    admission: Admission | None = None,
    wall: float = inf,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    uniform: Callable[[float, float], float],
) -> Completed:
    """Ask until there is a reply, at most `pacing.max_retries` times more and never past `pacing.deadline`.

    Waits are exponential with full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)
    and never shorter than the provider asked for. The time spent waiting for admission counts toward no deadline, and
    `wall` bounds the seconds that tries take together: then a try is cut short, and its error, of type `WALL`, is the
    last; but where tries had failed before, they have taken the time, and it is of the type of theirs. `clock` is
    monotonic, in seconds; `uniform(a, b)` draws the jitter.

    Raises:
        ProviderError: the last one, when it is not retryable or nothing is left; it says how many tries were made.
    """
    started = clock()
    calls = _Tries(client, request, pacing, admission or Open(), clock, started + pacing.deadline, wall)
    try:
        # The first try stays outside of tenacity, which costs more than all the rest of a call that succeeds.
        reply = await calls.once(request)
        return Completed(reply, waited=calls.waited)
    except ProviderError as error:
        if not error.retryable or calls.wall <= 0:
            raise
        calls.first = error
    retrying = AsyncRetrying(
        sleep=sleep,
        wait=_Wait(uniform),
        stop=calls.over,
        retry=retry_if_exception(lambda e: isinstance(e, ProviderError) and e.retryable),
        reraise=True,
    )
    try:
        reply = await retrying(calls.again)
    except ProviderError as error:
        if error.type == WALL and calls.last:
            raise ProviderError(f"{error}; before that: {calls.last}", type=calls.last.type, retryable=True) from error
        raise _given_up(error, calls.made, clock() - started) from error
    return Completed(reply, calls.made - 1, retrying.statistics["idle_for"] + calls.waited)


class _Wait:
    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self._uniform = uniform

    def __call__(self, state: RetryCallState) -> float:
        jitter = self._uniform(0, min(CAP, BASE * 2 ** min(state.attempt_number - 1, 30)))
        asked = _error(state).retry_after
        # Everybody who was refused is told the same time: a little jitter on top keeps them from coming back as one.
        return jitter if asked is None else max(jitter, asked + min(jitter, BASE))


@dataclass(slots=True)
class _Tries:
    """The tries of one call.

    `first` is what the first one failed with, until it has been dealt with; `last` what the last one did that the wall
    did not cut short.
    """

    client: ModelClient
    request: ModelRequest
    pacing: Pacing
    admission: Admission
    clock: Callable[[], float]
    deadline: float
    wall: float
    first: ProviderError | None = None
    last: ProviderError | None = None
    made: int = 1
    waited: float = 0
    """Seconds spent waiting for admission."""

    async def again(self) -> ModelReply:
        first, self.first = self.first, None
        if first is not None:
            raise first
        request = replace(self.request, retry=self.made)
        self.made += 1
        return await self.once(request)

    async def once(self, request: ModelRequest) -> ModelReply:
        """One try, as soon as it is admitted."""
        waited = await self.admission.enter()
        outcome: ModelReply | ProviderError | None = None
        try:
            self.waited += waited
            self.deadline += waited
            outcome = reply = await self._timed(request)
        except ProviderError as error:
            outcome = error
            self.last = self.last if error.type == WALL else error
            raise
        finally:
            self.admission.leave(outcome)
        return reply

    def over(self, state: RetryCallState) -> bool:
        """No try is left, or none would begin before the deadline."""
        if self.made > self.pacing.max_retries or self.wall <= 0 or _error(state).type == WALL:
            return True
        return self.clock() + state.upcoming_sleep >= self.deadline

    async def _timed(self, request: ModelRequest) -> ModelReply:
        began = self.clock()
        left = min(self.deadline - began, self.wall)
        try:
            if left >= self.pacing.timeout:
                return await self.client.complete(request)
            async with asyncio.timeout(left):
                return await self.client.complete(request)
        except TimeoutError as e:
            if self.wall <= left:
                message, kind = "the trial has taken as long as limits.wall allows", WALL
            else:
                message, kind = f"the deadline of {self.pacing.deadline:g} s for one model call has passed", "timeout"
            raise ProviderError(message, type=kind, retryable=True) from e
        finally:
            self.wall -= self.clock() - began


def _error(state: RetryCallState) -> ProviderError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, ProviderError):
        raise TypeError(f"only provider errors are retried, not {error!r}")
    return error


def _given_up(error: ProviderError, made: int, seconds: float) -> ProviderError:
    return ProviderError(
        f"{error} (gave up after {made} {'try' if made == 1 else 'tries'} in {seconds:.1f} s)",
        type=error.type,
        retryable=error.retryable,
        retry_after=error.retry_after,
    )
