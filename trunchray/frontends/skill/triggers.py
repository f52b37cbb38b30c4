"""`trunchray skills triggers`: how often a coding tool loads a skill for queries that should, and should not, load it.

Only the skill's name and description are there, with a body that asks for a word; a run that says the word has loaded
the skill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import Field, JsonValue

from trunchray.core.agent import TriggerSkill
from trunchray.core.attempt import AttemptTiming
from trunchray.core.attempt_statistics import SETTLED
from trunchray.core.case import Case, CaseInput, Origin
from trunchray.core.checks import Triggered
from trunchray.core.frozen import Frozen
from trunchray.core.release import slug
from trunchray.core.staging import StagedCase
from trunchray.core.timestamp import timestamp
from trunchray.core.well_formed import as_file
from trunchray.errors import UsageError
from trunchray.frontends.skill.discovery import locate
from trunchray.frontends.skill.graded_rows import read_rows
from trunchray.frontends.skill.harness_file import FoundHarness, find_harness
from trunchray.frontends.skill.labels import run_label
from trunchray.frontends.skill.project import project_of
from trunchray.frontends.skill.session import (
    HarnessConfig,
    How,
    Question,
    Ran,
    announce,
    carry_out,
    check_outside,
    told_of,
)
from trunchray.frontends.skill.skill_md import SkillMd, read_skill_md, skill_folder
from trunchray.frontends.skill.summary import read_timings
from trunchray.frontends.skill.trigger_file import TriggerQuery, read_queries

RESULT = "triggers-result.json"
CONFIG = "skill"
"""The only config there is."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked for. None: as the documented defaults say."""

    skill_path: str
    queries: str | None = None
    project_root: str | None = None
    harness: str | None = None
    runs_per_query: int = 3
    threshold: float = 0.5
    """The share of runs, from 0 (exclusive) to 1, from which on a query counts as triggering."""
    timeout: float = 180
    workers: int = 4


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is asked, what `run.json` says of it, and what it was read from."""

    folder: Path
    skill: SkillMd
    file: Path
    queries: Sequence[TriggerQuery]
    found: FoundHarness
    question: Question
    about: Mapping[str, JsonValue]


class QueryResult(Frozen):
    """One query."""

    query: str
    should_trigger: bool
    trigger_rate: float | None
    """Loads by runs that were measured, to three decimals; None where none was."""
    triggers: int
    """Runs that loaded the skill."""
    runs: int
    """Runs that were measured: they ended well and printed something."""
    errors: tuple[str, ...]
    """What became of the others."""
    passed: bool | None = Field(serialization_alias="pass")
    """None: not all runs were measured."""


class Counts(Frozen):
    """Of queries."""

    total: int
    passed: int
    failed: int
    unmeasured: int


class TriggersResult(Frozen):
    """What `triggers-result.json` holds."""

    run_id: str
    completed_at: str
    skill_name: str
    description: str
    harness: str
    status: str
    """`skipped` when no harness is recorded, else `completed`."""
    settled: bool
    """Whether each query had at least three runs; fewer are a quick look."""
    threshold: float
    not_kept: int = 0
    """Runs that left nothing because their place failed: they are run again."""
    results: tuple[QueryResult, ...]
    summary: Counts

    @property
    def exit_code(self) -> int:
        """3 when no harness is recorded; 1 when a query could not be measured; 0, whatever was measured."""
        return 3 if self.status == "skipped" else 1 if self.summary.unmeasured else 0

    def to_json(self) -> dict[str, JsonValue]:
        """As it is stored and printed."""
        return self.model_dump(mode="json", by_alias=True)


def run_triggers(options: Options, how: How) -> tuple[Ran, TriggersResult]:
    """Run what no earlier command of the same kind has, and judge each query.

    Raises:
        UsageError: something that was named is missing or wrong; nothing ran.
        StoreError: the store refused or lost something; finished attempts are kept.
        Interrupted: not all attempts have ended; the same command continues.
    """
    asked = prepare(options)
    check_outside(how.out, [asked.folder])
    announce(how.observer, None if options.queries else asked.file, None if options.harness else asked.found)
    ran = carry_out(asked.question, how, asked.about)
    result = _judged(ran, options, asked, how.now())
    ran.folder.write(RESULT, as_file(result.to_json()))
    return ran, result


def prepare(options: Options) -> Prepared:
    """Read all that is named; nothing is written.

    Raises:
        UsageError: something is missing or wrong.
    """
    if not 0 < options.threshold <= 1:
        raise UsageError(f"--threshold {options.threshold:g}: must be more than 0 and at most 1")
    folder = skill_folder(options.skill_path)
    skill = read_skill_md(folder)
    project = project_of(folder, options.project_root)
    file = locate("triggers.json", options.queries, folder, project and project.folder)
    queries = read_queries(file)
    found = find_harness(options.harness, project)
    question = _question(options, skill, queries, found, file)
    about: dict[str, JsonValue] = {
        "skill_path": str(folder),
        "queries_file": str(file),
        "skill_name": skill.name,
        "description": skill.description,
        **told_of(found),
        "query_count": len(queries),
        "runs_per_query": options.runs_per_query,
        "threshold": options.threshold,
    }
    return Prepared(folder, skill, file, queries, found, question, about)


def _question(
    options: Options, skill: SkillMd, queries: Sequence[TriggerQuery], found: FoundHarness, file: Path
) -> Question:
    title, trigger = f"{skill.name} triggers", TriggerSkill(name=skill.name, description=skill.description)
    return Question(
        label=run_label(skill.name, "triggers"),
        title=title,
        source=str(file),
        cases=[_case(query, title, file) for query in queries],
        staged={query.folder: StagedCase(folder=query.folder) for query in queries},
        layout="queries",
        configs=[HarnessConfig(CONFIG, found.harness, options.timeout, options.workers, trigger=trigger)],
        attempts=options.runs_per_query,
        grading=None,
        inputs={},
        ending=RESULT,
        threshold=options.threshold,
    )


def _case(query: TriggerQuery, title: str, file: Path) -> Case:
    return Case(
        id=query.folder,
        eval_id=slug(title),
        title=query.query,
        input=CaseInput(prompt=query.query),
        checks={"triggered": Triggered(expected=query.should_trigger)},
        source=Origin(path=str(file), row=query.index + 1),
    )


def _judged(ran: Ran, options: Options, asked: Prepared, now: datetime) -> TriggersResult:
    skill, found = asked.skill, asked.found
    rows = read_rows(ran.engine)
    timings = read_timings(ran, [(CONFIG, query.folder) for query in asked.queries], rows, now)
    runs = range(1, options.runs_per_query + 1)
    results = tuple(
        judge(query, [timings[CONFIG, query.folder, run] for run in runs], options.threshold) for query in asked.queries
    )
    verdicts = [result.passed for result in results]
    return TriggersResult(
        run_id=ran.run_id,
        completed_at=timestamp(now),
        skill_name=skill.name,
        description=skill.description,
        harness=found.source,
        status="completed" if found.harness else "skipped",
        settled=options.runs_per_query >= SETTLED,
        threshold=options.threshold,
        not_kept=sum(row.not_kept for row in rows.values()),
        results=results,
        summary=Counts(
            total=len(results),
            passed=verdicts.count(True),
            failed=verdicts.count(False),
            unmeasured=verdicts.count(None),
        ),
    )


def judge(query: TriggerQuery, timings: Sequence[AttemptTiming], threshold: float) -> QueryResult:
    """A query is measured when all its runs are: the rate is at least the threshold, or should be below it."""
    ended = [timing for timing in timings if _is_measured(timing)]
    loads = sum(bool(timing.loaded) for timing in ended)
    rate = loads / len(ended) if ended else None
    passed = None
    if rate is not None and len(ended) == len(timings):
        passed = (rate >= threshold) == query.should_trigger
    return QueryResult(
        query=query.query,
        should_trigger=query.should_trigger,
        trigger_rate=None if rate is None else round(rate, 3),
        triggers=loads,
        runs=len(ended),
        errors=tuple(_error(timing) for timing in timings if timing.status != "skipped" and not _is_measured(timing)),
        passed=passed,
    )


def _is_measured(timing: AttemptTiming) -> bool:
    """A tool that ended well and printed nothing could not have said that it loaded the skill."""
    return timing.status == "ok" and timing.loaded is not None


def _error(timing: AttemptTiming) -> str:
    if timing.status == "ok":
        return timing.reason or "nobody can tell whether the skill was loaded"
    return f"{timing.status}: {timing.reason}" if timing.reason else timing.status
