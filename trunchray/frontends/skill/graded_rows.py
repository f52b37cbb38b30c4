"""What the engine's rows say of the attempts of a skill eval, which their folders do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trunchray.core.rubric import Summary
from trunchray.core.trial import NOT_GRADED
from trunchray.engine.rows import open_rows

Key = tuple[str, str, int]
"""An attempt: its config, the id of its compiled case, and its number, from 1."""
_COLUMNS = ("agent", "case_id", "attempt", "details", "failure")


class GradedRow(NamedTuple):
    """One row."""

    grades: Summary | None
    """None where no rubric was graded."""
    failure: str | None
    """Why there is no verdict; None when there is one, or nobody was to give one."""
    not_kept: bool
    """The attempt's place failed, so that nothing of it is there, and it can be run again."""


def read_rows(run_uri: str) -> dict[Key, GradedRow]:
    """Those that count of a run or a regrade. Shards are read one after another.

    Raises:
        UsageError: there is no run.
        ReleaseError: its release is gone or damaged.
    """
    rows = open_rows(run_uri).records(columns=_COLUMNS)
    return {(row["agent"], row["case_id"], row["attempt"]): _graded(row) for row in rows}


def _graded(row: Mapping[str, Any]) -> GradedRow:
    checks: Mapping[str, Any] = (row["details"] or {}).get("checks", {})
    lines = [bool(check["pass"]) for name, check in checks.items() if name.startswith("rubric-")]
    failure = row["failure"]
    if failure and failure["type"] == NOT_GRADED:
        failure = None
    not_kept = failure is not None and failure["boundary"] == "harness" and failure["retryable"]
    return GradedRow(Summary.of_lines(lines) if lines else None, failure and failure["message"], not_kept)
