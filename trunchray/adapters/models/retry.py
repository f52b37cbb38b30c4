"""One model call with all its tries: when to try again, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from trunchray.adapters.models.base import ModelClient, ModelReply, ModelRequest
from trunchray.core.agent import Pacing
from trunchray.errors import ProviderError

BASE = 0.5
"""Seconds: the longest wait before the first retry; it doubles with each."""

CAP = 60.0
"""Seconds: the longest wait that we choose ourselves. A provider may ask for more."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A reply and what it took: tries after the first, and seconds spent waiting between tries.

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
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    uniform: Callable[[float, float], float],
) -> Completed:
    """Ask until there is a reply, at most `pacing.max_retries` times more and never past `pacing.deadline`.

    Waits are exponential with full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)
    and never shorter than the provider asked for. `clock` is monotonic, in seconds; `uniform(a, b)` draws the jitter.

    Raises:
        ProviderError: the last one, when it is not retryable or nothing is left; it says how many tries were made.
    """
    started = clock()
    try:
        # The first try stays outside of tenacity, which costs more than all the rest of a call that succeeds.
        return Completed(await _try(client, request, pacing, pacing.deadline))
    except ProviderError as error:
        if not error.retryable:
            raise
        calls = _Tries(client, request, pacing, started + pacing.deadline, clock, error)
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
        raise _given_up(error, calls.made, clock() - started) from error
    return Completed(reply, calls.made - 1, retrying.statistics["idle_for"])


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
    """The tries of one call. The first has been made already and failed with `first`."""

    client: ModelClient
    request: ModelRequest
    pacing: Pacing
    deadline: float
    clock: Callable[[], float]
    first: ProviderError | None
    made: int = 1

    async def again(self) -> ModelReply:
        first, self.first = self.first, None
        if first is not None:
            raise first
        request = replace(self.request, retry=self.made)
        self.made += 1
        return await _try(self.client, request, self.pacing, self.deadline - self.clock())

    def over(self, state: RetryCallState) -> bool:
        """No try is left, or none would begin before the deadline."""
        return self.made > self.pacing.max_retries or self.clock() + state.upcoming_sleep >= self.deadline


async def _try(client: ModelClient, request: ModelRequest, pacing: Pacing, left: float) -> ModelReply:
    if left >= pacing.timeout:
        return await client.complete(request)
    try:
        async with asyncio.timeout(left):
            return await client.complete(request)
    except TimeoutError as e:
        message = f"the deadline of {pacing.deadline:g} s for one model call has passed"
        raise ProviderError(message, type="timeout", retryable=True) from e


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
