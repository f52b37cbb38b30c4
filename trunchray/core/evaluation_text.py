"""What an evaluation found, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunchray.core.changes import Changes
from trunchray.core.evaluation_markdown import (
    HEADERS,
    NAME_LENGTH,
    FailedCheck,
    cells,
    changed_lines,
    listed,
    verdict,
)
from trunchray.core.excerpt import excerpt
from trunchray.core.printable import printable
from trunchray.core.scorer_report import ScorerReport

NAMED = 50
"""Cases that a message names of each broken limit; the report has all of them."""


def evaluation_text(
    name: str, scorers: Mapping[str, ScorerReport], failed: Sequence[FailedCheck], changes: Changes
) -> str:
    """The verdict, a line for each check with `!` at what is broken, then what failed and what changed."""
    rows = [(_line(check), *(f"{'!' * bad}{cell}" for cell, bad in cells(report))) for check, report in scorers.items()]
    sections = [f"{_line(name)} {verdict(scorers)}", _aligned([HEADERS, *rows])]
    if failed:
        sections.append("failed:\n" + listed(map(_failed, failed), len(failed), "  "))
    changed = [f"{word}: {' — '.join(map(_line, names))}" for word, *names in changed_lines(changes)]
    if changed:
        sections.append("changed:\n" + listed(changed, len(changed), "  "))
    return "\n".join(sections) + "\n"


def check_text(report: ScorerReport, failed: Sequence[FailedCheck]) -> str:
    """Which limits of one check are broken, on one line; then every case that failed it, and why."""
    broken = "; ".join(f"{limit}: {named(limit.cases)}" for limit in report.broken)
    lines = (f"{_line(each.case)}{_reason(each)}" for each in failed)
    return "\n".join([broken or "every limit is kept", listed(lines, len(failed), "  ")])


def named(cases: Sequence[str]) -> str:
    """The first cases, and how many more there are."""
    shown = ", ".join(repr(excerpt(case, NAME_LENGTH)) for case in cases[:NAMED])
    return shown + (f" and {len(cases) - NAMED:,} more" if len(cases) > NAMED else "")


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"  {row[0]:<{widths[0]}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )


def _failed(failed: FailedCheck) -> str:
    return f"{_line(failed.check)} — {_line(failed.case)}{_reason(failed)}"


def _reason(failed: FailedCheck) -> str:
    must = " (must pass)" if failed.must else ""
    return must + (f": {_line(failed.reason, 200)}" if failed.reason else "")


def _line(text: str, most: int = NAME_LENGTH) -> str:
    return printable(excerpt(" ".join(text.split()), most))
