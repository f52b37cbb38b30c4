"""What an evaluation found, as a comment on a pull request; and the words that its other renderings share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trunchray.core.changes import Changes
from trunchray.core.markdown import listed, table, text, whole_text
from trunchray.core.printable import one_line, printable
from trunchray.core.scorer_report import LimitName, ScorerReport

LISTED = 100
"""Lines that a list has; what is beyond is counted."""

NAME_LENGTH = 80
"""Characters of a name."""

HEADERS = ("check", "pass", "miss (allow)", "drop (allow)", "mean")


class FailedCheck(NamedTuple):
    """A check that a case failed."""

    check: str
    case: str
    reason: str
    """Its explanation, or what it was worth; "" when there is no more to say."""
    must: bool
    """The case has to pass it."""


def evaluation_markdown(
    name: str, scorers: Mapping[str, ScorerReport], failed: Sequence[FailedCheck], changes: Changes
) -> str:
    """The verdict first, then a line for each check, then what failed and what changed."""
    rows = [
        (_name(check), *(f"**{cell}**" if bold else cell for cell, bold in cells(report)))
        for check, report in scorers.items()
    ]
    sections = [f"# {_name(name)}", verdict(scorers, "**"), table(HEADERS, rows)]
    if failed:
        sections.append("## Failed\n\n" + listed(map(_failed, failed), len(failed), "- ", LISTED))
    changed = [f"{word}: {' — '.join(map(_name, names))}" for word, *names in changed_lines(changes)]
    if changed:
        sections.append("## Changed\n\n" + listed(changed, len(changed), "- ", LISTED))
    return "\n\n".join(sections) + "\n"


def verdict(scorers: Mapping[str, ScorerReport], strong: str = "") -> str:
    """The line that says whether the evaluation passed; `strong` goes around the word."""
    broken = sum(bool(report.broken) for report in scorers.values())
    if not broken:
        return f"{strong}passed{strong}: every limit is kept"
    return f"{strong}failed{strong}: {broken:,} of {len(scorers):,} check{'s' * (len(scorers) != 1)} broke a limit"


def cells(report: ScorerReport) -> list[tuple[str, bool]]:
    """The cells of a check under `HEADERS`, but for its name, and whether that limit is broken."""
    broken: set[LimitName] = {each.limit for each in report.broken}
    drops = "–" if report.drops is None else f"{report.drops:,}"
    return [
        (f"{report.passes:,}/{report.passes + report.misses:,}", "must" in broken),
        (f"{report.misses:,} ({report.limits.miss:,})", "miss" in broken),
        (f"{drops} ({report.limits.drop:,})", "drop" in broken),
        ("–" if report.mean is None else f"{report.mean:.2f}", False),
    ]


def changed_lines(changes: Changes) -> list[tuple[str, ...]]:
    """What happened, and to what: a check and a case, or a case."""
    return [
        *(("fixed", each.check, each.case) for each in changes.fixed),
        *(("broke", each.check, each.case) for each in changes.broke),
        *(("added", case) for case in changes.added),
        *(("removed", case) for case in changes.removed),
    ]


def _failed(failed: FailedCheck) -> str:
    must = " (must pass)" if failed.must else ""
    return f"{_name(failed.check)} — {_name(failed.case)}{must}" + (
        f": {text(printable(failed.reason))}" if failed.reason else ""
    )


def _name(name: str) -> str:
    """On one line, cut before what has to be escaped is."""
    return whole_text(one_line(name, NAME_LENGTH))
