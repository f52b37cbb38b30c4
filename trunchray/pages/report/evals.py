"""A heat map of pass rates: evals by models."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.report import EvalReport
from trunchray.core.wording import distance, percent
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import NONE, count, heading, number, table

_THIN = 0.95
"""Coverage below which a cell is marked."""

_READING = (
    "The stronger the colour, the higher the pass rate. † marks cells where fewer than 95 % of the planned trials have "
    "a verdict; in the column of a model, – stands where none has. Spread is the distance between the best and the "
    "worst model, – where fewer than two have a pass rate."
)


def evals(standings: Sequence[Standing]) -> Section:
    found = {standing.name: {each.eval_id: each for each in standing.model.evals} for standing in standings}
    names = list(dict.fromkeys(eval_id for by_id in found.values() for eval_id in by_id))
    if len(names) == 1:
        said = paragraph("All trials are of one eval, ", tag("bdi", names[0]), ": the leaderboard is its result.")
        return Section("evals", "Evals", said)
    headings = ("Eval", "Trials per model", *(standing.label() for standing in standings), "Spread")
    rows = [_row(name, [by_id.get(name) for by_id in found.values()]) for name in names]
    shown = table("Pass rate of each model in each eval", headings, rows, kind="sortable heat")
    return Section("evals", "Evals", joined((shown, paragraph(_READING))))


def _row(eval_id: str, reports: Sequence[EvalReport | None]) -> list[Html]:
    planned = max(each.planned for each in reports if each)
    rates = [each.pass_rate for each in reports if each and each.pass_rate is not None]
    spread = max(rates) - min(rates) if len(rates) > 1 else None
    return [heading(tag("bdi", eval_id)), count(planned), *map(_cell, reports), number(distance(spread), spread)]


def _cell(report: EvalReport | None) -> Html:
    """The rate, in one of eleven shades."""
    if report is None or report.pass_rate is None:
        return NONE
    mark = "" if report.coverage >= _THIN else " †"
    return number(percent(report.pass_rate) + mark, report.pass_rate, kind=f"shade-{round(10 * report.pass_rate)}")
