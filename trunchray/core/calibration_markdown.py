"""A calibration as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trunchray.core.calibration import CheckCalibration, Row
from trunchray.core.markdown import listed, table, text
from trunchray.core.wording import percent

LISTED = 20
"""Cases without a decision that are named."""


def calibration_markdown(name: str, checks: Sequence[CheckCalibration]) -> str:
    """A section for each check: what is recommended, what every threshold would do, and what could not be told."""
    return "\n\n".join([f"# {text(name)}: calibration", *(part for check in checks for part in _parts(check))]) + "\n"


def _parts(check: CheckCalibration) -> Iterator[str]:
    yield f"## {text(check.check)} ({check.kind})"
    yield _advice(check)
    if check.n:
        headers = (*check.rows[0].thresholds, "agree", "unsure", "disagree", "decided")
        yield table(headers, [_cells(row, bold=row is check.best) for row in check.rows])
    if check.errors:
        errors = (f"{text(error.case)}: {text(error.reason)}" for error in check.errors)
        heading = f"Not decided ({len(check.errors):,}), and counted nowhere above:"
        yield f"{heading}\n\n{listed(errors, len(check.errors), '- ', LISTED)}"


def _advice(check: CheckCalibration) -> str:
    best = check.best
    if best is None:
        return "Nothing is recommended: no labelled case was decided."
    wrong = f"{best.disagree:,}, the fewest there are" if best.disagree else "none"
    decided = best.agree + best.disagree
    return (
        f"Recommended: **{_thresholds(best.thresholds)}**. Confident disagreements: {wrong}. "
        f"Decided: {decided:,} of {check.n:,} cases ({percent(best.coverage)})."
    )


def _thresholds(thresholds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in thresholds.items())


def _cells(row: Row, *, bold: bool) -> list[str]:
    counts = [f"{count:,}" for count in (row.agree, row.unsure, row.disagree)]
    cells = [*(f"{value:.2f}" for value in row.thresholds.values()), *counts, percent(row.coverage)]
    return [f"**{cell}**" for cell in cells] if bold else cells
