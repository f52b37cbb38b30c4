"""The top of the report: what was run, how far it came, and where things are on the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from trunchray.core.report import Report
from trunchray.core.wording import coverage
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section


def header(report: Report, sections: Sequence[Section]) -> Html:
    links = tag("ul", *(tag("li", section.link()) for section in sections))
    facts = tag("dl", *(tag("div", tag("dt", name), tag("dd", said)) for name, said in _facts(report)))
    return tag("header", tag("h1", report.title), _state(report), facts, tag("nav", links, aria_label="Sections"))


def _state(report: Report) -> Html:
    if report.complete:
        return tag("p", "Complete: every planned trial has been run.", class_="state")
    said = f"Incomplete: {report.not_run:,} of {report.planned:,} trials have not been run."
    return tag("p", tag("strong", said), class_="state")


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "Run", tag("bdi", report.run)
    yield "Release", tag("code", report.release_digest[:12], title=report.release_digest)
    if report.started_at and report.ended_at:
        yield "Trials ran", joined((_time(report.started_at), " to ", _time(report.ended_at)))
    yield "Trials", f"{report.planned:,}"
    yield "Attempts per case", f"{report.attempts:,}"
    yield "Passed", f"{report.passed:,}"
    yield "Failed", f"{report.failed:,}"
    yield "Errors", f"{report.error:,}"
    yield "Coverage", f"{coverage(report)} of the trials have a verdict"


def _time(at: datetime) -> Html:
    return tag("time", f"{at:%Y-%m-%d %H:%M} UTC", datetime=at.isoformat(timespec="seconds"))
