"""What quality costs: a chart of pass rate over cost, and the models that no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from pydantic import JsonValue

from trunchray.core.frontier import frontier
from trunchray.core.wording import share_range, unknown_costs
from trunchray.pages.html import Html, joined, prose
from trunchray.pages.report.section import Section, beside, chart, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import number, table, words

_CAPTION = (
    "Pass rate over US dollars per 1,000 trials, with 95 % intervals; the numbers are places in the leaderboard. "
    "Filled marks are on the front, which the line joins: no other model is both as good and as cheap. The table says "
    "the same."
)


def cost(standings: Sequence[Standing]) -> Section:
    placed = _placed(standings)
    if not placed:
        nothing = paragraph("No model has both a known cost and a verdict.")
        return Section("cost", "Cost and quality", joined((nothing, *_left_out(standings))))
    rows = [_row(standing, usd, on_front=on_front) for standing, usd, on_front in placed]
    headings = ("Model", "USD per 1,000 trials", "Pass rate", "95 % interval", "Front")
    shown = table("Cost in US dollars per 1,000 trials, and pass rate", headings, rows)
    content = joined((beside(chart("cost", _CAPTION), shown), *_left_out(standings)))
    return Section("cost", "Cost and quality", content)


def cost_data(standings: Sequence[Standing]) -> JsonValue:
    """What the chart is drawn from: rates are shares, costs US dollars per 1,000 trials."""
    return [
        {
            "place": standing.place,
            "name": standing.name,
            "cost": usd,
            "rate": standing.model.pass_rate,
            "low": standing.model.pass_rate_low,
            "high": standing.model.pass_rate_high,
            "front": on_front,
        }
        for standing, usd, on_front in _placed(standings)
    ]


def _placed(standings: Sequence[Standing]) -> list[tuple[Standing, float, bool]]:
    """The models with a cost and a pass rate, their cost per 1,000 trials, and whether they are on the front."""
    found = [
        (standing, usd, standing.model.pass_rate)
        for standing in standings
        if (usd := standing.cost_per_thousand) is not None and standing.model.pass_rate is not None
    ]
    front = frontier([(usd, rate) for _, usd, rate in found])
    return [(standing, usd, place in front) for place, (standing, usd, _) in enumerate(found)]


def _row(standing: Standing, usd: float, *, on_front: bool) -> list[Html]:
    model = standing.model
    interval = number(share_range(model.pass_rate_low, model.pass_rate_high), model.pass_rate_low)
    front = words("● on the front" if on_front else "○ beaten")
    return [standing.heading(), number(_dollars(usd), usd), standing.rate(), interval, front]


def _left_out(standings: Sequence[Standing]) -> list[Html]:
    names = [standing.name for standing in standings if standing.cost_per_thousand is None]
    cached = sum(standing.model.cache_hits for standing in standings)
    said = [f"Without a known cost: {', '.join(names)}."] if names else []
    said += [prose(f"{reason[0].upper()}{reason[1:]}.") for reason in unknown_costs([one.model for one in standings])]
    said += [f"{cached:,} model calls were answered from the cache, at no cost."] if cached else []
    return [paragraph(sentence) for sentence in said]


def _dollars(usd: float) -> str:
    """Two decimals, or as many as three digits need."""
    decimals = max(2, 2 - floor(log10(usd))) if usd > 0 else 2
    return f"{usd:,.{decimals}f}"
