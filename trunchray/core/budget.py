"""What a run may cost, and how many trials may still begin: the decision alone, without clock, store or network.

    allow ──▶ granted ──begun──▶ in flight ──ended──▶ spent
                 └────── reserved ───────┘

Theory of operation. What trials cost is known once they have ended, so trials that were granted and have not ended are
reserved: each at the mean cost of its agent's trials so far, and several of them with two standard deviations of their
sum on top. A further trial is granted while spent + reserved stays within every budget that applies to it. So a run
passes its budget only by as much as the trials in flight, in the end a single one, happen to cost more than that, and
by nothing when all trials cost the same. Until trials have ended, a first guess stands in for their mean; because it
may be wrong, few are granted, and when they are several, for each as much as it could cost at most is reserved. One
at a time, of whichever agent, counts as guessed: so no agent whose cost is known keeps the others from ever beginning.

Whoever keeps a purse may be killed, and what was in flight or not yet stored is then known to nobody. So a purse may be
held to levels that were written down before: nothing is granted that would take an agent beyond its level, and the next
purse takes the last level for spent. A level is a little ahead of what is spent and reserved: by a few trials, or by a
twentieth of what the budget has left. That is what a kill may cost the run at most in trials that could have been paid.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, inf, sqrt
from typing import Literal

from pydantic import Field

from trunchray.core.frozen import Frozen

NANO = 10**9
"""Costs are added up as whole nano-dollars: whole numbers have the same sum in any order.

One nano-dollar is a token at 0.001 US dollars per million. Rounding moves the sum of a million rows by at most 0.0005
dollars, and a signed 64-bit number holds nine thousand million dollars.
"""

UNKNOWN = 16
"""Trials of an agent that may be in flight before the cost of one is known; two more for each that is."""
MARGIN = 2.0
"""Standard deviations of the cost of what is in flight that are reserved on top of its mean."""
AHEAD = 0.05
"""The share of a budget's room by which a level is ahead, all agents together."""
FEW_REPORTS = 8
"""Reports with ended trials below which their spread is not trusted; a trial's is then taken to be its mean."""

Reason = Literal["budget", "pilot"]


@dataclass(frozen=True, slots=True)
class Spend:
    """What was paid: `cost` in nano-dollars, 0 where the price is unknown, and tokens read and written."""

    cost: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, usd: float | None, tokens: int) -> Spend:
        """US dollars, None when the price is unknown, to the nearest nano-dollar."""
        return cls(nanodollars(usd), tokens)

    @property
    def usd(self) -> float:
        return self.cost / NANO

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.cost + other.cost, self.tokens + other.tokens)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.cost - other.cost, self.tokens - other.tokens)

    @property
    def measures(self) -> tuple[int, int]:
        """As numbers of nano-dollars and of tokens."""
        return self.cost, self.tokens

    def most(self, other: Spend) -> Spend:
        """The greater one in each measure."""
        return Spend(max(self.cost, other.cost), max(self.tokens, other.tokens))

    def least(self, other: Spend) -> Spend:
        """The lesser one in each measure."""
        return Spend(min(self.cost, other.cost), min(self.tokens, other.tokens))

    def times(self, share: float) -> Spend:
        """So many times as much, to the nearest unit."""
        return Spend(round(self.cost * share), round(self.tokens * share))


def nanodollars(usd: float | None) -> int:
    """US dollars as whole nano-dollars; an unknown cost counts as none."""
    return round((usd or 0) * NANO)


def total(spends: Iterable[Spend]) -> Spend:
    return sum(spends, Spend())


Accounts = Mapping[tuple[str, str], tuple[Spend, int, int]]
"""By worker and agent: what was spent, and how many trials have begun and ended."""


class Budget(Frozen):
    """The most that may be spent; None is without limit."""

    usd: float | None = Field(default=None, gt=0, le=1e9)
    tokens: int | None = Field(default=None, gt=0, le=2**53)

    def limits(self) -> list[tuple[int, int]]:
        """The measures that are limited: 0 for nano-dollars or 1 for tokens, and the limit."""
        found = ((0, None if self.usd is None else nanodollars(self.usd)), (1, self.tokens))
        return [(measure, limit) for measure, limit in found if limit is not None]


