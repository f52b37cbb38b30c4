"""A gate's findings in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from trunchray.cli.comparison_tables import NAMED
from trunchray.cli.screen import Line, fitted
from trunchray.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from trunchray.core.verdicts import AAReport, Finding, GateReport

_STYLES = {"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow"}


def show_gate(console: Console, report: GateReport, names: Mapping[str, str]) -> None:
    """The verdict, then every limit that is not kept with its cases, then how many are.

    `names` says by id what people call those cases that they do not call by their id.
    """
    against = f" against {report.compared_with}" if report.compared_with else ""
    console.print(Text.assemble((report.verdict, _STYLES[report.verdict]), f"  run {report.run}{against}"))
    for finding in report.findings:
        if finding.verdict != "PASS":
            _show(console, finding, names)
    kept = sum(finding.verdict == "PASS" for finding in report.findings)
    console.print(f"{kept:,} of {len(report.findings):,} limits kept")
    for note in report.notes:
        console.print(f"note: {note}", style="yellow")


def show_false_alarms(console: Console, report: AAReport) -> None:
    """A line for each model and each of its limits."""
    columns = [("false alarms", 0), ("95 %", 1), ("splits", 3), ("usual drop", 2)]
    lines: list[Line] = []
    for each in report.models:
        interval = f"{each.low:.1%}–{each.high:.1%}"
        lines.append(Line(each.model, [f"{each.rate:.1%}", interval, f"{each.splits:,}", ""], "bold"))
        for name, rate, usual in each.limits():
            lines.append(Line(f"  {name}", [f"{rate:.1%}", "", "", f"{usual:,}"]))
    console.print(fitted(console, "model / limit", columns, lines))
    for note in report.notes:
        console.print(f"note: {note}", style="yellow")
    if report.claimed is None:
        console.print("counts of dropped cases promise no false-alarm rate: allow more than the usual drop of each")
    else:
        console.print(f"the gate promises at most {report.claimed:.1%}")


def _show(console: Console, finding: Finding, names: Mapping[str, str]) -> None:
    kept = "" if finding.blocks else f" ({finding.tier}, does not keep the gate shut)"
    said = f"{kept}  {finding.model}, {finding.scope}, {finding.limit}: {finding.message}"
    console.print(Text.assemble(("  " + finding.verdict, _STYLES[finding.verdict]), printable(said)))
    if finding.cases.count:
        console.print(f"      {finding.cases.named(NAMED, names)}")
