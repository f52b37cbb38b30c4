"""Grading stored answers anew, without asking a model: in a folder of its own, or within the run itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import ValidationError

from trunchray.adapters.lease import is_driven
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import AgentSpec, HarnessAgent, Pacing
from trunchray.core.content import same_questions
from trunchray.core.contrast import CaseList
from trunchray.core.digest import digest
from trunchray.core.flips import FlipReport, Graded
from trunchray.core.frozen import Frozen, first_problem
from trunchray.core.grader_spec import GraderSpec
from trunchray.core.plan import Plan, select
from trunchray.core.report import Report
from trunchray.core.run import Regrades, RunSpec, Selection
from trunchray.engine.flips import Earlier, graded_rows, write_flips
from trunchray.engine.launch import Launch, launch
from trunchray.engine.stored import counting_commits, open_run, stored_release
from trunchray.errors import UsageError

WIDE = 8
"""Shards of all models together that are graded at a time, beyond those that keep the workers busy."""
NAMED = 100
"""Cases that are named of those that are left out."""


class LeftOut(Frozen):
    """Cases that are not graded anew."""

    changed: CaseList = CaseList()
    """They ask something else now, or have other tools: a stored answer answers the question it was asked."""
    removed: CaseList = CaseList()
    """The new release has no such case."""
    added: CaseList = CaseList()
    """The old release had none, so nobody was asked."""


@dataclass(frozen=True)
class Regraded:
    """What came of it."""

    uri: str
    """Where the new rows are."""
    report: Report
    flips: FlipReport | None
    """None when it was stopped before all was graded."""


@dataclass(frozen=True)
class Regrade:
    """Answers of one run that a release is to grade anew, as a run below it."""

    source: RunFolder
    plan: Plan
    """Of the source."""
    spec: RunSpec
    release: StoredRelease
    left_out: LeftOut

    @property
    def uri(self) -> str:
        return f"{self._out}/{self.spec.run_id}"

    @property
    def _out(self) -> str:
        return regrades_of(self.source.uri)

    @property
    def _names(self) -> list[str]:
        return [agent.name for agent in self.spec.agents]

    @cached_property
    def lacking(self) -> str | None:
        """What to say when the source has not all the rows that it should have."""
        commits = counting_commits(self.plan, self.source, self._names)
        rows = sum(receipt.counts.rows for receipt in commits.values())
        planned = len(self.plan.evals) * self.plan.spec.attempts * len(self.spec.agents)
        if rows == planned:
            return None
        going = "is still going" if is_driven(self.source.store) else "is not complete"
        return (
            f"run {self.plan.spec.run_id!r} {going}: {rows:,} of {planned:,} trials have rows that count; the others "
            "are left out, and the same command grades them once they do"
        )

    def owed(self, report: Report) -> int:
        """How many trials of these models have no row yet."""
        return sum(model.not_run for model in report.models if model.name in self._names)

    def __call__(self, how: Launch) -> Regraded:
        """Grade what is not graded yet, and say what changed. Of `how`, `out` does not matter.

        Raises:
            UsageError: it cannot be carried out as asked; nothing was graded.
            StoreError: the store refused or lost something; what is graded is kept.
            Interrupted: as `launch`.
        """
        report = launch(self.spec, self.release, {}, replace(how, out=self._out))
        if how.stop.is_set():
            return Regraded(self.uri, report, None)
        folder, plan = open_run(self.uri)
        flips = write_flips(plan, folder, self._names, self._before)
        return Regraded(self.uri, report, flips)

    def _before(self, agent: str) -> Earlier:
        return _by_trial(graded_rows(self.plan, self.source, [agent]))


def regrades_of(run_uri: str) -> str:
    """The folder of a run's regrades."""
    return f"{run_uri}/regrades"