@dataclass(slots=True)
class _Costs:
    """Mean and variance of what one trial costs in one measure, from sums over several; begins with a guess.

    The guess rests on `measured` trials and weighs as much as they do, at least as one. When it rests on none, a trial
    may turn out to cost up to `most`, and so may all of them.
    """

    guess: float
    most: float
    measured: int = 0
    trials: int = 0
    spent: float = 0
    squares: float = 0
    reports: int = 0

    def add(self, spent: float, trials: int) -> None:
        self.trials += trials
        self.spent += spent
        self.squares += spent * spent / trials
        self.reports += 1

    @property
    def mean(self) -> float:
        weight = max(1, self.measured)
        return (self.guess * weight + self.spent) / (weight + self.trials)

    @property
    def guessed(self) -> bool:
        """Nothing was measured yet."""
        return not self.measured and not self.trials

    @property
    def reserve(self) -> float:
        """What is set aside for one of several trials."""
        return max(self.guess, self.most) if self.guessed else self.mean

    @property
    def variance(self) -> float:
        """Of one trial, from how the means of reports differ."""
        if self.reports < FEW_REPORTS:
            return self.mean**2
        return max(0.0, self.squares - self.spent**2 / self.trials) / (self.reports - 1)


@dataclass(slots=True)
class _Account:
    """One worker's trials of one agent: `granted` ≥ `begun` ≥ `ended`.

    `lost` is what the trials count as that the worker may have had in flight when it went; None while it is there.
    `learned` and `learned_at` are `spent` and `ended` as the agent's mean last took them in.
    """

    spent: Spend = Spend()
    begun: int = 0
    ended: int = 0
    granted: int = 0
    learned: Spend = Spend()
    learned_at: int = 0
    lost: Spend | None = None


@dataclass(slots=True)
class _Agent:
    """One agent's books over all workers, kept as sums so that no decision has to go through the workers.

    `measured` trials are what its first guess rests on. `reserved` trials were granted and have not ended; `taken` ones
    were granted, without those that were lost.
    """

    costs: tuple[_Costs, _Costs]
    own: list[tuple[int, int]]
    trials: int | None
    spent: Spend
    measured: int = 0
    reserved: int = 0
    taken: int = 0
    begun: int = 0
    ended: int = 0
    level: Spend = Spend()
    """What it may have spent at most, as written down."""
    accounts: dict[str, _Account] = field(default_factory=dict[str, _Account])

    @contextmanager
    def changing(self, worker: str) -> Generator[_Account]:
        """The account of a worker, whose changes the sums follow."""
        account = self.accounts.setdefault(worker, _Account())
        self._enter(account, -1)
        yield account
        self._enter(account, +1)

    def _enter(self, account: _Account, sign: int) -> None:
        there = account.lost is None
        self.spent += (account.spent + (account.lost or Spend())).times(sign)
        self.reserved += sign * (account.granted - account.ended if there else 0)
        self.taken += sign * (account.granted if there else account.ended)
        self.begun += sign * (account.begun if there else account.ended)
        self.ended += sign * account.ended

    def paid(self, measure: int) -> int:
        return self.spent.measures[measure]

    @property
    def mean(self) -> Spend:
        """What one trial costs, to the nearest unit."""
        return Spend(*(round(costs.mean) for costs in self.costs))


