"""What `execution-summary.json` says of the attempts of a run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from support.made_runs import make_run
from support.releases import make_release
from trunchray.adapters.store import Store
from trunchray.core.attempt import AttemptTiming
from trunchray.core.check_result import CheckResult
from trunchray.core.staging import StagedCase, Staging
from trunchray.core.trial import NOT_GRADED, Failure, Result, Verdict
from trunchray.frontends.skill.run_folder import ENGINE
from trunchray.frontends.skill.session import Ran
from trunchray.frontends.skill.summary import EXECUTION, TAIL, ExecutionSummary, summarise

NAMES = ("z-first", "a-second")
"""As authored, in the order of the case file; their compiled ids are c0 and c1."""
UNGRADED = Failure(boundary="evaluator", type="grading_error", message="no grades: it slept", retryable=True)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Attempts:
    """The run folder of two cases, each tried `runs` times by every config."""

    def __init__(self, folder: Path, runs: int = 1) -> None:
        self.folder, self.runs = folder, runs
        staged = {f"c{number}": StagedCase(folder=name, case={"id": name}) for number, name in enumerate(NAMES)}
        self.ran = Ran(Store(str(folder)), Staging(root=str(folder), runs=runs, cases=staged))

    def add(self, config: str, number: int, run: int = 1, *, said: str = "", **timing: Any) -> None:
        folder = self.folder / self.ran.staging.folder(config, f"c{number}", run)
        folder.mkdir(parents=True)
        known: dict[str, Any] = {
            "status": "ok",
            "elapsed_s": 1.5,
            "return_code": 0,
            "captured_at": "2026-01-01T00:00:00Z",
        }
        known |= {"case_id": NAMES[number], "config": config, **timing}
        made = AttemptTiming(**known)
        (folder / "timing.json").write_text(made.model_dump_json())
        (folder / "stderr.txt").write_text(said)

    def rows(
        self,
        *configs: str,
        grades: dict[tuple[str, str], list[bool]] | None = None,
        failed: str = "",
        why: Failure = UNGRADED,
    ) -> None:
        """The engine's rows; `grades` by config and compiled case, and the one that `failed`, and why."""
        release = make_release(self.folder / "releases", len(NAMES))

        def change(result: Result) -> Result:
            if result.trial.case_id == failed:
                return result.model_copy(update={"failure": why})
            lines = (grades or {}).get((result.trial.agent, result.trial.case_id), [])
            return graded(result, lines) if lines else result

        letters = [("e" if f"c{number}" == failed else "p") * self.runs for number in range(len(NAMES))]
        outcomes = dict.fromkeys(configs, letters)
        make_run(self.folder / ENGINE, release, outcomes, run_id="run", change=change)

    def summary(self, *configs: str) -> ExecutionSummary:
        return summarise(self.ran, ["c0", "c1"], configs, "baseline", harness="h.json", now=NOW)


def graded(result: Result, lines: list[bool]) -> Result:
    checks: JsonValue = {
        f"rubric-{place}": CheckResult(passed=line, value=float(line)).to_json() for place, line in enumerate(lines, 1)
    }
    verdict = Verdict(passed=all(lines), score=sum(lines) / len(lines), details={"checks": checks})
    return result.model_copy(update={"verdict": verdict})


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    return Attempts(tmp_path / "20260101-000000-s-baseline", runs=2)


def test_results_are_sorted_by_config_case_and_run(attempts: Attempts):
    """By the order of the modes and of the case file, whatever order attempts ended in; the original kept that."""
    for config in ("bare", "skill"):
        for number in (1, 0):
            for run in (2, 1):
                attempts.add(config, number, run)
    attempts.rows("skill", "bare")
    found = attempts.summary("skill", "bare")
    assert [(each.config, each.case_id, each.run, each.case_dir) for each in found.results] == [
        (config, name, run, f"{config}/{name}/run-{run}")
        for config in ("skill", "bare")
        for name in NAMES
        for run in (1, 2)
    ]


def test_attempts_are_counted_by_how_they_ended(tmp_path: Path):
    """Executed are those that ended well; all others but the skipped are failures."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0, status="timeout", return_code=-1)
    attempts.add("skill", 1, input_tokens=3, total_tokens=10, tool_calls={"Read": 2})
    attempts.rows("skill")
    found = attempts.summary("skill")
    assert (found.total, found.executed, found.skipped, found.failures, found.exit_code) == (2, 1, 0, 1, 1)
    assert (found.results[1].tokens, found.results[1].tool_calls) == (10, {"Read": 2})
    assert (found.run_id, found.mode, found.harness) == ("run", "baseline", "h.json")


@pytest.mark.parametrize(
    ("status", "code"),
    [("ok", 0), ("error", 1), ("timeout", 1), ("exception", 1), ("harness-missing", 1), ("skipped", 3)],
)
def test_the_exit_code_of_a_run(tmp_path: Path, status: str, code: int):
    """3 where no harness is recorded, 1 where an attempt did not give its answer, else 0."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0, status=status)
    attempts.add("skill", 1, status="skipped" if status == "skipped" else "ok")
    attempts.rows("skill")
    assert attempts.summary("skill").exit_code == code


