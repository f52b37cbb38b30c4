"""How long models and their tools took."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from trunchray.core.report import Latency
from trunchray.pages.report.section import Section, beside, chart, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import number, table

_CAPTION = "Seconds that model and tools took in a trial: the median (p50, a dot) and the 95th percentile (p95, a bar)."


def latency(standings: Sequence[Standing]) -> Section:
    timed = _timed(standings)
    if not timed:
        return Section("latency", "Latency", paragraph("No trial is counted."))
    rows = [
        [standing.heading(), *(number(f"{seconds:,.2f}", seconds) for seconds in (taken.p50, taken.p95))]
        for standing, taken in timed
    ]
    shown = table("Seconds that model and tools took in a trial", ("Model", "p50 (s)", "p95 (s)"), rows)
    return Section("latency", "Latency", beside(chart("latency", _CAPTION), shown))


def latency_data(standings: Sequence[Standing]) -> JsonValue:
    """What the chart is drawn from, in seconds."""
    return [
        {"place": standing.place, "name": standing.name, "p50": taken.p50, "p95": taken.p95}
        for standing, taken in _timed(standings)
    ]


def _timed(standings: Sequence[Standing]) -> list[tuple[Standing, Latency]]:
    return [(standing, taken) for standing in standings if (taken := standing.model.latency)]