def prepare_regrade(
    run_uri: str,
    release: StoredRelease | None,
    *,
    name: str | None = None,
    models: Sequence[str] = (),
    grading: GraderSpec | None = None,
) -> Regrade:
    """What is to be done to grade the answers of these models, or of all, by a release, or by the run's own.

    Attempts of coding tools are graded by whoever graded them in the run, unless `grading` names somebody else.

    Raises:
        UsageError: there is no run, it has no such model, the name is none, no case is asked as it was, or nobody is
            there who grades a skill's attempts.
        ReleaseError: the run's release is gone or damaged.
    """
    source, plan = open_run(run_uri)
    spec = plan.spec
    agents = spec.agents_named(models or None)
    before = stored_release(spec)
    after = release or before
    selection, left_out = spec.selection, LeftOut()
    if after.release.digest != spec.release_digest:
        selection, left_out = _common(plan, before, after)
    grader = grading or spec.grading
    if grader is None and any(isinstance(agent, HarnessAgent) and not agent.trigger for agent in agents):
        raise UsageError(
            f"run {spec.run_id!r}: nobody has graded it, and nobody is named who does; give --grader MODEL or "
            "--grader-harness JSON"
        )
    try:
        wanted = RunSpec(
            run_id=name or _name(after, grading),
            title=after.release.title,
            release=after.uri,
            release_digest=after.release.digest,
            agents=agents if grader else _unpaced(agents, spec.shard_size),
            attempts=spec.attempts,
            selection=selection,
            seed=spec.seed,
            shard_size=spec.shard_size,
            regrades=Regrades(run=source.uri),
            grading=grader,
        )
    except ValidationError as e:
        raise UsageError(f"--name {name!r}: {first_problem(e)}") from e
    return Regrade(source, plan, wanted, after, left_out)


def _name(release: StoredRelease, grading: GraderSpec | None) -> str:
    """One for each release, and for each grader that is named."""
    graded = release.release.digest
    return f"regrade-{(digest([graded, grading.asked]) if grading else graded)[:12]}"


def regrade_errors(run_uri: str, models: Sequence[str], how: Launch) -> Regraded | None:
    """Grade again, within the run, what only grading failed on; None when there is no such row.

    Raises:
        UsageError: there is no run, it has no such model, or somebody drives it.
        ReleaseError: its release is gone or damaged.
        StoreError, Interrupted: as `launch`.
    """
    folder, plan = open_run(run_uri)
    agents = [agent.name for agent in plan.spec.agents_named(models or None)]
    commits = counting_commits(plan, folder, agents)
    shards = {shard for shard, receipt in commits.items() if receipt.counts.error}
    failed = _failed_in_grading(plan, folder, agents, shards)
    if not failed:
        return None
    spec = plan.spec.model_copy(update={"agents": plan.spec.agents_named(failed)})
    report = launch(spec, stored_release(plan.spec), {}, replace(how, aim="regrade", at=folder.uri))
    if how.stop.is_set():
        return Regraded(folder.uri, report, None)
    flips = write_flips(plan, RunFolder(folder.uri), list(failed), lambda agent: failed[agent], shards)
    return Regraded(folder.uri, report, flips)


def _failed_in_grading(
    plan: Plan, folder: RunFolder, agents: Collection[str], shards: Collection[str]
) -> Mapping[str, Earlier]:
    """By model; only of those that have such rows."""
    found = {
        agent: _by_trial(row for row in graded_rows(plan, folder, [agent], shards) if row.gradable) for agent in agents
    }
    return {agent: rows for agent, rows in found.items() if rows}


def _by_trial(rows: Iterable[Graded]) -> dict[tuple[int, str], Graded]:
    return {(row.attempt, row.case_id): row for row in rows}


def _unpaced(agents: Sequence[AgentSpec], shard_size: int) -> tuple[AgentSpec, ...]:
    """The same agents: nobody is asked, so nobody has to be spared; what bounds the shards at a time is memory."""
    pacing = Pacing(max_in_flight=max(1, WIDE // len(agents)) * shard_size)
    return tuple(agent.model_copy(update={"pacing": pacing, "quota": None}) for agent in agents)


def _common(plan: Plan, before: StoredRelease, after: StoredRelease) -> tuple[Selection, LeftOut]:
    """The planned cases that both releases ask alike, and the others.

    Raises:
        UsageError: there is none.
    """
    old, new = before.cases(), after.cases()
    same = same_questions(before.release, after.release)
    there = [case_id for case_id in plan.evals if case_id in new]
    common = {case_id for case_id in there if same(old[case_id], new[case_id])}
    left_out = LeftOut(
        changed=CaseList.of((case_id for case_id in there if case_id not in common), NAMED),
        removed=CaseList.of((case_id for case_id in plan.evals if case_id not in new), NAMED),
        added=CaseList.of((case_id for case_id, _ in new.index if case_id not in old), NAMED),
    )
    if not common:
        raise UsageError(
            f"no case of run {plan.spec.run_id!r} is asked alike in release {after.release.digest[:12]}: "
            f"{left_out.changed.count:,} are asked otherwise, {left_out.removed.count:,} are gone; an answer answers "
            "the question it was asked, so run that release instead"
        )
    index = new.index
    with suppress(UsageError):
        if {case_id for case_id, _ in select(plan.spec.selection, index)} == common:
            return plan.spec.selection, left_out
    return Selection(cases=tuple(case_id for case_id, _ in index if case_id in common)), left_out
