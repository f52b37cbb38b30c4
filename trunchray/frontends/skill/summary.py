"""What came of the attempts of a run: `execution-summary.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from trunchray.adapters.attempt_folder import STDERR, TIMING
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.core.agent import HarnessAgent
from trunchray.core.attempt import FAILURES, AttemptTiming
from trunchray.core.frozen import Frozen, first_problem
from trunchray.core.rubric import Summary
from trunchray.core.staging import Staging, run_around
from trunchray.core.timestamp import timestamp
from trunchray.core.well_formed import as_file
from trunchray.engine.stored import stored_release, stored_spec
from trunchray.errors import UsageError
from trunchray.frontends.skill.graded_rows import GradedRow, Key, read_rows
from trunchray.frontends.skill.run_folder import GRADED_BY
from trunchray.frontends.skill.session import Ran

EXECUTION = "execution-summary.json"
TAIL = 2000
"""Characters of the end of an error stream that are told."""


class AttemptResult(Frozen):
    """One attempt."""

    case_id: str
    config: str
    run: int
    """From 1."""
    status: str
    case_dir: str
    elapsed_s: float
    return_code: int | None
    tokens: int
    """Read and written; 0 also where the tool reports none."""
    tokens_reported: bool
    steps: int
    """Turns of the model."""
    tool_calls: dict[str, int]
    error_tail: str
    """The end of `stderr.txt`, and the reason, of an attempt that is not ok."""
    grading: Summary | None = None
    """None where nobody graded it."""
    grading_error: str | None = None
    """Why there are no grades, where there should be some."""

    @property
    def understood(self) -> bool:
        """Whether anything that the tool printed could be read as an event."""
        return self.tokens_reported or self.steps > 0 or bool(self.tool_calls)


class AboutRun(BaseModel):
    """What a summary takes from `run.json`, which holds more."""

    model_config = ConfigDict(frozen=True)

    mode: str
    harness: str


class ExecutionSummary(Frozen):
    """All attempts of a run, by config, case and run."""

    run_id: str
    completed_at: str
    """UTC."""
    mode: str
    harness: str
    total: int
    executed: int
    """Attempts with the status ok."""
    skipped: int
    failures: int
    """Attempts that should have given an answer and did not."""
    not_kept: int
    """Of these, how many left nothing because their place failed: they are run again."""
    grading_errors: int
    graded_by: str | None = None
    """The regrade in the run folder whose verdicts these are; None: they are the run's own."""
    run_dir: str
    results: tuple[AttemptResult, ...]

    @property
    def unread(self) -> bool:
        """Whether of no attempt that ended well any event could be read, though there are some such attempts."""
        ended = [result for result in self.results if result.status == "ok"]
        return bool(ended) and not any(result.understood for result in ended)

    @property
    def exit_code(self) -> int:
        """3 when no harness is recorded; 1 when an attempt failed or could not be graded; 0."""
        return 3 if self.skipped else 1 if self.failures or self.grading_errors else 0


def summarise(
    ran: Ran,
    case_ids: Sequence[str],
    configs: Sequence[str],
    mode: str,
    *,
    harness: str,
    now: datetime,
    graded_by: str | None = None,
) -> ExecutionSummary:
    """The summary of a run all of whose attempts have ended, which is stored, too.

    `harness` says where that is from. `graded_by` is the path of a regrade in the run folder whose verdicts count. None
    is for the one that the last summary names, or else the run itself.

    Raises:
        StoreError: the store failed.
    """
    rows = read_rows(ran.engine)
    graded_by = graded_by or _graded_by(ran.folder)
    grades = read_rows(f"{ran.folder.uri}/{graded_by}") if graded_by else rows
    timings = read_timings(ran, [(config, id_) for config in configs for id_ in case_ids], rows, now)
    tails = _tails(ran, timings)
    results = tuple(_result(ran, key, timing, grades.get(key), tails.get(key, "")) for key, timing in timings.items())
    statuses = [result.status for result in results]
    summary = ExecutionSummary(
        run_id=ran.run_id,
        completed_at=timestamp(now),
        mode=mode,
        harness=harness,
        total=len(results),
        executed=statuses.count("ok"),
        skipped=statuses.count("skipped"),
        failures=sum(status in FAILURES for status in statuses),
        not_kept=sum(row.not_kept for row in rows.values()),
        grading_errors=sum(result.grading_error is not None for result in results),
        graded_by=graded_by,
        run_dir=ran.folder.uri,
        results=results,
    )
    ran.folder.write(EXECUTION, as_file(summary.model_dump(mode="json")))
    return summary


