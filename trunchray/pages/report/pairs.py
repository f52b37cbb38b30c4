"""Every two models against each other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from trunchray.core.contrast import Effect, ModelPair
from trunchray.core.wording import chance, distance, percent, points
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.tables import NONE, count, heading, number, table, words

SHOWN = 200
"""Pairs that the page lists."""

_HEADINGS = (
    *("Second − first", "Apart", "Difference", "95 % interval", "p", "p adjusted", "Pass rates"),
    *("Cases", "Left out", "Fixed", "Broke", "Detectable"),
)


def pairs(comparisons: Sequence[ModelPair]) -> Section:
    shown = table("Pass rates of two models on the cases they share", _HEADINGS, map(_row, comparisons[:SHOWN]))
    said = [_detectable(comparisons)]
    if len(comparisons) > SHOWN:
        said.append(f"Shown are the first {SHOWN} of {len(comparisons):,} pairs; summary.json has all of them.")
    return Section("pairs", "Between models", joined((*map(paragraph, said), shown)))


def _detectable(comparisons: Sequence[ModelPair]) -> str:
    """What the smallest difference is that this run could have shown."""
    smallest = [each.pass_rate.detectable for each in comparisons if each.pass_rate.detectable is not None]
    if not smallest:
        return "Too few cases have a verdict from two models to say which difference this run could have shown."
    low, middle, high = min(smallest), median(smallest), max(smallest)
    said = distance(middle) if low == high else f"{distance(low)} to {distance(high)} (median {distance(middle)})"
    return (
        f"Minimum detectable effect: {said}. Of true differences that large, as many cases as these show 4 in 5; a "
        "smaller one may well be there without being seen."
    )


def _row(pair: ModelPair) -> list[Html]:
    effect = pair.pass_rate
    return [
        heading(tag("bdi", pair.second), " − ", tag("bdi", pair.first)),
        words("yes" if effect.reliable else "no"),
        number(points(effect.difference), effect.difference),
        _interval(effect),
        number(chance(effect.p), effect.p),
        number(chance(effect.p_adjusted), effect.p_adjusted),
        number(f"{percent(effect.first)} → {percent(effect.second)}", effect.second),
        count(effect.cases),
        count(pair.left_out),
        count(pair.fixed.count),
        count(pair.broke.count),
        number(distance(effect.detectable), effect.detectable),
    ]


def _interval(effect: Effect) -> Html:
    if effect.low is None or effect.high is None:
        return NONE
    return number(f"{points(effect.low)} to {points(effect.high)}", effect.low)
