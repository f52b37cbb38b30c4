"""How far a run is: what is committed, and what the workers have in hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from pydantic import JsonValue, ValidationError

from trunchray.core.budget import Spend, total
from trunchray.core.frozen import Frozen
from trunchray.core.plan import Plan
from trunchray.core.receipt import Counts, Receipt
from trunchray.engine.governor import Standing


class AgentProgress(Frozen):
    """One model's rows so far, of `planned` trials; `in_flight` are being run now."""

    name: str
    planned: int
    counts: Counts = Counts()
    in_flight: int = 0
    spent_usd: float = 0
    """What was paid for the model so far, by all commands; rows whose price is unknown add nothing."""
    spent_tokens: int = 0
    """Likewise; more than in `counts` when rows were asked for again."""
    standing: Standing | None = None
    """What it may do and how it fares; None when nobody says."""


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


class Snapshot(Frozen):
    """The run at one moment. `resumed` rows were there before this command started."""

    run_id: str
    agents: tuple[AgentProgress, ...]
    resumed: int = 0
    at: datetime | None = None
    """When that was, for what is told as an age; None when nothing is."""
    nodes: tuple[NodeStanding, ...] = ()
    """Where it runs; empty when nothing does."""

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
        return {one.name: one.standing.closed for one in self.agents if one.standing and one.standing.closed}

    @property
    def planned(self) -> int:
        return sum(agent.planned for agent in self.agents)

    @property
    def rows(self) -> int:
        return sum(agent.counts.rows for agent in self.agents)

    @property
    def spent(self) -> Spend:
        return total(self.spent_on(agent.name) for agent in self.agents)

    def spent_on(self, name: str) -> Spend:
        """What was paid for one model; nothing for one that is not in the run."""
        return total(Spend.of(one.spent_usd, one.spent_tokens) for one in self.agents if one.name == name)


class Progress:
    """Adds up receipts and the workers' own counts, each shard once."""

    def __init__(
        self, plan: Plan, committed: Mapping[str, Receipt], stored: Mapping[str, Counts] | None = None
    ) -> None:
        """`stored` counts, by shard, rows that are known to be stored and that no commit lists."""
        self._run_id = plan.spec.run_id
        self._agent_of = {shard.id: shard.agent.name for shard in plan.shards}
        self._planned = dict.fromkeys((agent.name for agent in plan.spec.agents), 0)
        for shard in plan.shards:
            self._planned[shard.agent.name] += len(shard.case_ids)
        self._settled = dict.fromkeys(self._planned, Counts())
        self._replaced = dict.fromkeys(self._planned, Spend())
        self._held = {shard: counts for shard, counts in (stored or {}).items() if shard in self._agent_of}
        self._begun: dict[str, Receipt] = {}  # committed, but not whole
        for receipt in committed.values():
            self.settle(receipt)
        self._resumed = self.counted

    def settle(self, receipt: Receipt) -> None:
        """Count a committed shard; one that the plan does not have is left out."""
        name = self._agent_of.get(receipt.shard)
        if name is None:
            return
        self._held.pop(receipt.shard, None)
        self._begun.pop(receipt.shard, None)
        if receipt.missing:
            self._begun[receipt.shard] = receipt
        else:
            self._settled[name] += receipt.counts
            self._replaced[name] += receipt.replaced

    @property
    def counted(self) -> int:
        """Rows of commits."""
        whole = sum(counts.rows for counts in self._settled.values())
        return whole + sum(receipt.counts.rows for receipt in self._begun.values())

    @property
    def held(self) -> int:
        """Rows that are stored but do not count yet."""
        return sum(counts.rows for counts in self._held.values())

    def snapshot(
        self,
        in_work: Mapping[str, tuple[Counts, int]],
        standing: Mapping[str, Standing] | None = None,
        at: datetime | None = None,
        nodes: tuple[NodeStanding, ...] = (),
    ) -> Snapshot:
        """The run now. `in_work` holds, for shards not yet committed, their rows so far and their trials in flight."""
        counts, in_flight = dict(self._settled), dict.fromkeys(self._planned, 0)
        replaced = dict(self._replaced)
        held = {shard: (rows, 0) for shard, rows in self._held.items()}
        for shard, receipt in self._begun.items():
            held[shard] = (receipt.counts, 0)
            replaced[self._agent_of[shard]] += receipt.replaced
        for shard, (rows, running) in (held | dict(in_work)).items():
            name = self._agent_of[shard]
            counts[name] += rows
            in_flight[name] += running
        spent = {name: counts[name].spent + before for name, before in replaced.items()}
        agents = tuple(
            AgentProgress(
                name=name,
                planned=planned,
                counts=counts[name],
                in_flight=in_flight[name],
                spent_usd=spent[name].usd,
                spent_tokens=spent[name].tokens,
                standing=standing.get(name) if standing else None,
            )
            for name, planned in self._planned.items()
        )
        return Snapshot(run_id=self._run_id, agents=agents, resumed=self._resumed, at=at, nodes=nodes)