def summarise_again(run_uri: str, now: datetime, regrade_uri: str | None = None) -> ExecutionSummary | None:
    """The same once a run of the engine has other rows; None where it is none of a skill's cases, or has not ended.

    The verdicts of a regrade count where the run has no grader of its own: those of this one, or of the last one.

    Raises:
        UsageError: there is no run.
        ReleaseError: its release is gone or damaged.
        StoreError: the store failed.
    """
    about = about_skill_run(run_uri)
    run = RunFolder(run_uri)
    spec = stored_spec(run)
    first = spec.agents[0]
    if about is None or not isinstance(first, HarnessAgent):
        return None
    around = run_around(run.uri)
    folder = Store(around)
    ran = Ran(folder, Staging.model_validate_json(run.input(first.staging)))
    graded_by = regrade_uri.removeprefix(f"{around}/") if regrade_uri else None
    return summarise(
        ran,
        [case_id for case_id, _ in stored_release(spec).cases().index],
        [agent.name for agent in spec.agents],
        about.mode,
        harness=about.harness,
        now=now,
        graded_by=None if spec.grading else graded_by,
    )


def about_skill_run(run_uri: str) -> AboutRun | None:
    """What its summary takes from `run.json`, for a run of the engine; None as `summarise_again` says.

    Raises:
        UsageError: there is no run, or nobody can tell what it is about.
        StoreError: the store failed.
    """
    run = RunFolder(run_uri)
    around = run_around(run.uri)
    folder = Store(around)
    if around == run.uri or not isinstance(stored_spec(run).agents[0], HarnessAgent) or not folder.exists(EXECUTION):
        return None
    try:
        return AboutRun.model_validate_json(folder.read("run.json"))
    except FileNotFoundError as e:
        raise UsageError(f"{around}/run.json is gone, and the run's summary needs it; put it back") from e
    except ValidationError as e:
        raise UsageError(
            f"{around}/run.json is damaged ({first_problem(e)}), and the run's summary needs it; put it back"
        ) from e


def _graded_by(folder: Store) -> str | None:
    """What the last summary says of that; one that is damaged, or names a regrade that is gone, says nothing.

    Of a run that has a grader of its own no summary names a regrade.
    """
    try:
        found = from_json(folder.read(EXECUTION)).get(GRADED_BY)
    except (ValueError, AttributeError, FileNotFoundError):
        return None
    return found if isinstance(found, str) and folder.exists(f"{found}/run.json") else None


def read_timings(
    ran: Ran, wanted: Sequence[tuple[str, str]], rows: Mapping[Key, GradedRow], now: datetime
) -> dict[Key, AttemptTiming]:
    """By config, case and run, in the order of `wanted`, what is known of each attempt.

    One of which nothing is known, because it could not be stored or is damaged, has the status exception, and the
    reason that its row gives.

    Raises:
        StoreError: the store failed.
    """
    runs = range(1, ran.staging.runs + 1)
    keys = [(config, case_id, run) for config, case_id in wanted for run in runs]
    places = {key: f"{_folder(ran, key)}/{TIMING}" for key in keys}
    contents = ran.folder.read_there(places.values())
    return {key: _timing(ran, key, contents.get(place), rows.get(key), now) for key, place in places.items()}


def _timing(ran: Ran, key: Key, content: bytes | None, row: GradedRow | None, now: datetime) -> AttemptTiming:
    config, case_id, _ = key
    name, place = ran.staging.cases[case_id].name, f"{_folder(ran, key)}/{TIMING}"
    if content is None:
        why = (row and row.failure) or f"{place} is missing"
    else:
        try:
            found = AttemptTiming.model_validate_json(content)
            if (found.case_id, found.config) == (name, config):
                return found
            why = f"{place} is damaged: it is of {found.case_id!r} and {found.config!r}"
        except ValidationError:
            why = f"{place} is damaged"
        why += "; move the run folder elsewhere, and the same command begins anew"
    return AttemptTiming(case_id=name, config=config, status="exception", captured_at=timestamp(now), reason=why)


def _result(ran: Ran, key: Key, timing: AttemptTiming, row: GradedRow | None, tail: str) -> AttemptResult:
    ok = timing.status == "ok"
    return AttemptResult(
        case_id=timing.case_id,
        config=timing.config,
        run=key[2],
        status=timing.status,
        case_dir=_folder(ran, key),
        elapsed_s=timing.elapsed_s,
        return_code=timing.return_code,
        tokens=timing.total_tokens,
        tokens_reported=timing.tokens_reported,
        steps=timing.total_steps,
        tool_calls=timing.tool_calls,
        error_tail="" if ok else f"{tail}\n{timing.reason or ''}".strip()[-TAIL:],
        grading=row.grades if row else None,
        grading_error=row.failure if row and ok else None,
    )


def _tails(ran: Ran, timings: Mapping[Key, AttemptTiming]) -> dict[Key, str]:
    """The end of what each attempt that is not ok has printed as errors."""
    places = {key: f"{_folder(ran, key)}/{STDERR}" for key, timing in timings.items() if timing.status != "ok"}
    ends = ran.folder.read_there(places.values(), last=4 * TAIL)
    return {key: ends[place].decode(errors="replace") for key, place in places.items() if place in ends}


def _folder(ran: Ran, key: Key) -> str:
    return ran.staging.folder(*key)