def test_the_end_of_what_was_said_is_told_of_attempts_that_failed(tmp_path: Path):
    """At most so many characters of it, and the reason last."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0, status="error", said="x" * 5000, reason="exit code 3")
    attempts.add("skill", 1, said="a warning")
    attempts.rows("skill")
    first, second = attempts.summary("skill").results
    assert (len(first.error_tail), first.error_tail[-13:]) == (TAIL, "x\nexit code 3")
    assert second.error_tail == ""


def test_grades_are_counted_by_line(tmp_path: Path):
    """Of the engine's rows, which have what graders said."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    attempts.add("skill", 1)
    attempts.rows("skill", grades={("skill", "c0"): [True, True, False]})
    first, second = attempts.summary("skill").results
    assert first.grading is not None
    assert first.grading.model_dump() == {"passed": 2, "failed": 1, "total": 3, "pass_rate": 0.6667}
    assert (second.grading, second.grading_error) == (None, None)


def test_an_attempt_that_could_not_be_graded_has_no_default_verdict(tmp_path: Path):
    """It is a grading error, and the exit code 1."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    attempts.add("skill", 1)
    attempts.rows("skill", failed="c1")
    found = attempts.summary("skill")
    assert (found.results[1].status, found.results[1].grading) == ("ok", None)
    assert found.results[1].grading_error == "no grades: it slept"
    assert (found.grading_errors, found.failures, found.exit_code) == (1, 0, 1)


def test_an_attempt_that_nobody_was_to_grade_is_no_grading_error(tmp_path: Path):
    """It has no grades either; the exit code is 0."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    attempts.add("skill", 1)
    attempts.rows("skill", failed="c1", why=UNGRADED.model_copy(update={"type": NOT_GRADED, "retryable": False}))
    found = attempts.summary("skill")
    assert (found.results[1].grading, found.results[1].grading_error) == (None, None)
    assert (found.grading_errors, found.failures, found.exit_code) == (0, 0, 0)


@pytest.mark.parametrize(
    ("read", "unread"),
    [({}, True), ({"tokens_reported": True}, False), ({"total_steps": 1}, False), ({"tool_calls": {"Read": 1}}, False)],
)
def test_a_tool_of_which_no_event_could_be_read(read: dict[str, Any], unread: bool, tmp_path: Path):
    """It is one if that is so for each attempt that ended well; others say nothing about it."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0, **read)
    attempts.add("skill", 1)
    attempts.add("bare", 0, status="error", total_steps=3)
    attempts.add("bare", 1, status="error", total_steps=3)
    attempts.rows("skill", "bare")
    assert attempts.summary("skill", "bare").unread is unread
    assert not attempts.summary("bare").unread


def test_the_summary_is_stored_as_it_is_told(tmp_path: Path):
    """As JSON for people."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    attempts.add("skill", 1)
    attempts.rows("skill")
    found = attempts.summary("skill")
    text = (tmp_path / "run" / EXECUTION).read_text()
    assert json.loads(text) == found.model_dump(mode="json")
    assert text.startswith('{\n  "run_id": "run",\n')


def test_an_attempt_that_could_not_be_kept_is_an_exception(tmp_path: Path):
    """With the reason that its row gives; all others are told as they are, and the run has not ended."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    why = Failure(boundary="harness", type="exception", message="skill/a-second: the disk is full", retryable=True)
    attempts.rows("skill", failed="c1", why=why)
    found = attempts.summary("skill")
    first, second = found.results
    assert (first.status, second.status, second.grading_error) == ("ok", "exception", None)
    assert (second.case_id, second.case_dir, second.error_tail) == ("a-second", "skill/a-second", why.message)
    assert (found.total, found.executed, found.failures, found.not_kept, found.exit_code) == (2, 1, 1, 1, 1)


@pytest.mark.parametrize("content", ["{", "of another case"])
def test_a_damaged_attempt_is_an_exception(tmp_path: Path, content: str):
    """Whatever its file says: the result is that of the attempt whose folder it is in."""
    attempts = Attempts(tmp_path / "run")
    attempts.add("skill", 0)
    attempts.add("skill", 1, case_id="no-such-case")
    if content == "{":
        (tmp_path / "run" / "skill" / "a-second" / "timing.json").write_text(content)
    attempts.rows("skill")
    found = attempts.summary("skill")
    _, second = found.results
    assert (second.case_id, second.status, found.not_kept) == ("a-second", "exception", 0)
    assert second.error_tail.startswith("skill/a-second/timing.json is damaged")
    assert "move the run folder elsewhere" in second.error_tail
    assert json.loads((tmp_path / "run" / EXECUTION).read_text()) == found.model_dump(mode="json")


def test_grades_of_a_regrade_stay_when_its_run_is_gone_on_with(tmp_path: Path):
    """The next summary is by the regrade that the last one names, unless that regrade was deleted."""
    attempts = Attempts(tmp_path / "run")
    for number in range(2):
        attempts.add("skill", number)
    attempts.rows("skill")
    release = make_release(attempts.folder / "releases", len(NAMES))
    made = attempts.folder / ENGINE / "regrades" / "r"
    make_run(made, release, {"skill": ["p", "p"]}, run_id="r", change=lambda result: graded(result, [True]))
    (attempts.folder / EXECUTION).write_text(json.dumps({"graded_by": f"{ENGINE}/regrades/r"}))
    for _ in range(2):
        found = attempts.summary("skill")
        assert found.graded_by == f"{ENGINE}/regrades/r"
        assert [each.grading and each.grading.passed for each in found.results] == [1, 1]
    (made / "run.json").unlink()
    found = attempts.summary("skill")
    assert (found.graded_by, [each.grading for each in found.results]) == (None, [None, None])
