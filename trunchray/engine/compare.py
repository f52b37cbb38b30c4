"""The counted rows of stored runs, laid side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trunchray.adapters.lease import is_driven
from trunchray.adapters.releases import StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.comparison import Comparison, ComparisonReport, Contender, all_adjusted, compare, regradable
from trunchray.core.content import contents, same_questions
from trunchray.core.matching import Matching, match, match_answers
from trunchray.core.plan import Plan
from trunchray.core.report import Planned, PlannedModel
from trunchray.core.tally import Tally
from trunchray.engine.aggregate import tally_rows
from trunchray.engine.stored import open_run
from trunchray.errors import UsageError

LISTED = 100
"""Cases that each list names when more than one pair is compared."""


@dataclass(frozen=True)
class CountedRun:
    """A stored run and the counted rows of some of its models."""

    uri: str
    plan: Plan
    planned: Planned
    tally: Tally
    notes: tuple[str, ...]
    """Why not every trial is counted: parts that cannot be read, a run still going."""

    @property
    def name(self) -> str:
        return self.plan.spec.run_id

    @property
    def models(self) -> list[str]:
        """The names of all models of the run."""
        return [model.name for model in self.planned.models]

    def contender(self, name: str) -> Contender:
        """One of the models whose rows were counted."""
        model = self._planned(name)
        sheet = self.tally.sheet(model, self.plan.evals)
        return Contender(self.plan.spec, self.tally.model(model), sheet)

    @cached_property
    def contents(self) -> Mapping[str, str]:
        """The digest of the content of each planned case.

        Raises:
            ReleaseError: the release is gone or damaged.
        """
        content = contents(self.release.release)
        return {case.id: content(case) for case in self.release.cases() if case.id in self.plan.evals}

    @cached_property
    def release(self) -> StoredRelease:
        return open_release(self.plan.spec.release)

    @cached_property
    def answers(self) -> str:
        """Where the answers were asked for that the run holds: in itself, or in the run that it regrades.

        A regrade lies below that run, also when both were moved; alone, it says where that was.
        """
        uri, spec = self.uri, self.plan.spec
        while spec.regrades:
            above = uri.rpartition("/regrades/")[0]
            source = RunFolder(above).spec() if above else None
            if source is None:
                return spec.regrades.run
            uri, spec = above, source
        return uri

    def _planned(self, name: str) -> PlannedModel:
        return next(model for model in self.planned.models if model.name == name)


def read_counted(run_uri: str, models: Collection[str] | None = None) -> CountedRun:
    """The run at `run_uri` and the counted rows of these of its models, or of all.

    Raises:
        UsageError: there is no run, or it has no such model.
        ReleaseError: its release is gone or damaged.
    """
    folder, plan = open_run(run_uri)
    wanted = [agent.name for agent in plan.spec.agents_named(models)]
    planned = Planned.of(plan)
    tally, damaged = tally_rows(plan, folder, planned, wanted)
    notes = [f"{', '.join(paths)}: missing or damaged, the trials there are not counted" for paths in damaged.values()]
    counted = [tally.model(model) for model in planned.models if model.name in wanted]
    owed, whole = sum(model.not_run for model in counted), sum(model.planned for model in counted)
    if owed:
        going = "is still going" if is_driven(folder.store) else "is not complete"
        notes.append(f"{plan.spec.run_id} {going}: {whole - owed:,} of {whole:,} trials are counted")
    return CountedRun(folder.uri, plan, planned, tally, tuple(notes))


def compare_models(run_uri: str, models: Sequence[str] = ()) -> ComparisonReport:
    """Models of one run against each other: every later one against every earlier one.

    `models` names them in the order wanted; without it they are all models of the run.

    Raises:
        UsageError: there is no run, it has no such model, or there are not two.
    """
    run = read_counted(run_uri, models or None)
    names = list(dict.fromkeys(models or run.models))
    if len(names) < 2:
        raise UsageError(
            f"run {run.name!r} has one model, {names[0]!r}; name a second run to compare it with"
            if not models
            else f"--models {' '.join(models)}: give two different models"
        )
    pairs = [(first, second) for place, second in enumerate(names) for first in names[:place]]
    same = match_cases(run, run, pairs)
    limit = None if len(pairs) == 1 else LISTED
    contenders = {name: run.contender(name) for name in names}
    found = [
        compare(contenders[first], contenders[second], same, sources=run.planned.sources, limit=limit)
        for first, second in pairs
    ]
    return ComparisonReport(comparisons=all_adjusted(found), notes=run.notes)


def compare_runs(first_uri: str, second_uri: str, models: tuple[str, str] | None = None) -> ComparisonReport:
    """The second run against the first: each model that both have; or two named ones, one of each.

    When each has one model only, these two are compared, whatever they are called.

    Raises:
        UsageError: there is no run, or it has no such model, or the two have no model or no case in common.
    """
    first = read_counted(first_uri, models[:1] if models else None)
    second = read_counted(second_uri, models[1:] if models else None)
    pairs = [models] if models else paired_models(first, second)
    if not pairs:
        raise UsageError(
            f"the runs have no model in common: {first.name!r} has {', '.join(first.models)}, {second.name!r} has "
            f"{', '.join(second.models)}; name one of each with --models"
        )
    matching = match_cases(first, second, pairs)
    if not matching.alike:
        raise UsageError(_nothing_shared(first, second, matching))
    limit = None if len(pairs) == 1 else LISTED
    found = [_compared(first, second, pair, matching, limit) for pair in pairs]
    return ComparisonReport(
        comparisons=all_adjusted(found),
        only_first=tuple(name for name in first.models if models is None and name not in {one for one, _ in pairs}),
        only_second=tuple(name for name in second.models if models is None and name not in {two for _, two in pairs}),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def paired_models(first: CountedRun, second: CountedRun) -> list[tuple[str, str]]:
    """The models that are compared when none are named."""
    if len(first.models) == len(second.models) == 1:
        return [(first.models[0], second.models[0])]
    return [(name, name) for name in second.models if name in first.models]


def match_cases(first: CountedRun, second: CountedRun, models: Sequence[tuple[str, str]]) -> Matching:
    """Which cases of two runs are the same for these models, one of each: those whose content is.

    Where one run regrades the other, or both the same one, the same models have the same answers, however they are
    graded: there it is those that ask the same.

    Raises:
        ReleaseError: the releases differ, and one of them is gone or damaged.
    """
    if _same_answers(first, second) and all(one == other for one, other in models):
        return _match_answers(first, second)
    if first.plan.spec.release_digest == second.plan.spec.release_digest:
        return match(*({case: case for case in run.plan.evals} for run in (first, second)))
    found = match(first.contents, second.contents)
    return replace(found, regradable=len(_asking_the_same(first, second, found.changed))) if found.changed else found


def _same_answers(first: CountedRun, second: CountedRun) -> bool:
    regraded = first.plan.spec.regrades or second.plan.spec.regrades
    return bool(regraded) and first.uri != second.uri and first.answers == second.answers


def _match_answers(first: CountedRun, second: CountedRun) -> Matching:
    shared = first.plan.evals.keys() & second.plan.evals.keys()
    return match_answers(first.contents, second.contents, _asking_the_same(first, second, shared))


def _asking_the_same(first: CountedRun, second: CountedRun, shared: Collection[str]) -> set[str]:
    """Those of the shared cases that ask the same in both releases."""
    same = same_questions(first.release.release, second.release.release)
    old, new = first.release.cases(), second.release.cases()
    return {case for case in shared if same(old[case], new[case])}


def _nothing_shared(first: CountedRun, second: CountedRun, matching: Matching) -> str:
    """What differs between two runs of which no case is the same."""
    one, other = (f"{run.name!r} ({run.plan.spec.title})" for run in (first, second))
    known = len(matching.changed)
    alone = ((matching.removed, one), (matching.added, other))
    differs = [f"{known:,} are in both by id, but with other prompts, tools, data or checks"] if known else []
    differs += [f"{len(cases):,} are in {name} alone" for cases, name in alone if cases]
    said = f"the runs have no case in common, so there is nothing to compare: {', '.join(differs)}"
    return "; ".join([said, *regradable(matching)])


def _compared(
    first: CountedRun, second: CountedRun, pair: tuple[str, str], matching: Matching, limit: int | None
) -> Comparison:
    one, other = first.contender(pair[0]), second.contender(pair[1])
    return compare(one, other, matching, sources=second.planned.sources, limit=limit)
