"""What came of the attempts of a run: `execution-summary.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from trunchray.adapters.store import Store
from trunchray.core.attempt import FAILURES, AttemptTiming
from trunchray.core.frozen import Frozen
from trunchray.engine.rows import open_rows
from trunchray.errors import StoreError
from trunchray.frontends.skill.harness_file import FoundHarness
from trunchray.frontends.skill.run_folder import as_file
from trunchray.frontends.skill.session import Ran

EXECUTION = "execution-summary.json"
TAIL = 2000
"""Characters of the end of an error stream that are told."""


class Grades(Frozen):
    """How many lines of a rubric were found met."""

    passed: int
    failed: int
    total: int
    pass_rate: float


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
    """Read and written."""
    tool_calls: dict[str, int]
    error_tail: str
    """The end of `stderr.txt`, and the reason, of an attempt that is not ok."""
    grading: Grades | None = None
    """None where nobody graded it."""
    grading_error: str | None = None
    """Why there are no grades, where there should be some."""


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
    grading_errors: int
    run_dir: str
    results: tuple[AttemptResult, ...]

    @property
    def exit_code(self) -> int:
        """3 when no harness is recorded; 1 when an attempt failed or could not be graded; 0."""
        return 3 if self.skipped else 1 if self.failures or self.grading_errors else 0


def now() -> str:
    """UTC, to the second, as ISO 8601 with a Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def summarise(
    ran: Ran, case_ids: Sequence[str], configs: Sequence[str], mode: str, found: FoundHarness
) -> ExecutionSummary:
    """The summary of a run all of whose attempts have ended, which is stored, too.

    Raises:
        StoreError: an attempt cannot be read.
    """
    graded = _gradings(ran.engine)
    timings = read_timings(ran, [(config, id_) for config in configs for id_ in case_ids])
    results = tuple(
        _result(ran, config, run, timing, graded.get((config, id_, run)))
        for (config, id_, run), timing in timings.items()
    )
    statuses = [result.status for result in results]
    summary = ExecutionSummary(
        run_id=ran.run_id,
        completed_at=now(),
        mode=mode,
        harness=found.source,
        total=len(results),
        executed=statuses.count("ok"),
        skipped=statuses.count("skipped"),
        failures=sum(status in FAILURES for status in statuses),
        grading_errors=sum(result.grading_error is not None for result in results),
        run_dir=ran.folder.uri,
        results=results,
    )
    ran.folder.write(EXECUTION, as_file(summary.model_dump(mode="json")))
    return summary


def read_timings(ran: Ran, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str, int], AttemptTiming]:
    """By config, case and run, in the order of `wanted`, what is known of each attempt.

    Raises:
        StoreError: one of them is missing or damaged.
    """
    places = {
        (config, case_id, run): f"{ran.staging.folder(config, case_id, run)}/timing.json"
        for config, case_id in wanted
        for run in range(1, ran.staging.runs + 1)
    }
    try:
        contents = ran.folder.read_many(places.values())
    except StoreError as e:
        raise StoreError(f"{e}; what could not be kept is run again by the same command") from e
    return {key: _timing(contents[place], place) for key, place in places.items()}


def _timing(content: bytes, place: str) -> AttemptTiming:
    try:
        return AttemptTiming.model_validate_json(content)
    except ValidationError as e:
        raise StoreError(f"{place} is damaged; move the run folder elsewhere, and the same command begins anew") from e


def _result(ran: Ran, config: str, run: int, timing: AttemptTiming, row: Mapping[str, Any] | None) -> AttemptResult:
    case_id = next(id_ for id_, case in ran.staging.cases.items() if case.name == timing.case_id)
    folder = ran.staging.folder(config, case_id, run)
    return AttemptResult(
        case_id=timing.case_id,
        config=config,
        run=run,
        status=timing.status,
        case_dir=folder,
        elapsed_s=timing.elapsed_s,
        return_code=timing.return_code,
        tokens=timing.total_tokens,
        tool_calls=timing.tool_calls,
        error_tail="" if timing.status == "ok" else _tail(ran.folder, folder, timing),
        grading=_grades(row),
        grading_error=_grading_error(timing, row),
    )


def _tail(store: Store, folder: str, timing: AttemptTiming) -> str:
    try:
        said = store.read(f"{folder}/stderr.txt").decode(errors="replace")
    except FileNotFoundError:
        said = ""
    return f"{said}\n{timing.reason or ''}".strip()[-TAIL:]


def _gradings(engine: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The rows of a run by config, case and run."""
    return {(row["agent"], row["case_id"], row["attempt"]): row for row in open_rows(engine).records()}


def _grades(row: Mapping[str, Any] | None) -> Grades | None:
    """The count of rubric lines that a row's verdict tells of."""
    checks: Mapping[str, Any] = ((row or {}).get("details") or {}).get("checks", {})
    lines = [check for name, check in checks.items() if name.startswith("rubric-")]
    if not lines:
        return None
    passed = sum(bool(check["pass"]) for check in lines)
    return Grades(passed=passed, failed=len(lines) - passed, total=len(lines), pass_rate=round(passed / len(lines), 4))


def _grading_error(timing: AttemptTiming, row: Mapping[str, Any] | None) -> str | None:
    failure = (row or {}).get("failure")
    return failure["message"] if failure and timing.status == "ok" else None
