"""A world in which time is simulated: workers that go through a governor, and a provider that limits them.

It plays the part of the worker's admissions, which wait and are woken in real time; the rules are the same.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from trunchray.core.agent import ModelAgent
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.governor import Governor


class TokenBucket:
    """Takes `per_minute` requests a minute, at most `burst` at once."""

    def __init__(self, per_minute: float, burst: float, retry_after: float | None) -> None:
        self._rate, self._burst, self._wait = per_minute / 60, burst, retry_after
        self._level, self._at = burst, 0.0

    def refuses(self, now: float) -> tuple[bool, float | None]:
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return True, self._wait
        self._level -= 1
        return False, None


class SlidingMinute:
    """Takes `per_minute` requests in any 60 seconds, and names the time until the next one, when it says."""

    def __init__(self, per_minute: int, *, says: bool) -> None:
        self._most, self._says = per_minute, says
        self._taken: deque[float] = deque()

    def refuses(self, now: float) -> tuple[bool, float | None]:
        while self._taken and self._taken[0] <= now - 60:
            self._taken.popleft()
        if len(self._taken) >= self._most:
            return True, self._taken[0] + 60 - now if self._says else None
        self._taken.append(now)
        return False, None


class FixedMinute:
    """Takes `per_minute` requests in each minute by the clock."""

    def __init__(self, per_minute: int, *, says: bool) -> None:
        self._most, self._says = per_minute, says
        self._minute, self._taken = -1, 0

    def refuses(self, now: float) -> tuple[bool, float | None]:
        if int(now // 60) != self._minute:
            self._minute, self._taken = int(now // 60), 0
        if self._taken >= self._most:
            return True, 60 - now % 60 if self._says else None
        self._taken += 1
        return False, None


class AtOnce:
    """Takes `most` requests at a time."""

    def __init__(self, most: int) -> None:
        self.most = most

    def refuses(self, now: float, in_flight: int = 0) -> tuple[bool, float | None]:
        return in_flight > self.most, None


class ByChance:
    """Refuses a share of all requests, whatever their rate."""

    def __init__(self, share: float, random: Random) -> None:
        self._share, self._random = share, random

    def refuses(self, now: float) -> tuple[bool, float | None]:
        return self._random.random() < self._share, None


@dataclass
class Desk:
    """One worker's part of one agent, as the worker sees it."""

    want: int
    permits: int = 0
    lease: float = 0
    paused_until: float = 0
    in_flight: int = 0
    waiting: int = 0
    requests: int = 0
    succeeded: int = 0
    refused: int = 0
    tokens: int = 0
    peak: int = 0
    told_pause: float = 0
    told: Demand = field(default_factory=Demand)


@dataclass
class World:
    """Workers with `want` trials each in flight, a request taking `latency` seconds and a refusal a tenth of that."""

    agents: Sequence[ModelAgent]
    workers: int
    refuses: Callable[[float], tuple[bool, float | None]] | AtOnce
    latency: float = 0.5
    want: int = 64
    every: float = 0.2
    delay: float = 0.01
    tokens: int = 100
    seed: int = 0
    governor: Governor = field(init=False)
    now: float = 0
    sent: list[tuple[float, str, str, bool]] = field(default_factory=list)
    """Time, worker, agent and whether it was refused, of every request."""
    most: int = 0
    flying: int = 0

    def __post_init__(self) -> None:
        self.governor = Governor(self.agents)
        self._random = Random(self.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self.desks = {
            f"w{w}": {agent.name: Desk(self.want, waiting=self.want) for agent in self.agents}
            for w in range(self.workers)
        }
        self._due: dict[str, float] = {}
        self._asking: set[str] = set()
        for place, worker in enumerate(self.desks):
            self._at(place * self.every / self.workers, lambda worker=worker: self._ask(worker))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, happens = heapq.heappop(self._events)
            happens()
        self.now = until

    def refused(self, since: float, until: float) -> float:
        """The share of requests that were refused."""
        found = [bad for at, _, _, bad in self.sent if since <= at < until]
        return sum(found) / max(1, len(found))

    def accepted(self, since: float, until: float) -> float:
        """Requests a second that were not."""
        return sum(not bad for at, _, _, bad in self.sent if since <= at < until) / (until - since)

    def _at(self, time: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._number), happens))

    def _ask(self, worker: str) -> None:
        if worker in self._asking:
            return
        self._asking.add(worker)
        told: dict[str, Demand] = {}
        for name, desk in self.desks[worker].items():
            if desk.lease != float("inf"):
                desk.lease = 0
            told[name] = Demand(
                in_flight=desk.in_flight,
                waiting=desk.waiting,
                peak=desk.peak,
                wanted=desk.in_flight + desk.waiting,
                granted=desk.permits,
                requests=desk.requests,
                succeeded=desk.succeeded,
                refused=desk.refused,
                tokens=desk.tokens,
                retry_after=max(0.0, desk.told_pause - self.now),
            )
            desk.peak = desk.in_flight
        self._at(self.now + self.delay / 2, lambda: self._decide(worker, told))

    def _decide(self, worker: str, told: dict[str, Demand]) -> None:
        answer = self.governor.exchange(worker, told, self.now)
        self._at(self.now + self.delay / 2, lambda: self._answered(worker, answer))

    def _answered(self, worker: str, answer: dict[str, Allowance]) -> None:
        self._asking.discard(worker)
        waiting = False
        for name, allowance in answer.items():
            desk, grant = self.desks[worker][name], allowance.grant
            desk.permits = grant.in_flight
            desk.lease = float("inf") if grant.requests is None else grant.requests
            desk.paused_until = self.now + grant.paused_for
            self._let_in(worker, name)
            waiting |= desk.waiting > 0
        wait = self.every / 2 if waiting else self.every
        due = self._due[worker] = self.now + wait
        self._at(due, lambda: self._ask(worker) if self._due[worker] <= self.now else None)

    def _let_in(self, worker: str, name: str) -> None:
        desk = self.desks[worker][name]
        while desk.waiting and desk.in_flight < desk.permits and desk.lease >= 1 and self.now >= desk.paused_until:
            desk.waiting -= 1
            desk.lease -= 1
            desk.in_flight += 1
            desk.requests += 1
            desk.peak = max(desk.peak, desk.in_flight)
            self._send(worker, name)

    def _send(self, worker: str, name: str) -> None:
        self.flying += 1
        self.most = max(self.most, self.flying)
        if isinstance(self.refuses, AtOnce):
            bad, wait = self.refuses.refuses(self.now, self.flying)
        else:
            bad, wait = self.refuses(self.now)
        self.sent.append((self.now, worker, name, bad))
        took = self.latency * (0.1 if bad else self._random.uniform(0.8, 1.2))
        self._at(self.now + took, lambda: self._ended(worker, name, bad, wait))

    def _ended(self, worker: str, name: str, bad: bool, wait: float | None) -> None:
        desk = self.desks[worker][name]
        self.flying -= 1
        desk.in_flight -= 1
        if not bad:
            desk.succeeded += 1
            desk.tokens += self.tokens
            desk.waiting += 1
        else:
            desk.refused += 1
            desk.told_pause = max(desk.told_pause, self.now + (wait or 0))
            back = max(wait or 0, self._random.uniform(0, 0.5))
            self._at(self.now + back, lambda: self._again(worker, name))
            self._at(self.now + 0.02, lambda: self._ask(worker))
        self._let_in(worker, name)

    def _again(self, worker: str, name: str) -> None:
        self.desks[worker][name].waiting += 1
        self._let_in(worker, name)
