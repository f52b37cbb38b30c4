"""The models, best first."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.facts import facts
from trunchray.core.letters import letters
from trunchray.core.report import Figures, ModelReport, Report
from trunchray.core.wording import cost, coverage, share_range
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import NONE, count, number, table, words

_BEFORE_GROUP = ("Model", "Pass rate", "95 % interval")
_AFTER_GROUP = (
    *("Mean score", "Passed", "Failed", "Errors", "Not run", "Coverage"),
    *("Tokens in", "Tokens out", "Cost (USD)", "p50 (s)", "p95 (s)"),
)


def leaderboard(report: Report, standings: Sequence[Standing]) -> Section:
    groups = _groups(report, standings)
    headings = (*_BEFORE_GROUP, *(["Group"] if groups else []), *_AFTER_GROUP)
    rows = [_row(standing, groups) for standing in standings]
    parts = [table("Models by pass rate", headings, rows)]
    if groups:
        parts.append(paragraph(_GROUPS))
    notes = [tag("li", tag("b", standing.label()), ": ", _notes(standing.model)) for standing in standings]
    parts.append(tag("ul", *notes, class_="notes"))
    return Section("leaderboard", "Leaderboard", joined(parts))


_GROUPS = (
    "Group: models that share a letter are not told apart; between models that share none, the difference is one to "
    "rely on (p below 0.05, adjusted for all pairs, and an interval that does not hold 0)."
)


def _groups(report: Report, standings: Sequence[Standing]) -> dict[str, str]:
    """The letters of each model; empty where there is nothing to group, or too much."""
    if not report.comparisons:
        return {}
    apart = [frozenset((pair.first, pair.second)) for pair in report.comparisons if pair.pass_rate.reliable]
    return letters([standing.name for standing in standings], apart)


def _row(standing: Standing, groups: dict[str, str]) -> list[Html]:
    model = standing.model
    return [
        standing.heading(),
        standing.rate(),
        _interval(model),
        *([words(groups[standing.name])] if groups else []),
        _score(model),
        count(model.passed),
        count(model.failed),
        count(model.error, kind="bad" if model.error else ""),
        count(model.not_run, kind="bad" if model.not_run else ""),
        number(coverage(model), model.coverage),
        count(model.usage.input_tokens),
        count(model.usage.output_tokens),
        number(cost(model), model.least_usd or None if model.cost_usd is None else model.cost_usd),
        *_seconds(model),
    ]


def _interval(model: ModelReport) -> Html:
    """The interval as text, and drawn from 0 on the left to 100 % on the right."""
    rate, low, high = model.pass_rate, model.pass_rate_low, model.pass_rate_high
    if rate is None or low is None or high is None:
        return NONE
    middle = {"y": 2, "width": f"{100 * rate:.1f}", "height": 8}
    drawn = tag(
        "svg",
        tag("rect", class_="rate", **middle),
        tag("path", class_="whisker", d=f"M{100 * low:.1f} 1v10m0-5H{100 * high:.1f}m0-5v10"),
        viewBox="0 0 100 12",
        class_="interval",
        aria_hidden="true",
    )
    return tag("td", share_range(low, high), " ", drawn, class_="number", data_value=f"{low:.6g}")


def _score(figures: Figures) -> Html:
    score, error = figures.mean_score, figures.mean_score_se
    if score is None:
        return NONE
    return number(f"{score:.3f}" if error is None else f"{score:.3f} ± {error:.3f}", score)


def _seconds(model: ModelReport) -> list[Html]:
    if model.latency is None:
        return [NONE, NONE]
    return [number(f"{seconds:,.2f}", seconds) for seconds in (model.latency.p50, model.latency.p95)]


def _notes(model: ModelReport) -> Html:
    agent = tag("code", model.agent_digest[:12], title=model.agent_digest)
    return joined((tag("bdi", model.model), ", agent ", agent, "; ", "; ".join(facts(model)), "."))
