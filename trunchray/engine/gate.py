"""Limits on stored runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trunchray.core.comparison import unlike
from trunchray.core.contrast import CaseList
from trunchray.core.false_alarms import against_itself, claimed, judges_against
from trunchray.core.gate import Gate
from trunchray.core.gate_facts import Candidate, Facts
from trunchray.core.judge import judge
from trunchray.core.matching import Matching
from trunchray.core.names import nearest
from trunchray.core.verdicts import AAReport, GateReport
from trunchray.engine.compare import CountedRun, match_cases, paired_models, read_counted
from trunchray.errors import UsageError

NAMED = 10
"""Cases that a note names of each kind."""


def judge_run(run_uri: str, gate: Gate, compare_uri: str | None = None) -> GateReport:
    """Every limit of the gate for every model of the run that it judges, against the run at `compare_uri`, if any.

    Raises:
        UsageError: there is no run, or the gate names a model or an eval that it does not have.
        ReleaseError: a release is gone or damaged.
    """
    run = _counted(run_uri, gate)
    names = _judged(run, gate)
    if compare_uri is None:
        notes = [*run.notes, *([_NOT_COMPARED] if _compares(gate) else [])]
        candidates = [Candidate(run.contender(name)) for name in names]
        return judge(gate, candidates, sources=run.planned.sources, notes=notes)
    before = read_counted(compare_uri)
    paired = paired_models(before, run)
    matching = match_cases(before, run, paired)
    pairs = {second: first for first, second in paired}
    candidates = [
        Candidate(run.contender(name), before.contender(pairs[name]) if name in pairs else None, matching.alike)
        for name in names
    ]
    notes = [*dict.fromkeys((*run.notes, *before.notes)), *_not_the_same(matching)]
    found = [unlike(each.baseline, each.contender, matching) for each in candidates if each.baseline]
    notes += dict.fromkeys(note for told in found for note in told)
    return judge(gate, candidates, compared_with=before.name, sources=run.planned.sources, notes=notes)


def judge_itself(run_uri: str, gate: Gate) -> AAReport:
    """How often the gate's limits against another run fail models of the run that are compared with themselves.

    Raises:
        UsageError: as `judge_run`; or there are no such limits, or no model was asked any case twice.
    """
    run = _counted(run_uri, gate)
    laid = [Facts.of(Candidate(run.contender(name)), run.planned.sources) for name in _judged(run, gate)]
    if not any(judges_against(gate, facts) for facts in laid):
        raise UsageError("--aa tries limits against another run (drop and max_drop), and the gate has none")
    tried = [(facts.report.name, against_itself(gate, facts)) for facts in laid]
    once = ", ".join(name for name, found in tried if found is None)
    found = tuple(found for _, found in tried if found)
    why = f"no case of {once} has two attempts with a verdict"
    if not found:
        raise UsageError(f"--aa: {why} (attempts: {laid[0].attempts}); run it with --attempts 4 or more")
    return AAReport(run=run.name, claimed=claimed(gate, laid[0]), models=found, notes=(why,) if once else ())


def _not_the_same(matching: Matching) -> Iterator[str]:
    """Which cases only one of the runs has as they are, if any."""
    kinds = (("changed", matching.changed), ("added", matching.added), ("removed", matching.removed))
    if any(cases for _, cases in kinds):
        told = [f"{len(cases):,} {kind}{_named(cases)}" for kind, cases in kinds]
        yield f"{len(matching.alike):,} cases are the same in both runs; {', '.join(told)}"


def _named(cases: Collection[str]) -> str:
    return f" ({CaseList.of(cases).named(NAMED)})" if cases else ""


_NOT_COMPARED = "drop and max_drop were not judged, as there is no run to compare with; name one with --compare"


def _counted(run_uri: str, gate: Gate) -> CountedRun:
    """The run, once it is clear that it has what the gate names."""
    run = read_counted(run_uri, gate.models)
    known = set(run.plan.evals.values())
    for name in gate.evals:
        if name not in known:
            raise UsageError(
                f"the gate limits eval {name!r}, which run {run.name!r} does not have{nearest(name, known)}"
            )
    return run


def _judged(run: CountedRun, gate: Gate) -> list[str]:
    """The names of the models that the gate judges, in the run's order."""
    return [name for name in run.models if gate.models is None or name in gate.models]


def _compares(gate: Gate) -> bool:
    limits = [limit for limit in (gate.overall, gate.each, *gate.evals.values()) if limit]
    return any(limit.drop is not None or limit.max_drop is not None for limit in limits)
