"""How far a run is: what is committed, and what the workers have in hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from pydantic import JsonValue, ValidationError

from trunchray.core.budget import Budget, Spend, total
from trunchray.core.digest import digest
from trunchray.core.frozen import Frozen
from trunchray.core.plan import Plan
from trunchray.core.receipt import Counts, InHand, Receipt
from trunchray.core.run import RunSpec
from trunchray.engine.governor import Standing


class AgentProgress(Frozen):
    """One model's rows so far, of `planned` trials; `in_flight` are being run now."""

    name: str
    planned: int
    counts: Counts = Counts()
    """Of all rows, also of those that workers have in hand."""
    counted: Counts = Counts()
    """Of the rows that commits list: those that reports count."""
    again: int = 0
    """Errors among the rows that are asked for once more."""
    in_flight: int = 0
    spent_usd: float = 0
    """What was paid for the model so far, by all commands; rows whose price is unknown add nothing."""
    spent_tokens: int = 0
    """Likewise; more than in `counts` when rows were asked for again."""
    budget: Budget = Budget()
    """What may be spent on the model alone."""
    per_minute: float | None = None
    """Trials done in a minute, over the last one; None while it is too early to tell."""
    tokens_per_minute: float | None = None
    standing: Standing | None = None
    """What it may do and how it fares; None when nobody says."""

    @property
    def done(self) -> int:
        """Rows that stay."""
        return self.counts.rows - self.again

    @property
    def eta(self) -> float | None:
        """Seconds until all is done; None when nobody can tell."""
        owed = self.planned - self.done
        return 0.0 if owed <= 0 else 60 * owed / self.per_minute if self.per_minute else None

    @property
    def spent(self) -> Spend:
        return Spend.of(self.spent_usd, self.spent_tokens)

    @property
    def closed(self) -> str | None:
        """Why nothing more of it begins."""
        return self.standing.closed if self.standing else None


class NodeStanding(Frozen):
    """One machine as the pool sees it."""

    node: str
    """Its address, or the host name where there is no cluster."""
    workers: int
    down: int = 0
    """Those of the workers that do not answer."""
    shards: int = 0
    """In work there."""
    draining: bool = False
    """It is about to leave, and gets nothing more."""


@dataclass(frozen=True)
class Terms:
    """What the command that drives a run was told."""

    budget: Budget = field(default_factory=Budget)
    """For all its commands together."""
    each: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    """Likewise, by model."""
    command: str = ""
    """How to give the command again; empty when it was none."""


