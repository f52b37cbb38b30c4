"""A report for people with a browser: `report.html`, one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.legend import legend
from trunchray.core.report import Report
from trunchray.pages.assets import asset, fingerprint
from trunchray.pages.html import Html, data_block, filled, joined, markup, tag
from trunchray.pages.report.attempts import attempts
from trunchray.pages.report.cost import cost, cost_data
from trunchray.pages.report.disagreements import disagreements
from trunchray.pages.report.errors import errors
from trunchray.pages.report.evals import evals
from trunchray.pages.report.header import header
from trunchray.pages.report.latency import latency, latency_data
from trunchray.pages.report.leaderboard import leaderboard
from trunchray.pages.report.pairs import pairs
from trunchray.pages.report.section import Section
from trunchray.pages.report.standing import ranked

_STYLE = "report/page.css"
_SCRIPTS = {"d3": "vendor/d3.min.js", "plot": "vendor/plot.umd.min.js", "script": "report/page.js"}


def report_page(report: Report) -> bytes:
    """The whole page: the same bytes for the same report. Without JavaScript it lacks charts and sorting alone."""
    standings = ranked(report.models)
    sections = [
        leaderboard(report, standings),
        cost(standings),
        latency(standings),
        evals(standings),
        *([attempts(standings)] if report.attempts > 1 else []),
        *([pairs(report.comparisons)] if report.comparisons else []),
        errors(standings),
        *([disagreements(report.disagreements, standings)] if len(standings) > 1 else []),
        _reading(report),
    ]
    data = data_block("data", {"cost": cost_data(standings), "latency": latency_data(standings)})
    return _filled(report.title, header(report, sections), sections, data).encode(errors="replace")


def _filled(title: str, header: Html, sections: Sequence[Section], data: Html) -> Html:
    parts = {name: asset(path) for name, path in _SCRIPTS.items()}
    body = joined(section.markup() for section in sections)
    parts |= {"policy": markup(_policy()), "title": markup(title), "style": asset(_STYLE)}
    return filled(asset("report/page.html"), parts | {"header": header, "sections": body, "data": data})


def _policy() -> str:
    """Nothing may be fetched or sent, and nothing runs but our scripts."""
    scripts, style = " ".join(map(fingerprint, _SCRIPTS.values())), fingerprint(_STYLE)
    return f"default-src 'none'; script-src {scripts}; style-src {style}; base-uri 'none'; form-action 'none'"


def _reading(report: Report) -> Section:
    where = (
        *("Each trial is a row of ", tag("code", "results.parquet"), ", beside this page. "),
        *(tag("code", "trunchray view RUN"), " shows what models answered; RUN is the folder or URI of the run."),
    )
    said = [*(tag("li", sentence) for sentence in legend(report)), tag("li", *where)]
    return Section("reading", "How to read this", tag("ul", *said))
