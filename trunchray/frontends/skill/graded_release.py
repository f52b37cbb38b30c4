"""The cases of a skill run as a release whose rubrics are graded: for attempts that nobody has graded so far."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.core.agent import HarnessAgent
from trunchray.core.case import Case
from trunchray.core.checks import Check, RubricLine
from trunchray.engine.regrade import regrades_of
from trunchray.engine.stored import stored_release, stored_spec
from trunchray.errors import UsageError
from trunchray.frontends.case_release import store_cases


def rubric_checks(rubric: Sequence[str]) -> dict[str, Check]:
    """A check for each line, by the names `rubric-1` and so on."""
    return {f"rubric-{place}": RubricLine(text=line) for place, line in enumerate(rubric, 1)}


def graded_release(run_uri: str) -> StoredRelease | None:
    """A release that asks what the run has asked, and has its rubrics graded; None where the run's own does.

    Raises:
        UsageError: there is no run, it is none of a skill's cases, or no case has a rubric.
        ReleaseError: its release is gone or damaged.
        StoreError: the new one cannot be stored.
    """
    folder = RunFolder(run_uri)
    spec = stored_spec(folder)
    if not any(isinstance(agent, HarnessAgent) and not agent.trigger for agent in spec.agents):
        raise UsageError(f"run {spec.run_id!r} is no run of a skill's cases, and graders grade only those")
    before = stored_release(spec)
    table = before.cases()
    cases = [table[case_id] for case_id, _ in table.index]
    if any(isinstance(check, RubricLine) for case in cases for check in case.checks.values()):
        return None
    graded = [_graded(case) for case in cases]
    if graded == cases:
        raise UsageError(
            f"run {spec.run_id!r}: no case of it has a rubric; write some, and give the `trunchray skills run` command "
            "again with a grader"
        )
    release = before.release
    place = Store(f"{regrades_of(folder.uri)}/.releases")
    semantics = {**release.semantics, "rubric": "rubric/1"}
    return store_cases(release.title, release.evals[0].path, graded, place, semantics=semantics)


def _graded(case: Case) -> Case:
    """The case with a check for each line of its rubric, where it has one."""
    rubric = case.data.get("rubric") if isinstance(case.data, dict) else None
    lines = [line for line in rubric if isinstance(line, str)] if isinstance(rubric, list) else []
    return case.model_copy(update={"checks": rubric_checks(lines)}) if lines else case
