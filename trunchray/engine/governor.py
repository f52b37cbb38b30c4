"""Who may do how much: the one place where limits, budget and broken credentials of a run are decided. Pure.

Every worker tells the governor about five times a second what it does, and is told what it may do until it asks again.
It never answers for a single request, so it costs the same however fast requests are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trunchray.core.agent import AgentSpec
from trunchray.core.budget import Purse
from trunchray.core.frozen import Frozen
from trunchray.core.trial import BLOCKING
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.scope import Scope

SILENT = 15.0
"""Seconds after which a worker that says nothing is taken to be gone."""
IN_A_ROW = 3
"""Failures of a kind that no repetition mends, without a success between them, that close an agent."""
UNCOUNTED = 0.02
"""The share of answers without a count of tokens above which no budget can be kept."""


class Standing(Frozen):
    """One agent as the governor sees it. Times are in seconds, ages too."""

    permits: int
    """Requests that may be in flight in its scope."""
    in_flight: int = 0
    waiting: int = 0
    rate: float | None = None
    """Requests a second that its scope lets through; None for any number."""
    cooling_for: float = 0
    """Until requests may begin again, or until a refusal counts again."""
    error: str | None = None
    """The last failure of a request."""
    error_age: float | None = None
    oldest: float | None = None
    """Age of the oldest trial in flight."""
    closed: str | None = None
    """Why no further trial begins."""
    why: str | None = None
    """The same with figures, where they tell more than the reason."""


@dataclass(slots=True)
class _Agent:
    """What the governor knows of an agent over all workers."""

    scope: Scope
    in_row: int = 0
    closed: str | None = None
    why: str | None = None
    error: tuple[str, float] | None = None
    before: dict[str, Demand] = field(default_factory=dict[str, Demand])

    @property
    def uncounted(self) -> str | None:
        """How often nobody knows what an answer cost, if that is too often."""
        answers = sum(demand.succeeded for demand in self.before.values())
        silent = sum(demand.uncounted for demand in self.before.values())
        if silent < IN_A_ROW or silent <= UNCOUNTED * answers:
            return None
        return f"{silent:,} of {answers:,} answers did not say how many tokens they took, so no budget can be kept"


class Governor:
    """The limits of a run's agents. `now` counts seconds from anywhere, but is the same clock in every call."""

    def __init__(self, agents: Sequence[AgentSpec], purse: Purse | None = None, *, now: float = 0) -> None:
        groups: dict[tuple[str, str], list[AgentSpec]] = {}
        for agent in agents:
            key = ("quota", agent.quota.name) if agent.quota else ("agent", agent.name)
            groups.setdefault(key, []).append(agent)
        self._scopes = [Scope(group, now) for group in groups.values()]
        self._agents = {
            agent.name: _Agent(scope)
            for scope, group in zip(self._scopes, groups.values(), strict=True)
            for agent in group
        }
        self._purse = purse
        self._heard: dict[str, float] = {}

    def exchange(self, worker: str, demands: Mapping[str, Demand], now: float) -> dict[str, Allowance]:
        """Take in what a worker says, and say what it may do. Agents of no scope are left out."""
        self._forget_silent(now)
        self._heard[worker] = now
        known = {name: demand for name, demand in demands.items() if name in self._agents}
        for name, demand in known.items():
            self._take(worker, name, demand, now)
        trials = self._trials(worker, known)
        granted = {
            name: grant
            for scope in self._scopes
            if (own := {name: demand for name, demand in known.items() if self._agents[name].scope is scope})
            for name, grant in scope.exchange(worker, own, now).items()
        }
        return {name: Allowance(granted[name], trials.get(name), self._agents[name].closed) for name in known}

    def snapshot(self, now: float) -> dict[str, Standing]:
        """Every agent as it stands."""
        self._forget_silent(now)
        return {name: self._standing(agent, now) for name, agent in self._agents.items()}

    def _forget_silent(self, now: float) -> None:
        for worker, heard in list(self._heard.items()):
            if now - heard > SILENT:
                del self._heard[worker]
                for scope in self._scopes:
                    scope.forget(worker)
                for agent in self._agents.values():
                    agent.before.pop(worker, None)
                if self._purse:
                    self._purse.gone(worker)

    def _take(self, worker: str, name: str, demand: Demand, now: float) -> None:
        """Count failures that no repetition mends."""
        agent = self._agents[name]
        before = agent.before.get(worker, Demand())
        agent.before[worker] = demand
        if demand.error:
            agent.error = (demand.error, now)
        blocked = demand.blocked - before.blocked
        agent.in_row = demand.blocked_in_row if demand.succeeded > before.succeeded else agent.in_row + blocked
        if agent.in_row >= IN_A_ROW and demand.reason in BLOCKING:
            agent.closed = agent.closed or demand.reason

    def _trials(self, worker: str, demands: Mapping[str, Demand]) -> dict[str, int]:
        """How many trials the budget lets begin, by agent; nothing when there is no budget."""
        if self._purse is None:
            return {}
        for name, demand in demands.items():
            begun, ended = demand.trials_begun, demand.trials_ended
            self._purse.report(worker, name, spent=demand.spent, begun=begun, ended=ended)
            agent = self._agents[name]
            if agent.closed is None and self._purse.bounds(name) and (why := agent.uncounted):
                agent.closed, agent.why = "uncounted", why
        for name, reason in self._purse.exhausted().items():
            if name in self._agents:
                self._agents[name].closed = self._agents[name].closed or reason
        return {name: self._purse.allow(worker, name, demand.trials_waiting) for name, demand in demands.items()}

    def _standing(self, agent: _Agent, now: float) -> Standing:
        demands = list(agent.before.values())
        scope = agent.scope
        return Standing(
            permits=int(scope.limit),
            in_flight=sum(demand.in_flight for demand in demands),
            waiting=sum(demand.waiting for demand in demands),
            rate=scope.rate(now),
            cooling_for=max(0.0, scope.cooling_until - now, scope.paused_until - now),
            error=agent.error[0] if agent.error else None,
            error_age=now - agent.error[1] if agent.error else None,
            oldest=max((demand.oldest for demand in demands if demand.oldest is not None), default=None),
            closed=agent.closed,
            why=agent.why,
        )
