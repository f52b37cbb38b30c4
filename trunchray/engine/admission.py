"""The worker's side of the governor: an admission for each agent, and one loop that asks what they may let in.

    trial ─▶ begin ─▶ enter ─▶ request ─▶ leave ─▶ … ─▶ end
               │        │                    │
           trials    permits, lease       counters ──▶ demand ──exchange──▶ allowance

While there is something to give out, an admission only counts. It waits for nothing that the governor has to be asked
for.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from math import inf

from trunchray.adapters.models.base import ModelReply
from trunchray.core.agent import AgentSpec
from trunchray.core.budget import Spend, nanodollars
from trunchray.core.trial import BLOCKING
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.scope import LONGEST_PAUSE
from trunchray.errors import Interrupted, ProviderError

EVERY = 0.2
"""Seconds between two exchanges."""
WAITING = 0.1
"""Seconds between two exchanges while somebody waits."""
AT_ONCE = 0.02
"""Seconds between two exchanges when something happened that others should know, or somebody had to stop."""
DEAF = 10.0
"""Seconds without an answer after which nothing more begins: less than it takes to be given up for gone."""

Exchange = Callable[[Mapping[str, Demand]], Awaitable[Mapping[str, Allowance] | None]]
"""Asks the governor; None when it did not answer."""


class AgentAdmission:
    """What one agent may do in this worker, and how much of that it does. `wake` asks for an exchange at once."""

    def __init__(self, spec: AgentSpec, wake: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._price, self._wake, self._clock = spec.price, wake, clock
        self._longest = max(LONGEST_PAUSE, spec.pacing.deadline)
        self._permits, self._lease, self._trials = 0, 0.0, 0.0
        self._paused = False
        self._unpause: asyncio.TimerHandle | None = None
        self._entering: deque[asyncio.Future[None]] = deque()
        self._beginning: deque[asyncio.Future[int | None]] = deque()
        self._running: dict[int, float] = {}
        self._in_flight = self._peak = self._wanted = 0
        self._requests = self._succeeded = self._uncounted = self._refused = self._tokens = self._cost = 0
        self._begun = self._ended = self._blocked = self._blocked_in_row = 0
        self._pause_until = -inf
        self._reason, self._error = "", None
        self._broken: Interrupted | None = None
        self.closed: str | None = None
        """Why no trial begins any more; None while they do."""

    # Trials

    async def begin(self) -> int | None:
        """Wait until a trial may begin; gives what `end` wants to know, or None when it may not begin at all."""
        if self.closed is not None:
            return None
        if self._trials >= 1:
            return self._start()
        if self._broken:
            raise self._broken
        waiting: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._beginning.append(waiting)
        self._wake()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and (number := waiting.result()):
                self.end(number)
            raise

    def end(self, number: int) -> None:
        """The trial that `begin` gave this number ended."""
        self._ended += 1
        del self._running[number]

    def shut(self) -> None:
        """Begin no further trial."""
        self.closed = self.closed or "cancelled"
        while self._beginning:
            _resolve(self._beginning.popleft(), None)

    def _start(self) -> int:
        self._trials -= 1
        self._begun += 1
        self._running[self._begun] = self._clock()
        return self._begun

    # Requests

    async def enter(self) -> float:
        """Wait until a request may begin; gives the seconds that took.

        Raises:
            CancelledError: no request will begin any more; the trial stays owed.
        """
        if self._in_flight < self._permits and self._lease >= 1 and not self._paused and not self._entering:
            self._admit()
            return 0.0
        return await self._wait()

    def leave(self, outcome: ModelReply | ProviderError | None) -> None:
        """A request ended; None when it was cancelled."""
        self._in_flight -= 1
        if isinstance(outcome, ModelReply):
            self._succeeded += 1
            self._blocked_in_row = 0
            self._uncounted += outcome.finish_reason != "content-filter" and not outcome.usage.counted
            self._tokens += outcome.usage.total_tokens
            if self._price:
                self._cost += nanodollars(self._price.cost(outcome.usage))
        elif outcome is not None:
            self._failed(outcome)
        if self._entering:
            self._let_in()

    def _failed(self, error: ProviderError) -> None:
        self._error = f"{error.type}: {error}"
        seconds = error.retry_after or 0
        # Longer than a call may wait is as good as never: a quota of a day, say, has run out.
        reason = error.type if seconds <= self._longest else "quota_exhausted"
        if reason in BLOCKING:
            self._blocked += 1
            self._blocked_in_row += 1
            self._reason = reason
            self._wake()
        elif reason == "rate_limited" or error.retry_after is not None:
            self._refused += 1
            self._pause_until = max(self._pause_until, self._clock() + seconds)
            self._wake()

    def _admit(self) -> None:
        self._in_flight += 1
        self._lease -= 1
        self._requests += 1
        self._peak = max(self._peak, self._in_flight)

    async def _wait(self) -> float:
        if self.closed in BLOCKING or self._broken:
            raise asyncio.CancelledError
        began = self._clock()
        waiting = asyncio.get_running_loop().create_future()
        if not self._entering:
            self._wake()
        self._entering.append(waiting)
        self._wanted = max(self._wanted, self._in_flight + len(self._entering))
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self.leave(None)
            else:
                with suppress(ValueError):
                    self._entering.remove(waiting)
            raise
        return self._clock() - began

    def _let_in(self) -> None:
        while self._entering and self._in_flight < self._permits and self._lease >= 1 and not self._paused:
            waiting = self._entering.popleft()
            if not waiting.done():
                self._admit()
                waiting.set_result(None)

    # The governor

    @property
    def hopes(self) -> bool:
        """Somebody waits."""
        return bool(self._entering or self._beginning)

    def demand(self) -> Demand:
        """What has happened. Until `allow`, requests begin only where there is no lease to keep."""
        now = self._clock()
        if self._lease != inf:
            self._lease = 0
        if self._trials != inf:
            self._trials = 0  # whoever could begin has begun; the answer replaces what was left
        demand = Demand(
            in_flight=self._in_flight,
            waiting=len(self._entering),
            peak=max(self._peak, self._in_flight),
            wanted=max(self._wanted, self._peak, self._in_flight + len(self._entering)),
            granted=self._permits,
            requests=self._requests,
            succeeded=self._succeeded,
            uncounted=self._uncounted,
            refused=self._refused,
            tokens=self._tokens,
            spent=Spend(self._cost, self._tokens),
            trials_waiting=len(self._beginning),
            trials_begun=self._begun,
            trials_ended=self._ended,
            blocked=self._blocked,
            blocked_in_row=self._blocked_in_row,
            reason=self._reason,
            retry_after=max(0.0, self._pause_until - now),
            error=self._error,
            oldest=now - next(iter(self._running.values())) if self._running else None,
        )
        self._peak = self._wanted = self._in_flight
        self._error = None
        return demand

    def allow(self, allowance: Allowance, told: Demand) -> None:
        """Take in an answer to what was told."""
        grant = allowance.grant
        self._permits = grant.in_flight
        self._lease = inf if grant.requests is None else grant.requests
        self._trials = inf if allowance.trials is None else allowance.trials - (self._begun - told.trials_begun)
        self._pause(grant.paused_for)
        if allowance.closed:
            self._close(allowance.closed)
        self._let_in()
        while self._beginning and self._trials >= 1:
            waiting = self._beginning.popleft()
            if not waiting.done():
                waiting.set_result(self._start())

    def stall(self) -> None:
        """Nobody answers: begin nothing until somebody does."""
        self._permits = 0

    def fail(self, error: Interrupted) -> None:
        """The governor cannot be asked any more: who begins is told why, and no request begins, so trials stay owed."""
        self._broken = error
        for waiting in self._entering:
            waiting.cancel()
        for waiting in self._beginning:
            if not waiting.done():
                waiting.set_exception(error)

    def _pause(self, seconds: float) -> None:
        if self._unpause:
            self._unpause.cancel()
            self._unpause = None
        self._paused = seconds > 0
        if self._paused:
            self._unpause = asyncio.get_running_loop().call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._paused = False
        self._wake()
        self._let_in()

    def _close(self, reason: str) -> None:
        self.closed = self.closed or reason
        self.shut()
        while reason in BLOCKING and self._entering:
            self._entering.popleft().cancel()


class Admissions:
    """The admissions of one worker and the loop that asks for them. `exchange` is how the governor is reached."""

    def __init__(self, exchange: Exchange, clock: Callable[[], float] = time.monotonic) -> None:
        self._exchange, self._clock = exchange, clock
        self._admissions: dict[str, AgentAdmission] = {}
        self._woken = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def of(self, spec: AgentSpec) -> AgentAdmission:
        """That of an agent."""
        if spec.name not in self._admissions:
            self._admissions[spec.name] = AgentAdmission(spec, self._woken.set, self._clock)
            if self._loop is None:
                self._loop = asyncio.create_task(self._ask())
            self._woken.set()
        return self._admissions[spec.name]

    def closed(self, name: str) -> str | None:
        """Why no trial of an agent begins any more."""
        admission = self._admissions.get(name)
        return admission.closed if admission else None

    def shut(self) -> None:
        """Begin no further trial of any agent."""
        for admission in self._admissions.values():
            admission.shut()

    async def close(self) -> None:
        """Stop asking, and tell a last time what has happened: what is taken to be in flight counts as spent."""
        if self._loop:
            self._loop.cancel()
            # What broke it was told to those who waited.
            await asyncio.gather(self._loop, return_exceptions=True)
            with suppress(Exception):
                await self._exchange({name: admission.demand() for name, admission in self._admissions.items()})

    async def _ask(self) -> None:
        try:
            heard = self._clock()
            while True:
                heard = await self._once(heard)
                await self._rest()
        except Exception as error:
            reason = str(error) if isinstance(error, Interrupted) else f"{type(error).__name__}: {error}"
            for admission in self._admissions.values():
                admission.fail(Interrupted(ungoverned(reason)))
            raise

    async def _once(self, heard: float) -> float:
        """One exchange; gives when the governor was heard last."""
        self._woken.clear()
        told = {name: admission.demand() for name, admission in self._admissions.items()}
        answer = await self._exchange(told)
        if answer is None:
            if self._clock() - heard > DEAF:
                for admission in self._admissions.values():
                    admission.stall()
            return heard
        for name, allowance in answer.items():
            self._admissions[name].allow(allowance, told[name])
        return self._clock()

    async def _rest(self) -> None:
        """Until the next exchange is due."""
        await asyncio.sleep(AT_ONCE)
        wait = WAITING if any(admission.hopes for admission in self._admissions.values()) else EVERY
        with suppress(TimeoutError):
            async with asyncio.timeout(wait - AT_ONCE):
                await self._woken.wait()


def ungoverned(reason: str) -> str:
    """What to say when the governor broke down, which is a mistake of ours."""
    return (
        f"the run's limits cannot be kept any more ({reason} in its governor, a mistake in trunchray: please report "
        "it); what is finished is stored, and the same command continues"
    )


def _resolve(future: asyncio.Future[int | None], value: int | None) -> None:
    """Tell somebody who may not wait any more."""
    if not future.done():
        future.set_result(value)