class Purse:
    """Grants trials within a budget for the `whole` run and one for `each` agent.

    `spent` is what stored rows of each agent have cost already, `expected` a first guess of what one trial will, which
    rests on as many trials as `measured` says, and where it rests on none, `most` is what one could cost; `trials` is
    how many of an agent may begin at all (a pilot). An agent that is in none of them is known from its first report.
    What nobody counts is taken to be `free`, or else to be what no budget can bound. A `held` purse grants nothing
    beyond the levels of `hold`.
    """

    def __init__(
        self,
        whole: Budget | None,
        each: Mapping[str, Budget],
        spent: Mapping[str, Spend],
        expected: Mapping[str, Spend],
        *,
        trials: Mapping[str, int] | None = None,
        measured: Mapping[str, int] | None = None,
        most: Mapping[str, Spend] | None = None,
        free: bool = False,
        held: bool = False,
    ) -> None:
        self._free, self._held = free, held
        self._measured, self._highest = measured or {}, most or {}
        self._whole = (whole or Budget()).limits()
        self._each, self._before, self._guesses, self._trials = dict(each), dict(spent), dict(expected), trials or {}
        self._agents: dict[str, _Agent] = {}
        for name in (*self._each, *self._before, *self._guesses, *self._trials):
            self._agent(name)

    def report(self, worker: str, agent: str, *, spent: Spend, begun: int, ended: int) -> None:
        """Take in what a worker says of an agent: cumulative numbers since the worker's process opened.

        `spent` is of the trials that ended; what those in flight have cost so far may be in it, too. Saying the same
        twice changes nothing, and numbers lower than known ones are old and are ignored. A process that is started
        again reports under another name, and `gone` tells about the one before.
        """
        books = self._agent(agent)
        with books.changing(worker) as account:
            if begun < account.begun or ended < account.ended:
                return
            if account.lost is not None:
                account.lost, account.granted = None, begun
            account.spent, account.begun, account.ended = spent, begun, ended
            account.granted = max(account.granted, begun)
            _learn(books, account)

    def allow(self, worker: str, agent: str, wanted: int) -> int:
        """How many further trials, of `wanted` ones, the worker may begin beyond those it has reported as begun.

        This replaces what it was granted and has not begun: it keeps as much of that as it wants, the rest is free for
        others, and more is granted as the budgets carry it. A worker therefore begins, from the moment it reports and
        while it waits for the answer, no more than `wanted` trials, and no more than it was granted before.
        """
        books = self._agent(agent)
        with books.changing(worker) as account:
            account.granted = min(account.granted, account.begun + wanted)
        more = self._most(agent, account.begun + wanted - account.granted)
        with books.changing(worker) as account:
            account.granted += more
        return account.granted - account.begun

    def gone(self, worker: str) -> None:
        """A worker died: what it had in flight was likely paid for, and it may have begun all that it was granted.

        So that counts as spent, until it does report again.
        """
        for books in self._agents.values():
            if worker in books.accounts:
                with books.changing(worker) as account:
                    account.lost = account.lost or books.mean.times(account.granted - account.ended)

    def accounts(self) -> Accounts:
        """All that workers have said, for a purse that has to know it, too."""
        return {
            (worker, name): (account.spent, account.begun, account.ended)
            for name, books in self._agents.items()
            for worker, account in books.accounts.items()
        }

    def recall(self, accounts: Accounts) -> None:
        """Take in what another purse was told by workers of which this one has not heard: gone, until they report."""
        for (worker, name), (spent, begun, ended) in accounts.items():
            if worker not in self._agent(name).accounts:
                self.report(worker, name, spent=spent, begun=begun, ended=ended)
                self.gone(worker)

    def exhausted(self) -> dict[str, Reason]:
        """Agents that may begin nothing more, whatever is in flight now turns out to cost, and why."""
        return {name: reason for name in self._agents if (reason := self._why_not(name))}

    def bounds(self, agent: str) -> bool:
        """Whether there is a budget for an agent that only holds if what its trials cost is counted."""
        self._agent(agent)
        return not self._free and bool(self._limits(agent))

    def spent(self) -> dict[str, Spend]:
        """By agent, what is known to be spent, with what stored rows had cost before."""
        return {name: books.spent for name, books in self._agents.items()}

    def due(self) -> dict[str, Spend]:
        """The levels of all agents that are bounded, when one of them is due to be raised or lowered; else nothing.

        They are to be written down, and then `hold` makes them hold; until then, those that are lower hold already.
        """
        if not self._held:
            return {}
        levels: dict[str, Spend] = {}
        late = False
        for name, books in self._agents.items():
            if bounded := self._bounded(name):
                level = self._ahead(name, bounded)
                late = late or any(level.measures[at] != books.level.measures[at] for at in bounded)
                levels[name], books.level = level, books.level.least(level)
        return levels if late else {}

    def hold(self, levels: Mapping[str, Spend]) -> None:
        """These levels are written down."""
        for name, level in levels.items():
            self._agent(name).level = level

    def settled(self) -> dict[str, Spend]:
        """By agent, what is taken to be spent when nothing more begins: what is in flight counts at its mean cost."""
        return {name: books.spent + books.mean.times(books.begun - books.ended) for name, books in self._agents.items()}

    def _ahead(self, name: str, bounded: Collection[int]) -> Spend:
        """An agent's next level: the present one where it is neither near nor far from what is spent and reserved."""
        books, level = self._agents[name], list(self._agents[name].level.measures)
        for measure, present in enumerate(level):
            now, one, few = (_needs({name: books}, measure, name, more) for more in (0, 1, UNKNOWN))
            room, share = self._room(name, measure) if measure in bounded else (inf, 0)
            ahead = max(min(few - now, room), AHEAD * share)
            if not max(ahead / 2, min(one - now, ahead)) <= present - now <= 2 * ahead:
                level[measure] = ceil(now + ahead)
        return Spend(*level)

    def _bounded(self, name: str) -> set[int]:
        return {measure for _, measure, _ in self._limits(name)}

    def _room(self, name: str, measure: int) -> tuple[float, float]:
        """What the budgets of an agent have left in a measure, and its part of that if all agents have equal ones."""
        rooms = [
            (max(0.0, limit - sum(agent.paid(bounded) for agent in scope.values())), len(scope))
            for scope, bounded, limit in self._limits(name)
            if bounded == measure
        ]
        return min(room for room, _ in rooms), min(room / agents for room, agents in rooms)

    def _agent(self, name: str) -> _Agent:
        if name not in self._agents:
            guess, measured = self._guesses.get(name, Spend()), self._measured.get(name, 0)
            most = self._highest.get(name, guess)
            self._agents[name] = _Agent(
                costs=(_Costs(guess.cost, most.cost, measured), _Costs(guess.tokens, most.tokens, measured)),
                measured=measured,
                own=self._each[name].limits() if name in self._each else [],
                trials=self._trials.get(name),
                spent=self._before.get(name, Spend()),
            )
        return self._agents[name]

    def _most(self, name: str, wanted: int) -> int:
        """The largest number up to `wanted` of further trials that fits."""
        books = self._agents[name]
        if books.trials is not None:
            wanted = min(wanted, books.trials - books.taken)
        if self._whole or books.own:
            wanted = min(wanted, UNKNOWN + 2 * (books.ended + books.measured) - books.reserved)
        low, high = 0, max(0, wanted)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(name, middle) else (low, middle - 1)
        return low

    def _fits(self, name: str, more: int) -> bool:
        books = self._agents[name]
        held = self._bounded(name) if self._held else ()
        return all(_needs({name: books}, at, name, more) <= books.level.measures[at] for at in held) and all(
            _needs(scope, measure, name, more) <= limit for scope, measure, limit in self._limits(name)
        )

    def _why_not(self, name: str) -> Reason | None:
        books = self._agents[name]
        if books.trials is not None and books.begun >= books.trials:
            return "pilot"
        for scope, measure, limit in self._limits(name):
            room = limit - sum(agent.paid(measure) for agent in scope.values())
            # What it costs is not settled while one of its own is in flight.
            if room <= 0 or (not books.reserved and books.costs[measure].mean > room):
                return "budget"
        return None

    def _limits(self, name: str) -> list[tuple[Mapping[str, _Agent], int, int]]:
        """What bounds an agent: whose spend counts, in which measure, and the limit. What costs nothing is free."""
        books = self._agents[name]
        scopes: list[tuple[Mapping[str, _Agent], list[tuple[int, int]]]]
        scopes = [({name: books}, books.own), (self._agents, self._whole)]
        return [
            (scope, measure, limit)
            for scope, limits in scopes
            for measure, limit in limits
            if books.costs[measure].mean
        ]


