"""The counted rows of a stored run, to be read one shard after another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from trunchray.adapters import parts
from trunchray.adapters.releases import CaseTable, StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import AgentSpec
from trunchray.core.plan import Plan
from trunchray.core.report import ModelReport, Planned
from trunchray.engine.aggregate import counted_tables, tally_rows
from trunchray.engine.stored import open_run


@dataclass(frozen=True)
class StoredRows:
    """A stored run and the models whose rows are wanted, in the order of the run."""

    folder: RunFolder
    plan: Plan
    agents: tuple[AgentSpec, ...]
    damaged: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By shard, the parts that could not be read so far: their rows are left out."""

    @cached_property
    def release(self) -> StoredRelease:
        return open_release(self.plan.spec.release)

    @cached_property
    def cases(self) -> CaseTable:
        return self.release.cases()

    def tables(self, agents: Collection[str] | None = None) -> Iterator[parts.Rows]:
        """The counted rows of these agents, or of all wanted ones: by agent, attempt and the plan's order of cases."""
        names = {agent.name for agent in self.agents} if agents is None else agents
        for shard, rows, bad in counted_tables(self.plan, self.folder, names):
            if bad:
                self.damaged[shard.id] = bad
            yield rows

    def records(
        self, agents: Collection[str] | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The same, row by row, as plain values: of all columns, or of some."""
        for table in self.tables(agents):
            yield from parts.records(table.select(columns) if columns else table)

    def span(self, agent: str) -> tuple[datetime | None, datetime | None]:
        """When the first counted trial of an agent began and the last one ended; None when there is none."""
        spans = [span for table in self.tables({agent}) if (span := parts.span(table))]
        return min((began for began, _ in spans), default=None), max((ended for _, ended in spans), default=None)

    def report(self, agent: str) -> ModelReport:
        """The figures of one agent, from its counted rows."""
        planned = Planned.of(self.plan)
        tally, _ = tally_rows(self.plan, self.folder, planned, [agent])
        return tally.model(next(model for model in planned.models if model.name == agent))


def open_rows(run_uri: str, models: Collection[str] = ()) -> StoredRows:
    """The run at `run_uri` and those of its models, or all.

    Raises:
        UsageError: there is no run, or it has no such model.
        ReleaseError: its release is gone or damaged.
    """
    folder, plan = open_run(run_uri)
    return StoredRows(folder, plan, plan.spec.agents_named(models or None))