class Snapshot(Frozen):
    """The run at one moment. `resumed` rows were there before this command started."""

    run_id: str
    agents: tuple[AgentProgress, ...]
    resumed: int = 0
    at: datetime | None = None
    """When that was, for what is told as an age; None when nothing is."""
    nodes: tuple[NodeStanding, ...] = ()
    """Where it runs; empty when nothing does."""
    question: str = ""
    """The digest of the run.json that it is about."""
    budget: Budget = Budget()
    """What may be spent on the run."""
    command: str = ""
    """What the driver was started with, where that is known."""
    final: bool = False
    """The driver ended in order after this: it commits nothing more."""

    @property
    def terms(self) -> Terms:
        """What the driver was told."""
        return Terms(self.budget, {agent.name: agent.budget for agent in self.agents}, self.command)

    @classmethod
    def read(cls, stored: JsonValue) -> Self | None:
        """What a driver stored last; None when there is nothing, or nothing that this version can read."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return None

    @property
    def closed(self) -> dict[str, str]:
        """The models of which nothing more was begun, and why."""
        return {one.name: one.closed for one in self.agents if one.closed}

    @property
    def planned(self) -> int:
        return sum(agent.planned for agent in self.agents)

    @property
    def rows(self) -> int:
        return sum(agent.counts.rows for agent in self.agents)

    @property
    def done(self) -> int:
        """Rows that stay."""
        return sum(agent.done for agent in self.agents)

    @property
    def eta(self) -> float | None:
        """Seconds until the last model is done that is not closed; None when nobody can tell."""
        each = [agent.eta for agent in self.agents if not agent.closed]
        known = [seconds for seconds in each if seconds is not None]
        return max(known) if known and len(known) == len(each) else None

    @property
    def per_minute(self) -> float | None:
        """Trials of all models; None while it is too early to tell."""
        return _sum(agent.per_minute for agent in self.agents)

    @property
    def tokens_per_minute(self) -> float | None:
        return _sum(agent.tokens_per_minute for agent in self.agents)

    def committed(self) -> Snapshot:
        """The same, of the rows alone that commits list."""
        agents = (agent.model_copy(update={"counts": agent.counted, "again": 0}) for agent in self.agents)
        return self.model_copy(update={"agents": tuple(agents)})

    @property
    def spent(self) -> Spend:
        return total(self.spent_on(agent.name) for agent in self.agents)

    def spent_on(self, name: str) -> Spend:
        """What was paid for one model; nothing for one that is not in the run."""
        return total(one.spent for one in self.agents if one.name == name)


class Progress:
    """Adds up receipts and the workers' own counts, each shard once."""

    def __init__(
        self,
        plan: Plan,
        committed: Mapping[str, Receipt],
        stored: Mapping[str, Counts] | None = None,
        owed: Collection[str] = (),
        terms: Terms = Terms(),
    ) -> None:
        """`stored` counts, by shard, rows that are known to be stored and that no commit lists.

        `owed` are the shards that are run, some perhaps to ask for errors of theirs again.
        """
        self._run_id, self._question = plan.spec.run_id, question(plan.spec)
        self._agent_of = {shard.id: shard.agent.name for shard in plan.shards}
        self._planned = dict.fromkeys((agent.name for agent in plan.spec.agents), 0)
        for shard in plan.shards:
            self._planned[shard.agent.name] += len(shard.case_ids)
        self._sums = {name: _Sums() for name in self._planned}
        self._resting: dict[str, InHand] = {}  # what is in the sums of shards that are not done with
        self._listed: dict[str, Receipt] = {}  # those of them that have a commit
        self._owed, self._terms = set(owed), terms
        for shard, counts in (stored or {}).items():
            if shard in self._agent_of:
                self._rest(shard, counts)
        for receipt in committed.values():
            self._take(receipt)
        self._resumed = self.counted

    def settle(self, receipt: Receipt) -> None:
        """Count a shard that was committed now; one that the plan does not have is left out."""
        self._owed.discard(receipt.shard)
        self._take(receipt)

    @property
    def counted(self) -> int:
        """Rows of commits."""
        return sum(sums.counted.rows for sums in self._sums.values())

    @property
    def held(self) -> int:
        """Rows that are stored but do not count yet."""
        return sum(hand.counts.rows for shard, hand in self._resting.items() if shard not in self._listed)

    def snapshot(
        self,
        in_work: Mapping[str, InHand],
        standing: Mapping[str, Standing] | None = None,
        at: datetime | None = None,
        nodes: tuple[NodeStanding, ...] = (),
    ) -> Snapshot:
        """The run now. `in_work` holds what workers have of shards that are not done with."""
        hands = {name: [InHand(sums.counts, again=sums.again)] for name, sums in self._sums.items()}
        for shard, hand in in_work.items():
            rest = self._resting.get(shard, InHand(Counts()))
            change = InHand(hand.counts - rest.counts, hand.in_flight, hand.again - rest.again)
            hands[self._agent_of[shard]].append(change)
        agents = (self._agent(name, hands[name], (standing or {}).get(name)) for name in self._planned)
        return Snapshot(
            run_id=self._run_id,
            agents=tuple(agents),
            resumed=self._resumed,
            at=at,
            nodes=nodes,
            question=self._question,
            budget=self._terms.budget,
            command=self._terms.command,
        )

    def _agent(self, name: str, hands: Sequence[InHand], standing: Standing | None) -> AgentProgress:
        sums = self._sums[name]
        counts = sum((hand.counts for hand in hands), Counts())
        spent = counts.spent + sums.replaced
        return AgentProgress(
            name=name,
            planned=self._planned[name],
            counts=counts,
            counted=sums.counted,
            again=sum(hand.again for hand in hands),
            in_flight=sum(hand.in_flight for hand in hands),
            spent_usd=spent.usd,
            spent_tokens=spent.tokens,
            budget=self._terms.each.get(name, Budget()),
            standing=standing,
        )

    def _take(self, receipt: Receipt) -> None:
        shard = receipt.shard
        if shard not in self._agent_of:
            return
        sums = self._sums[self._agent_of[shard]]
        if before := self._listed.pop(shard, None):
            sums.counted -= before.counts
            sums.replaced -= before.replaced
        sums.counted += receipt.counts
        sums.replaced += receipt.replaced
        self._rest(shard, receipt.counts)
        if receipt.missing or shard in self._owed:
            self._listed[shard] = receipt
        else:
            del self._resting[shard]

    def _rest(self, shard: str, counts: Counts) -> None:
        """Count the rows of a shard that no worker has in hand, in place of what was counted of it before."""
        before = self._resting.get(shard, InHand(Counts()))
        now = self._resting[shard] = InHand(counts, again=counts.retryable if shard in self._owed else 0)
        sums = self._sums[self._agent_of[shard]]
        sums.counts += now.counts - before.counts
        sums.again += now.again - before.again


@dataclass(slots=True)
class _Sums:
    """Of one agent's rows, those in hand only as far as they were there before."""

    counts: Counts = field(default_factory=Counts)
    counted: Counts = field(default_factory=Counts)
    again: int = 0
    replaced: Spend = field(default_factory=Spend)


def question(spec: RunSpec) -> str:
    """The digest by which snapshots tell what they are about."""
    return digest(spec)


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