def _learn(books: _Agent, account: _Account) -> None:
    """Learn what a trial costs from those that ended.

    What cost nothing, a cached answer or a refusal, teaches nothing.
    """
    trials, seen = account.ended - account.learned_at, account.spent - account.learned
    if trials:
        account.learned, account.learned_at = account.spent, account.ended
    if trials and seen != Spend():
        books.costs[0].add(seen.cost, trials)
        books.costs[1].add(seen.tokens, trials)


def _needs(scope: Mapping[str, _Agent], measure: int, name: str, more: int) -> float:
    """What is spent and reserved in a measure, with `more` trials of the agent `name`."""
    paid = sum(books.paid(measure) for books in scope.values())
    flight = [(books.reserved + (more if agent == name else 0), books.costs[measure]) for agent, books in scope.items()]
    guessed = [(trials, costs) for trials, costs in flight if trials and costs.guessed and costs.mean]
    if sum(trials for trials, _ in guessed) == 1:
        flight.remove(guessed[0])
        paid += guessed[0][1].mean
    if sum(trials for trials, _ in flight) <= 1:
        return paid + sum(trials * costs.mean for trials, costs in flight)
    variance = sum(trials * costs.variance for trials, costs in flight)
    return paid + sum(trials * costs.reserve for trials, costs in flight) + MARGIN * sqrt(variance)
