"""What a gate found, as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.markdown import table, text, whole_text
from trunchray.core.verdicts import AAReport, Finding, GateReport
from trunchray.core.wording import percent, share_range

NAMED = 20
"""Cases that a page names of each finding."""


def gate_markdown(report: GateReport) -> str:
    """The verdict first, then what keeps the gate shut with its cases, then every limit."""
    against = f", compared with `{report.compared_with}`" if report.compared_with else ""
    sections = [f"# Gate: {report.verdict}", f"Run `{report.run}`{against}."]
    told = [finding for finding in report.findings if finding.verdict != "PASS"]
    if told:
        sections.append("\n".join(map(_told, told)))
    if report.notes:
        sections.append("\n".join(f"- Note: {whole_text(note)}." for note in report.notes))
    return "\n\n".join([*sections, "## All limits", _all(report.findings)]) + "\n"


def aa_markdown(report: AAReport) -> str:
    """The false-alarm rate of each model, and what drops are usual."""
    promise = "nothing, as it counts dropped cases" if report.claimed is None else f"at most {report.claimed:.1%}"
    rows = [
        (
            text(each.model),
            f"{each.splits:,}",
            f"{each.alarms:,}",
            percent(each.rate),
            share_range(each.low, each.high),
        )
        for each in report.models
    ]
    usual = [
        (text(each.model), text(name), f"{drop:,}", percent(rate))
        for each in report.models
        for name, rate, drop in each.limits()
    ]
    sections = [
        "# Gate against itself",
        f"Run `{report.run}`: repeats of each model dealt into two halves. The gate promises {promise}.",
        table(("Model", "Splits", "False alarms", "Rate", "95 % interval"), rows),
        table(("Model", "Limit", "Usual drop (95 of 100)", "Rate"), usual, words=["Limit"]),
        *(f"Note: {whole_text(note)}." for note in report.notes),
    ]
    return "\n\n".join(sections) + "\n"


def _told(finding: Finding) -> str:
    cases = finding.cases
    named = f" Cases: {whole_text(cases.named(NAMED))}." if cases.count else ""
    kept = "" if finding.blocks else f" ({finding.tier}, does not keep the gate shut)"
    return (
        f"- **{finding.verdict}**{kept} {text(finding.model)}, {text(finding.scope)}: {text(finding.message)}.{named}"
    )


def _all(findings: Sequence[Finding]) -> str:
    rows = [
        (
            text(finding.model),
            text(finding.scope),
            finding.limit,
            finding.tier,
            finding.verdict,
            text(finding.message),
        )
        for finding in findings
    ]
    headers = ("Model", "Eval", "Limit", "Tier", "Verdict", "Found")
    return table(headers, rows, words=headers)
