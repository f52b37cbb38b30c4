"""What a run has cost, what the rest of it will cost, and the purse that keeps it within its budgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic_core import to_json

from trunchray.adapters import parts
from trunchray.adapters.models.replay import load_replay
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import READERS, RunFolder
from trunchray.core.agent import AgentSpec, ModelAgent
from trunchray.core.budget import Budget, Purse, Spend, total
from trunchray.core.estimate import ModelEstimate, Size, from_rows, from_sizes, one_trial, size
from trunchray.core.plan import Plan
from trunchray.core.receipt import Counts, Mark, Receipt
from trunchray.core.run import Aim
from trunchray.engine.stored import counting_commits
from trunchray.errors import StoreError, UsageError

SAMPLE = 256
"""Committed rows of a model that are read to estimate the cost of further ones; more would hardly tell more."""


@dataclass(frozen=True)
class Spending:
    """What a run may cost, all its commands together: no part of the question, so each command may say it anew."""

    whole: Budget = field(default_factory=Budget)
    each: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    """By model."""
    pilot: int | None = None
    """End once so many trials of each model were run."""
    allow_unpriced: bool = False
    """Let models run whose price is unknown, or whose provider does not count tokens, although that is limited; what is
    unknown counts as free."""

    @property
    def limited(self) -> bool:
        """Whether there is anything to keep within."""
        return self.pilot is not None or any(budget.limits() for budget in (self.whole, *self.each.values()))

    def refuse_unpriced(self, agents: Iterable[AgentSpec]) -> None:
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
    retryable: int = 0
    """Counted errors that asking again could mend."""
    sample: list[Spend] = field(default_factory=list[Spend])
    stored: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """By shard, the rows that no commit lists."""

    def learn(self, marks: Iterable[Mark]) -> None:
        """Take rows into the sample, but for those that cost nothing: found in a cache, failed early or not counted."""
        self.sample += [mark.spent for mark in marks if mark.spent != Spend()]


def read_paid(plan: Plan, folder: RunFolder, commits: Mapping[str, Receipt]) -> dict[str, Paid]:
    """By model, what its stored rows have cost: those of the commits, and those that none of them lists (yet)."""
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
            of.retryable += receipt.counts.retryable
        elif rows:
            of.stored[shard.id] = Counts.of(newest)
        if receipt is None or receipt.missing:
            of.rows += sum(not mark.retryable for mark in newest)
    for shard, rows in _marks(folder, _samples(plan, commits)).items():
        paid[agent_of[shard]].learn(dict(rows).values())
    return paid


def estimate(
    plan: Plan,
    folder: RunFolder,
    release: StoredRelease,
    *,
    pilot: int | None = None,
    aim: Aim = "run",
    inputs: Mapping[str, bytes] | None = None,
) -> list[ModelEstimate]:
    """For each model of the plan, what the trials to be done will cost; of a `pilot`, no more than so many in all.

    `inputs` holds files that agents need, by SHA-256.
    """
    planned = len(plan.evals) * plan.spec.attempts
    all_of_them = planned if pilot is None else min(planned, pilot)
    # To look whether all commits count would take longer than it is worth.
    paid = read_paid(plan, folder, folder.commits())
    owed = {name: of.retryable if aim == "retry" else max(0, all_of_them - of.rows) for name, of in paid.items()}
    return _estimates(plan, release, paid, owed, inputs or {})


@dataclass(frozen=True)
class Balance:
    """What a command that is limited goes on from: its purse, and rows that are stored but not committed, by shard."""

    purse: Purse | None = None
    stored: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    unseen: Mapping[str, Spend] = field(default_factory=dict[str, Spend])
    """By model, what may have been paid beyond what stored rows cost: for trials of commands and workers that died."""

    @classmethod
    def open(cls, plan: Plan, folder: RunFolder, release: StoredRelease, spending: Spending) -> Balance:
        """Read what the run has cost; nothing is read when nothing is limited."""
        if not spending.limited:
            return cls()
        paid = read_paid(plan, folder, counting_commits(plan, folder))
        levels = folder.spending()
        spent = {name: of.spent.most(levels.get(name, Spend())) for name, of in paid.items()}
        one_each = _estimates(plan, release, paid, dict.fromkeys(paid, 1), {})
        purse = Purse(
            spending.whole,
            spending.each,
            spent=spent,
            expected={one.name: one_trial(one) for one in one_each},
            measured={one.name: one.rows for one in one_each},
            most={one.name: one_trial(one, "high") for one in one_each},
            free=spending.allow_unpriced,
            trials=None if spending.pilot is None else {name: spending.pilot - of.rows for name, of in paid.items()},
            held=True,
        )
        stored = {shard: counts for of in paid.values() for shard, counts in of.stored.items()}
        return cls(purse, stored, {name: spent[name] - of.spent for name, of in paid.items()})

    @property
    def warning(self) -> str | None:
        """What to say of money that is gone without a trace."""
        unseen = total(self.unseen.values())
        if unseen == Spend():
            return None
        return (
            f"commands or workers that died may have spent up to {unseen.tokens:,} tokens and {unseen.usd:,.4f} US "
            "dollars on trials that were never stored; the budget counts them"
        )

    def closed(self, agents: Iterable[str]) -> dict[str, str]:
        """Those of the agents that may begin nothing from the start, and why."""
        found = self.purse.exhausted() if self.purse else {}
        return {name: found[name] for name in agents if name in found}


def _estimates(
    plan: Plan,
    release: StoredRelease,
    paid: Mapping[str, Paid],
    trials: Mapping[str, int],
    inputs: Mapping[str, bytes],
) -> list[ModelEstimate]:
    sizes: list[Size] = []
    found: list[ModelEstimate] = []
    for agent in plan.spec.agents:
        sample = paid[agent.name].sample
        if len(sample) >= 2:
            found.append(from_rows(agent, sample, trials[agent.name]))
        else:
            sizes = sizes or _sizes(plan, release)
            found.append(from_sizes(agent, sizes, trials[agent.name], answer=_answer(agent, inputs)))
    return found


def _answer(agent: AgentSpec, inputs: Mapping[str, bytes]) -> float | None:
    """How many tokens a mock answers with whose answers are at hand; None of other models."""
    mock = agent.mock if isinstance(agent, ModelAgent) else None
    if mock is None:
        return None
    if mock.script:
        return max(len(reply.text) + sum(len(to_json(call)) for call in reply.tool_calls) for reply in mock.script) / 4
    content = inputs.get(mock.replay or "")
    return None if content is None else load_replay(content, f"recorded outputs of {agent.name!r}").tokens()


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
