"""Comparisons as tables in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from trunchray.cli.screen import Line, fitted
from trunchray.core.comparison_markdown import (
    both,
    flipped,
    headline,
    left_out,
    lists,
    not_compared,
    report_notes,
    told_apart,
    uses,
)
from trunchray.core.wording import chance, distance, points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from trunchray.core.comparison import Comparison, ComparisonReport, Use
    from trunchray.core.contrast import Contrast, Effect

NAMED = 10
"""Cases that are named of each list."""

_COLUMNS = [
    ("cases", 3),
    ("pass rates", 0),
    ("difference (95 %)", 0),
    ("p", 5),
    ("p adj.", 1),
    ("fixed", 2),
    ("broke", 2),
    ("left out", 4),
    ("detectable", 8),
    ("cost per trial $", 6),
    ("p50 s", 7),
]


def show_comparison(console: Console, report: ComparisonReport, names: Mapping[str, str]) -> None:
    """One pair with its evals and lists of cases; of several pairs a line each, and of two runs their lists.

    `names` says by id what people call those cases that they do not call by their id.
    """
    if len(report.comparisons) == 1:
        _show_pair(console, report.comparisons[0], names)
    else:
        lines = [_line(headline(pair), pair, *uses(pair, pair)) for pair in report.comparisons]
        console.print(fitted(console, "second against first", _COLUMNS, lines))
        _show_lists(console, report.comparisons, names)
        for note in dict.fromkeys(note for pair in report.comparisons for note in pair.notes):
            console.print(f"note: {note}", style="yellow")
    for note in report_notes(report):
        console.print(f"note: {note}", style="yellow")


def _show_lists(console: Console, pairs: Sequence[Comparison], names: Mapping[str, str]) -> None:
    """The lists of several pairs of two runs, model by model; the models of one run are too many pairs."""
    for pair in (pair for pair in pairs if pair.first.name == pair.second.name):
        for name, cases in flipped(pair):
            console.print(f"{name}, {headline(pair)} ({cases.count:,}): {cases.named(NAMED, names)}")
    for name, cases in not_compared(pairs[0]):
        console.print(f"{name} ({cases.count:,}): {cases.named(NAMED, names)}")


def _show_pair(console: Console, pair: Comparison, names: Mapping[str, str]) -> None:
    console.print(headline(pair))
    lines = [_line("all", pair, *uses(pair, pair))]
    if len(pair.evals) > 1:
        lines += [_line(f"  {each.eval_id}", each, *uses(pair, each)) for each in pair.evals]
    console.print(fitted(console, "eval", _COLUMNS, lines))
    if pair.score:
        console.print(f"mean score: {_told(pair.score)}")
    console.print(f"in words: {_verdict(pair)}")
    if reason := left_out(pair):
        console.print(reason)
    for name, cases in lists(pair):
        console.print(f"{name} ({cases.count:,}): {cases.named(NAMED, names)}")
    for note in pair.notes:
        console.print(f"note: {note}", style="yellow")


_NOT_RELIABLE = (
    "but the interval, which takes cases of one eval or source for alike, holds 0, so this is no difference to rely on"
)


def _verdict(pair: Comparison) -> str:
    """What the difference of pass rates means, in one sentence."""
    effect = pair.pass_rate
    if effect.p_adjusted is None or effect.difference is None or effect.detectable is None:
        return "there is nothing to compare"
    if effect.unlikely:
        first, second = told_apart(pair)
        more = "more" if effect.difference > 0 else "fewer"
        said = f"{second} passes {more} cases than {first}, further than chance would take it"
        return said if effect.reliable else f"counted case by case, {said}; {_NOT_RELIABLE}"
    return (
        "no difference is shown; with as many cases, one of "
        f"{100 * effect.detectable:.1f} percentage points would be found four times in five"
    )


def _line(name: str, found: Contrast, first: Use | None, second: Use | None) -> Line:
    effect = found.pass_rate
    cells: list[str | Text] = [
        f"{effect.cases:,}",
        "–" if effect.first is None or effect.second is None else f"{effect.first:.1%} → {effect.second:.1%}",
        _difference(effect),
        chance(effect.p),
        chance(effect.p_adjusted),
        f"{found.fixed.count:,}",
        Text(f"{found.broke.count:,}", style="red" if found.broke.count else ""),
        f"{found.left_out:,}",
        distance(effect.detectable),
        both(first, second, "cost_per_trial"),
        both(first, second, "p50"),
    ]
    return Line(name, cells)


def _difference(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return "–"
    return f"{points(effect.difference)} ({100 * effect.low:+.1f} to {100 * effect.high:+.1f})"


def _told(effect: Effect) -> str:
    if effect.first is None or effect.second is None:
        return "–"
    low, high = effect.low or 0.0, effect.high or 0.0
    change = f"{effect.difference or 0.0:+.3f} ({low:+.3f} to {high:+.3f})"
    return f"{effect.first:.3f} → {effect.second:.3f}, {change}, p {chance(effect.p)}"
