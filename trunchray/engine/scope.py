"""One quota scope: models that share a limit, and how much of it each worker holds for each of them. Pure.

    demand of a worker ─▶ learn from it ─▶ fair share of permits ─▶ fair share of requests ─▶ allowance

Theory of operation. A *permit* is one request in flight. A worker keeps its permits until it asks again, so what it may
have in flight is the largest of what it was granted, what it was granted before, and what it said is in flight; over
all workers that never exceeds the limit. A *lease* is a number of requests that may begin before it asks again; while
it asks, it begins none. What a worker does not use comes back with its next demand.

The limit grows from few permits, by one for each success, until a request is refused; a refusal halves it, and it
grows slowly from then on. It grows only while it is used. Many refusals also teach a rate (see `pace`), which is what
providers limit more often than requests in flight: once it is known, refusals correct the rate and leave the limit
alone. However many there are, they count once until the scope has cooled down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trunchray.core.agent import AgentSpec, ModelAgent
from trunchray.engine.demand import Demand, Grant
from trunchray.engine.pace import BURST, Bucket, LearnedRate
from trunchray.engine.sharing import share_out

FIRST = 16
"""Permits that a scope begins with."""
USED = 0.8
"""The share of the limit that has to be in use for it to grow."""
SLOWLY = 0.05
"""The share by which a limit that was cut grows in one round trip; at least by one permit."""
COOLING = 2.0
"""Seconds after a refusal during which further ones do not count."""
LONGEST_PAUSE = 600.0
"""Seconds of a Retry-After that are honoured."""
GUESS = 1000.0
"""Tokens of one request, until some are known."""
RECENT = 200
"""Requests that the mean of tokens looks back on."""
SETTLING = 1.0
"""Seconds within which all workers have asked a governor that was started again."""
AHEAD = 2
"""Requests by which somebody may be ahead of others when it is their turn."""
AT_LEAST = 3.0
"""Requests that may come at once at the lowest rates."""
SHORT = 1.0
"""Seconds after a worker had to wait for a request during which the rate is what limits."""

_ANY = 1 << 60
_LAST = (True, float("inf"))


@dataclass(slots=True)
class _Part:
    """One worker's part of one agent."""

    demand: Demand = field(default_factory=Demand)
    began: int = 0
    """Requests between its last two demands."""
    pressed: bool = False
    """Requests wait for permits alone: there was a lease for them."""
    granted: int = 0
    held: int = 0
    hungry_since: float = 0
    served: float = 0
    """Requests it was lent so far, weighted so that models are treated alike however many workers they have."""
    lease: int = 0
    lent: float = 0
    """Tokens, for each request of the lease."""
    claims: int = 0
    claimed: float = 0
    """Requests in flight, and the tokens they were taken to use."""

    @property
    def wants(self) -> int:
        """Requests that it can begin before it asks again, if it were only for the rate."""
        return min(self.demand.waiting + self.began, max(0, self.granted - self.demand.in_flight) + self.began)


@dataclass(slots=True)
class _Model:
    """One agent of the scope."""

    permits: int
    mean: float = GUESS
    seen: int = 0
    parts: dict[str, _Part] = field(default_factory=dict[str, _Part])

    @property
    def held(self) -> int:
        return sum(part.held for part in self.parts.values())

    def learn(self, tokens: int, succeeded: int) -> None:
        """Take in what so many requests used."""
        if succeeded:
            self.seen = min(self.seen + succeeded, max(RECENT, succeeded))
            self.mean = max(1.0, self.mean + (tokens / succeeded - self.mean) * succeeded / self.seen)


