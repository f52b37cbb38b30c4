"""What an evaluation found, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunchray.core.changes import Changes
from trunchray.core.evaluation_markdown import (
    HEADERS,
    LISTED,
    NAME_LENGTH,
    FailedCheck,
    cells,
    changed_lines,
    verdict,
)
from trunchray.core.excerpt import excerpt
from trunchray.core.markdown import listed
from trunchray.core.printable import one_line
from trunchray.core.scorer_report import ScorerReport

RUN_FAILED = "run failed: "
"""How the reason begins why a check failed that was not run."""
NAMED = 50
"""Cases that a message names of each broken limit; the report has all of them."""


def evaluation_text(
    name: str, scorers: Mapping[str, ScorerReport], failed: Sequence[FailedCheck], changes: Changes
) -> str:
    """The verdict, a line for each check with `!` at what is broken, then what failed and what changed."""
    rows = [(_name(check), *(f"{'!' * bad}{cell}" for cell, bad in cells(report))) for check, report in scorers.items()]
    sections = [f"{_name(name)} {verdict(scorers)}", _aligned([HEADERS, *rows])]
    if failed := _by_run(failed):
        sections.append("failed:\n" + listed(map(_failed, failed), len(failed), "  ", LISTED))
    changed = [f"{word}: {' — '.join(map(_name, names))}" for word, *names in changed_lines(changes)]
    if changed:
        sections.append("changed:\n" + listed(changed, len(changed), "  ", LISTED))
    return "\n".join(sections) + "\n"


def check_text(report: ScorerReport, failed: Sequence[FailedCheck]) -> str:
    """Which limits of one check are broken, on one line; then every case that failed it, and why."""
    broken = "; ".join(f"{limit}: {named(limit.cases)}" for limit in report.broken)
    lines = (f"{_name(each.case)}{_reason(each)}" for each in failed)
    return "\n".join([broken or "every limit is kept", listed(lines, len(failed), "  ", LISTED)])


def failed_lines(failed: Sequence[FailedCheck], most: int) -> list[str]:
    """So many of the failed checks, a line each, and how many more there are."""
    found = _by_run(failed)
    return listed(map(_failed, found), len(found), "", most).splitlines()


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


def _by_run(failed: Sequence[FailedCheck]) -> list[FailedCheck]:
    """A run that failed fails all checks of its case: one line says so for all of them."""
    alike: dict[tuple[str, ...], list[FailedCheck]] = {}
    for each in failed:
        own = () if each.reason.startswith(RUN_FAILED) else (each.check,)
        alike.setdefault((each.case, each.reason, *own), []).append(each)
    return [
        FailedCheck(
            ", ".join(each.check for each in some), some[0].case, some[0].reason, any(each.must for each in some)
        )
        for some in alike.values()
    ]


def _failed(failed: FailedCheck) -> str:
    return f"{_name(failed.check)} — {_name(failed.case)}{_reason(failed)}"


def _reason(failed: FailedCheck) -> str:
    must = " (must pass)" if failed.must else ""
    return must + (f": {one_line(failed.reason, 200)}" if failed.reason else "")


def _name(name: str) -> str:
    return one_line(name, NAME_LENGTH)
