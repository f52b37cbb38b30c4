"""Asking again what ended in an error that asking again could mend, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.budget import Budget
from trunchray.core.estimate import ModelEstimate
from trunchray.core.plan import Plan
from trunchray.core.report import Report
from trunchray.core.run import RunSpec
from trunchray.engine.launch import RAY_FROM, Launch, estimate_cost, launch
from trunchray.engine.progress import Snapshot, Terms
from trunchray.engine.spending import Spending
from trunchray.engine.stored import counting_commits, open_run, stored_release


@dataclass(frozen=True)
class Retry:
    """The errors of a stored run that are to be asked again."""

    folder: RunFolder
    plan: Plan
    errors: Mapping[str, int]
    """How many, by model; only models that have some."""

    @property
    def count(self) -> int:
        return sum(self.errors.values())

    @property
    def spec(self) -> RunSpec:
        """The run's question, of these models alone."""
        return self.plan.spec.model_copy(update={"agents": self.plan.spec.agents_named(self.errors)})

    @property
    def release(self) -> StoredRelease:
        return stored_release(self.plan.spec)

    def spending(self, usd: float | None, *, allow_unpriced: bool) -> Spending:
        """What the run may cost: what its last command was told, but for `usd` where that is given."""
        last = Snapshot.read(self.folder.progress())
        told = last.terms if last else Terms()
        whole = told.budget if usd is None else Budget(usd=usd, tokens=told.budget.tokens)
        return Spending(whole, told.each, allow_unpriced=allow_unpriced)

    def estimate(self) -> list[ModelEstimate]:
        """What it will cost."""
        return estimate_cost(self.spec, self.release, self.folder.uri, aim="retry")

    def __call__(self, how: Launch) -> Report:
        """Ask. Of `how`, `out` does not matter.

        Raises:
            UsageError: it cannot be carried out as asked; nothing was run.
            StoreError: the store refused or lost something; finished work is kept.
            Interrupted: as `launch`.
        """
        small = how.pool == "auto" and not how.address and self.count <= RAY_FROM
        pool = "local" if small else how.pool
        names = {agent.mock.replay for agent in self.spec.agents if agent.mock and agent.mock.replay}
        inputs = {name: self.folder.input(name) for name in names}
        return launch(self.spec, self.release, inputs, replace(how, aim="retry", at=self.folder.uri, pool=pool))

    def left(self) -> int:
        """How many there are by now."""
        return sum(_errors(self.plan, self.folder, self.errors).values())


def prepare_retry(run_uri: str, models: Sequence[str] = ()) -> Retry:
    """What there is to ask again of these models, or of all.

    Raises:
        UsageError: there is no run, or it has no such model.
        ReleaseError: its release is gone or damaged.
    """
    folder, plan = open_run(run_uri)
    names = [agent.name for agent in plan.spec.agents_named(models or None)]
    errors = _errors(plan, folder, names)
    return Retry(folder, plan, {name: errors[name] for name in names if errors[name]})


def _errors(plan: Plan, folder: RunFolder, names: Collection[str]) -> Counter[str]:
    """By model, how many counted rows are errors that asking again could mend."""
    commits, found = counting_commits(plan, folder, names), Counter[str]()
    for shard in plan.shards:
        if shard.id in commits:
            found[shard.agent.name] += commits[shard.id].counts.retryable
    return found
