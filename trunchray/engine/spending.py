"""What a run has cost, what the rest of it will cost, and the purse that keeps it within its budgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic_core import to_json

from trunchray.adapters import parts
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.budget import Budget, Purse, Spend, total
from trunchray.core.estimate import ModelEstimate, Size, expected_trial, from_rows, from_sizes, size
from trunchray.core.plan import Plan
from trunchray.core.receipt import Mark, Receipt
from trunchray.engine.aggregate import counting_commits
from trunchray.errors import StoreError, UsageError

SAMPLE = 1000
"""Committed rows of a model that are read to estimate the cost of further ones; more would hardly tell more."""
READERS = 8
"""Parts that are fetched at a time."""


@dataclass(frozen=True)
class Spending:
    """What a run may cost, all its commands together: no part of the question, so each command may say it anew."""

    whole: Budget = field(default_factory=Budget)
    each: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    """By model."""
    pilot: int | None = None
    """End once so many trials of each model were run."""
    allow_unpriced: bool = False
    """Let models run whose price is unknown, although dollars are limited; they count as free."""

    @property
    def limited(self) -> bool:
        """Whether there is anything to keep within."""
        return self.pilot is not None or any(budget.limits() for budget in (self.whole, *self.each.values()))

    def refuse_unpriced(self, agents: Iterable[ModelAgent]) -> None:
        """Find out that a budget in dollars cannot be kept.

        Raises:
            UsageError: a model that it bounds has no price.
        """
        for agent in agents:
            own = self.each.get(agent.name, Budget())
            if agent.price is None and not self.allow_unpriced and (self.whole.usd or own.usd):
                raise UsageError(
                    f"model {agent.name!r}: its price is unknown, so a budget in dollars cannot bound it; write "
                    "price: {input: …, output: …} (dollars per million tokens) beside its id, limit budget.tokens "
                    "instead, or count only models with a price with --allow-unpriced"
                )


@dataclass
class Paid:
    """What the stored rows of one model have cost. `sample` holds what some of them cost each."""

    spent: Spend = field(default_factory=Spend)
    rows: int = 0
    """Trials that need not be run any more."""
    sample: list[Spend] = field(default_factory=list[Spend])

    def learn(self, marks: Iterable[Mark]) -> None:
        """Take rows into the sample, but for errors that came before anything was paid."""
        self.sample += [mark.spent for mark in marks if mark.outcome != "error" or mark.tokens]


def read_paid(plan: Plan, folder: RunFolder) -> dict[str, Paid]:
    """By model, what its stored rows have cost: those of commits, and those that no commit lists (yet)."""
    commits = counting_commits(plan, folder)
    uncommitted = _marks(folder, _uncommitted(plan, folder, commits))
    paid = {agent.name: Paid() for agent in plan.spec.agents}
    agent_of = {shard.id: shard.agent.name for shard in plan.shards}
    for shard in plan.shards:
        of, receipt = paid[shard.agent.name], commits.get(shard.id)
        rows = uncommitted.get(shard.id, [])
        newest = dict(rows).values()
        of.spent += total(mark.spent for _, mark in rows)
        of.learn(newest)
        if receipt:
            of.spent += receipt.spent
            of.rows += receipt.counts.rows - receipt.counts.retryable
        else:
            of.rows += sum(not mark.retryable for mark in newest)
    for shard, rows in _marks(folder, _samples(plan, commits)).items():
        paid[agent_of[shard]].learn(dict(rows).values())
    return paid


def estimate(plan: Plan, folder: RunFolder, release: StoredRelease, pilot: int | None = None) -> list[ModelEstimate]:
    """For each model of the plan, what the trials that it owes will cost; of a `pilot`, no more than so many in all."""
    paid = read_paid(plan, folder)
    return _estimates(plan, release, paid, pilot)


def fill_purse(plan: Plan, folder: RunFolder, release: StoredRelease, spending: Spending) -> Purse | None:
    """The purse of a command that goes on with the run, after what its stored rows have cost; None without limits."""
    if not spending.limited:
        return None
    paid = read_paid(plan, folder)
    return Purse(
        spending.whole,
        spending.each,
        spent={name: of.spent for name, of in paid.items()},
        expected={one.name: expected_trial(one) for one in _estimates(plan, release, paid)},
        trials=None
        if spending.pilot is None
        else {name: max(0, spending.pilot - of.rows) for name, of in paid.items()},
    )


def _estimates(
    plan: Plan, release: StoredRelease, paid: Mapping[str, Paid], pilot: int | None = None
) -> list[ModelEstimate]:
    planned = len(plan.evals) * plan.spec.attempts
    sizes: list[Size] = []
    found: list[ModelEstimate] = []
    for agent in plan.spec.agents:
        of = paid[agent.name]
        owed = (planned if pilot is None else min(planned, pilot)) - of.rows
        if len(of.sample) >= 2:
            found.append(from_rows(agent, of.sample, max(0, owed)))
        else:
            sizes = sizes or _sizes(plan, release)
            found.append(from_sizes(agent, sizes, max(0, owed)))
    return found


def _sizes(plan: Plan, release: StoredRelease) -> list[Size]:
    tools = {entry.name: entry for entry in release.release.tools}
    schemas = {
        name: to_json({"name": name, "description": entry.description, "parameters": entry.input_schema})
        for name, entry in tools.items()
    }
    cases = release.cases()
    inputs = (cases[case_id].input for case_id in plan.evals)
    return [size(case, [schemas[name] for name in case.tools if name in schemas]) for case in inputs]


def _uncommitted(plan: Plan, folder: RunFolder, commits: Mapping[str, Receipt]) -> dict[str, list[str]]:
    """The paths of parts that no counting commit lists, by shard, as they came."""
    listed = {part.path for receipt in commits.values() for part in receipt.parts}
    shards = {shard.id for shard in plan.shards}
    found: dict[str, list[str]] = defaultdict(list)
    for path in folder.store.find("parts"):
        shard = path.removeprefix("parts/").rpartition("/")[0]
        if shard in shards and path not in listed and path.endswith(".parquet"):
            found[shard].append(path)
    return found


def _samples(plan: Plan, commits: Mapping[str, Receipt]) -> dict[str, list[str]]:
    """The parts of some committed shards of each model."""
    rows: Counter[str] = Counter()
    found: dict[str, list[str]] = {}
    for shard in plan.shards:
        receipt = commits.get(shard.id)
        if receipt and rows[shard.agent.name] < SAMPLE:
            rows[shard.agent.name] += receipt.counts.rows
            found[shard.id] = [part.path for part in receipt.parts]
    return found


def _marks(folder: RunFolder, paths: Mapping[str, list[str]]) -> dict[str, list[tuple[str, Mark]]]:
    """For each shard all rows of some of its parts, in order, without those of parts that cannot be read."""

    def read(path: str) -> list[tuple[str, Mark]]:
        with suppress(StoreError, FileNotFoundError):
            return parts.marks(parts.decode(folder.store.read(path)))
        return []

    with ThreadPoolExecutor(READERS) as threads:
        rows = {shard: [threads.submit(read, path) for path in of] for shard, of in paths.items()}
        return {shard: [mark for future in of for mark in future.result()] for shard, of in rows.items()}
