"""The counted rows of a run as what came of each case of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation import CaseOutcome
from trunchray.core.folding import fold
from trunchray.engine.rows import StoredRows
from trunchray.frontends.case_release import case_id
from trunchray.frontends.evaluation.dataset import DataCase


def read_outcomes(rows: StoredRows, cases: Sequence[DataCase], scorers: Sequence[str]) -> list[CaseOutcome]:
    """One outcome for each case, in the order of the data; cases without any row are left out."""
    attempts: dict[str, list[dict[str, Any]]] = {}
    for row in rows.records():
        attempts.setdefault(row["case_id"], []).append(row)
    found = [(case, attempts.get(case_id(case.name), [])) for case in cases]
    return [_outcome(case, sorted(rows, key=_attempt), scorers) for case, rows in found if rows]


def _attempt(row: Mapping[str, Any]) -> int:
    return row["attempt"]


def _outcome(case: DataCase, rows: Sequence[Mapping[str, Any]], scorers: Sequence[str]) -> CaseOutcome:
    """All attempts at a case together: what went in and came out is of the first one that failed, or else the first."""
    shown = next((row for row in rows if row["outcome"] != "passed"), rows[0])
    details = shown["details"] or {}
    wanted = [name for name in scorers if name not in case.skip]
    return CaseOutcome(
        name=case.name,
        input=case.input,
        output=_output(shown, details),
        steps=tuple(step["output"] for step in shown["steps"] or () if step["kind"] == "observed"),
        ms=details.get("ms", 0.0),
        error=details.get("error") or _failure(shown),
        checks=fold([_checks(row, wanted) for row in rows]),
        must=frozenset(case.must),
        skip=frozenset(case.skip),
    )


def _checks(row: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, CheckResult]:
    if error := _failure(row):
        return {name: CheckResult.failed(error) for name in wanted}
    found: Mapping[str, Any] = (row["details"] or {}).get("checks", {})
    return {name: CheckResult.model_validate(result) for name, result in found.items()}


def _failure(row: Mapping[str, Any]) -> str | None:
    """Why an attempt has no verdict at all, which is not the fault of the task."""
    failure = row["failure"]
    return f"{failure['boundary']}/{failure['type']}: {failure['message']}" if failure else None


def _output(row: Mapping[str, Any], details: Mapping[str, Any]) -> JsonValue:
    if details.get("error") is not None:
        return None
    return from_json(row["output"]) if details.get("output") == "json" else row["output"]