class Scope:
    """The limits of agents that share a quota, or of one that shares none. `now` counts seconds from anywhere."""

    def __init__(self, agents: Sequence[AgentSpec], now: float) -> None:
        self._models = {agent.name: _Model(agent.pacing.max_in_flight) for agent in agents}
        quota = agents[0].quota
        rates = quota or agents[0].pacing
        permits = sum(agent.pacing.max_in_flight for agent in agents)
        self._ceiling = min(permits, quota.max_in_flight or permits) if quota else permits
        # What a mock refuses is drawn for each request, whatever the rate; a Python task refuses nothing.
        self._adaptive = any(isinstance(agent, ModelAgent) and agent.mock is None for agent in agents)
        self.limit = float(min(FIRST, self._ceiling) if self._adaptive else self._ceiling)
        self._threshold = float("inf")
        self._requests = _bucket(rates.requests_per_minute, now)
        self._tokens = _bucket(rates.tokens_per_minute, now)
        self._learned = LearnedRate(now)
        self._paced: Bucket | None = None
        self._begun = self._refused = 0
        self._refilled_at = now
        self.cooling_until = self.paused_until = float("-inf")
        self._short_at = self._settled_at = float("-inf")

    def exchange(self, worker: str, demands: Mapping[str, Demand], now: float) -> dict[str, Grant]:
        """Take in what a worker says of agents of this scope, and say what it may do."""
        refused = self._refused
        succeeded = sum(self._take(worker, name, demand, now) for name, demand in demands.items())
        self._grow(succeeded, now)
        retry_after = min(LONGEST_PAUSE, max(demand.retry_after for demand in demands.values()))
        self.paused_until = max(self.paused_until, now + retry_after)
        if self._refused > refused:
            self._refuse(retry_after, now)
        self._refill(now)
        return {name: self._grant(worker, name, now) for name in demands}

    def forget(self, worker: str) -> None:
        """A worker is gone: its permits are free, and what it was lent counts as spent."""
        for model in self._models.values():
            part = model.parts.pop(worker, None)
            if part is not None:
                self._settle(part, began=part.lease)

    def rate(self, now: float) -> float | None:
        """Requests a second that are let through: told or learned; None when there is no limit."""
        rates = [self._requests.rate] if self._requests else []
        learned = self._learned.rate(now)
        return min([*rates, *([learned] if learned else [])], default=None)

    @property
    def held(self) -> int:
        """Permits that are out."""
        return sum(model.held for model in self._models.values())

    # What demands tell

    def _take(self, worker: str, name: str, demand: Demand, now: float) -> int:
        """Settle what a worker was lent; gives how many requests have succeeded since."""
        model = self._models[name]
        part = model.parts.get(worker)
        if part is None:
            part = model.parts[worker] = _Part(demand)
            if demand.granted:
                # Somebody else granted that: the governor was started again, and does not know yet who holds what.
                self._settled_at = now + SETTLING
        before, part.demand = part.demand, demand
        part.began = demand.requests - before.requests
        succeeded, tokens = demand.succeeded - before.succeeded, demand.tokens - before.tokens
        self._begun += part.began
        self._refused += demand.refused - before.refused
        unlimited = not (self._requests or self._paced or self._tokens)
        part.pressed = demand.waiting > 0 and (unlimited or part.lease > part.began)
        self._settle(part, began=part.began)
        model.learn(tokens, succeeded)
        if self._tokens and part.claims > demand.in_flight:
            returned = part.claimed * (1 - demand.in_flight / part.claims)
            part.claims, part.claimed = demand.in_flight, part.claimed - returned
            self._tokens.correct(returned - tokens)
        return succeeded

    def _settle(self, part: _Part, *, began: int) -> None:
        """What a worker did not use of its lease comes back."""
        unused = max(0, part.lease - began)
        for bucket in (self._requests, self._paced):
            if bucket:
                bucket.settle(part.lease - unused, unused)
        if self._tokens:
            self._tokens.settle((part.lease - unused) * part.lent, unused * part.lent)
            part.claims, part.claimed = part.claims + began, part.claimed + began * part.lent
        part.lease = 0

    def _grow(self, succeeded: int, now: float) -> None:
        """One permit more for each success, or slowly; only while the limit is used."""
        if now < self.cooling_until or self.limit >= self._ceiling:
            return
        if self._is_used(now):
            # A rate that is kept protects the provider better than a low limit.
            quickly = self._paced or self.limit < self._threshold
            each = 1.0 if quickly else max(1 / self.limit, SLOWLY)
            self.limit = min(self._ceiling, self.limit + each * succeeded)

    def _is_used(self, now: float) -> bool:
        """Whether more permits would be of use: nearly all are in use, or requests wait while they change hands."""
        parts = [part for model in self._models.values() for part in model.parts.values()]
        if sum(part.demand.peak for part in parts) >= USED * self.limit:
            return True
        return now > self.paused_until and any(part.pressed for part in parts)

    def _refuse(self, retry_after: float, now: float) -> None:
        """A request was refused: halve the limit, or learn the rate; once until the scope has cooled down."""
        if now < self.cooling_until or not self._adaptive:
            return
        known = self._learned.known is not None
        cut = self._learned.refused(now, self._begun, self._refused, retry_after)
        if not known:
            self.limit = self._threshold = max(1.0, self.limit / 2)
        if cut or not known:
            self.cooling_until = now + max(COOLING, retry_after)
        rate = self._learned.rate(now)
        if rate and cut:
            # A rest: what the provider lets come at once was used up just now.
            rest = self._learned.rest
            self.paused_until = max(self.paused_until, now + rest)
            self._paced = self._paced or Bucket(rate, AT_LEAST, now, strict=False)
            self._paced.level = 0

    def _refill(self, now: float) -> None:
        """What has come since the last time."""
        passed, self._refilled_at = now - self._refilled_at, now
        rate = self._learned.rate(now)
        if self._paced and rate:
            if now - self._short_at > SHORT and now > self.paused_until:
                self._learned.idle(now, passed, self._begun, self._refused)
            self._paced.set(rate, max(AT_LEAST, BURST * rate))
        if self._tokens:
            largest = AT_LEAST * max(model.mean for model in self._models.values())
            self._tokens.set(self._tokens.rate, max(largest, BURST * self._tokens.rate))
        for bucket in (self._requests, self._paced, self._tokens):
            if bucket:
                bucket.refill(now)

    # What workers get

    def _grant(self, worker: str, name: str, now: float) -> Grant:
        part = self._models[name].parts[worker]
        permits = self._permits(worker, name, part, now)
        part.held = max(permits, part.granted, part.demand.granted, part.demand.in_flight)
        part.granted = permits
        paused = max(0.0, self.paused_until - now)
        requests = self._lend(worker, name, part, now)
        return Grant(permits, 0 if paused else requests, paused)

    def _permits(self, worker: str, name: str, part: _Part, now: float) -> int:
        """Its fair share of the limit, as far as it is free."""
        if part.held or not part.demand.wanted:
            part.hungry_since = now
        model = self._models[name]
        room = min(int(self.limit) - self.held, model.permits - model.held) + part.held
        if now < self._settled_at:
            room = min(room, part.demand.granted)
        share = self._share(
            int(self.limit),
            worker,
            name,
            want=lambda part: part.demand.wanted,
            most=lambda model: model.permits,
            turn=lambda part: (part.held > 0, 0 if part.held else part.hungry_since),
        )
        return max(0, min(share, room))

    def _lend(self, worker: str, name: str, part: _Part, now: float) -> int | None:
        """Its fair share of the requests that may begin now."""
        buckets = [bucket for bucket in (self._requests, self._paced) if bucket]
        if not buckets and not self._tokens:
            return None
        there = min([bucket.level for bucket in buckets], default=float("inf"))
        mean = self._models[name].mean
        if self._tokens:
            there = min(there, self._tokens.level / mean)
        share = self._share(
            int(there + 1e-9),
            worker,
            name,
            want=lambda part: part.wants,
            most=lambda _: _ANY,
            turn=lambda part: (False, part.served),
        )
        hungry = [other for model in self._models.values() for other in model.parts.values() if other.wants]
        weight = sum(other.wants > 0 for other in self._models[name].parts.values())
        least = min((other.served for other in hungry), default=0.0)
        if not share and there >= 1 and part.wants and part.served - least < AHEAD * weight:
            share = 1  # somebody else's turn, who may be slow to ask
        if share < part.wants:
            self._short_at = now
        if share and now >= self.paused_until:
            part.lease, part.lent = share, mean
            part.served = max(part.served, least) + share * weight
            for bucket in buckets:
                bucket.lend(share)
            if self._tokens:
                self._tokens.lend(share * mean)
        return part.lease

    def _share(
        self,
        total: int,
        worker: str,
        name: str,
        *,
        want: Callable[[_Part], int],
        most: Callable[[_Model], int],
        turn: Callable[[_Part], tuple[bool, float]],
    ) -> int:
        """One worker's part of an agent's part of `total`; those whose `turn` is least come first for the rest."""
        models = sorted(self._models.items(), key=lambda item: min(map(turn, item[1].parts.values()), default=_LAST))
        parts = [sorted(model.parts.items(), key=lambda item: turn(item[1])) for _, model in models]
        wants = [[want(part) for _, part in of_one] for of_one in parts]
        shares = share_out(total, wants, [most(model) for _, model in models])
        at = next(place for place, (model, _) in enumerate(models) if model == name)
        return shares[at][next(place for place, (other, _) in enumerate(parts[at]) if other == worker)]


def _bucket(per_minute: float | None, now: float) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute / 60, max(AT_LEAST, BURST * per_minute / 60), now)
