"""The cases on which models differ most."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trunchray.core.disagreement import Disagreement, Disagreements, Finding
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import NONE, count, number, table, words


def disagreements(found: Disagreements, standings: Sequence[Standing]) -> Section:
    title = "Cases on which models differ"
    if not found.count:
        return Section("cases", title, paragraph("There is none: models agree wherever two of them have a verdict."))
    many = "1 case" if found.count == 1 else f"{found.count:,} cases"
    most = f"; these {len(found.cases)} divide them most" if len(found.cases) < found.count else ""
    said = paragraph(
        f"Models differ on {many}{most}. Open one for the verdicts; the command there shows the answers, where RUN is "
        "the folder or URI of the run."
    )
    panels = [_panel(place, disagreement, standings) for place, disagreement in enumerate(found.cases, 1)]
    return Section("cases", title, joined((said, *panels)))


def _panel(place: int, disagreement: Disagreement, standings: Sequence[Standing]) -> Html:
    """The verdicts on one case; a link can name it by its place in the list, from 1."""
    by_model = {finding.model: finding for finding in disagreement.findings}
    rows = [_row(standing, by_model[standing.name]) for standing in standings]
    headings = ("Model", "Verdict", "Passed", "Graded", "Mean score", "Errors")
    summary = tag("summary", tag("code", disagreement.case_id), " ", tag("span", _said(disagreement), class_="aside"))
    command = tag("code", f"trunchray view RUN --case {shlex.quote(disagreement.case_id)}")
    link = tag("a", "link to this case", href=f"#case-{place}")
    shown = table(f"Verdicts on {disagreement.case_id}", headings, rows)
    return tag("details", summary, paragraph(command, " · ", link), shown, id=f"case-{place}")


def _said(disagreement: Disagreement) -> str:
    graded = [finding for finding in disagreement.findings if finding.graded]
    passed = sum(finding.passed == finding.graded for finding in graded)
    if 0 < passed < len(graded):
        return f"{disagreement.eval_id}: {passed} of {len(graded)} models passed"
    scores = [finding.score for finding in graded if finding.score is not None]
    return f"{disagreement.eval_id}: {len(graded)} models, scores from {min(scores):.3f} to {max(scores):.3f}"


def _row(standing: Standing, finding: Finding) -> list[Html]:
    score = NONE if finding.score is None else number(f"{finding.score:.3f}", finding.score)
    verdict = words(_verdict(finding))
    return [standing.heading(), verdict, count(finding.passed), count(finding.graded), score, count(finding.errors)]


def _verdict(finding: Finding) -> str:
    if not finding.graded:
        return "error" if finding.errors else "not run"
    if finding.passed in {0, finding.graded}:
        return "passed" if finding.passed else "failed"
    return "both"
