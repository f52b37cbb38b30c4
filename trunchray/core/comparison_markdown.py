"""A comparison as a page, for a pull request or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunchray.core.comparison import Comparison, ComparisonReport, EvalContrast, Use, WithoutVerdict
from trunchray.core.contrast import CaseList, Contrast
from trunchray.core.excerpt import excerpt
from trunchray.core.markdown import EFFECT_HEADERS, effect_cells, table, text, whole_text

NAMED = 20
"""Cases that a page names of each list."""

_NAME_LENGTH = 60
"""Characters of a name that a sentence has."""

_HEADERS = ("", "Cases", "Left out", *EFFECT_HEADERS, "Fixed", "Broke", "Cost per trial ($)", "p50 (s)", "p95 (s)")

_LEGEND = """\
- Each difference is the second minus the first, on the cases that both have a verdict on; a case counts once, with \
the mean over its attempts. The interval holds the true difference 95 times in 100.
- p says how often two equal models would differ as far; adjusted, it allows for all pairs on this page (Holm; evals \
among themselves). It counts cases as independent, and the interval takes those of one eval or source for alike: a \
difference to rely on has both p below 0.05, adjusted, and an interval that does not hold 0.
- Detectable is the smallest difference that as many such cases would show in 4 of 5 repetitions.
- Fixed are cases that every graded attempt of the second passed and not of the first; broke, the other way round."""


def comparison_markdown(report: ComparisonReport) -> str:
    """The whole page."""
    sections = ["# Comparison", *map(_comparison, report.comparisons)]
    if notes := list(report_notes(report)):
        sections.append("\n".join(f"- Note: {whole_text(note)}." for note in notes))
    return "\n\n".join([*sections, "## How to read this", _LEGEND]) + "\n"


def report_notes(report: ComparisonReport) -> Iterable[str]:
    """What concerns the runs as a whole."""
    yield from report.notes
    for which, names in (("first", report.only_first), ("second", report.only_second)):
        if names:
            yield f"only the {which} run has {', '.join(names)}"


def headline(found: Comparison) -> str:
    """Who is compared with whom; with the run where the runs differ."""
    first, second = found.first, found.second
    if first.run == second.run:
        return f"{second.name} against {first.name} (run {first.run})"
    if first.name == second.name:
        return f"{second.name}: run {second.run} against {first.run}"
    return f"{second.name} (run {second.run}) against {first.name} (run {first.run})"


def told_apart(found: Comparison) -> tuple[str, str]:
    """The first and the second as a sentence calls them: the models, or the runs of the one model."""
    first, second = found.first, found.second
    if first.name != second.name:
        return excerpt(first.name, _NAME_LENGTH), excerpt(second.name, _NAME_LENGTH)
    if first.run != second.run:
        return f"run {excerpt(first.run, _NAME_LENGTH)}", f"run {excerpt(second.run, _NAME_LENGTH)}"
    return "the first", "the second"


def lists(found: Comparison) -> list[tuple[str, CaseList]]:
    """The lists of cases that are not empty, by name."""
    return [*flipped(found), *not_compared(found)]


def flipped(found: Comparison) -> list[tuple[str, CaseList]]:
    """Those of cases that fare otherwise now."""
    named = [("fixed", found.fixed), ("broke", found.broke)]
    return [(name, cases) for name, cases in named if cases.count]


def not_compared(found: Comparison) -> list[tuple[str, CaseList]]:
    """Those of cases that are not the same in both, which all pairs of the same two runs share."""
    named = [("added", found.added), ("removed", found.removed), ("changed content", found.changed)]
    return [(name, cases) for name, cases in named if cases.count]


def left_out(found: Comparison) -> str | None:
    """Why cases are left out; None when none is."""
    if not found.left_out:
        return None
    reasons: WithoutVerdict = found.without_verdict
    first, second = told_apart(found)
    told = [
        f"{count:,} {what}"
        for count, what in (
            (reasons.error_first, f"with an error in {first}"),
            (reasons.error_second, f"with an error in {second}"),
            (reasons.not_run_first, f"not run in {first}"),
            (reasons.not_run_second, f"not run in {second}"),
        )
        if count
    ]
    return f"{found.left_out:,} left out: {', '.join(told)}"


def uses(pair: Comparison, found: Comparison | EvalContrast) -> tuple[Use | None, Use | None]:
    """What each took of a pair, or of one eval of it; nothing where both hold the same answers, asked for once."""
    if pair.same_answers:
        return None, None
    if isinstance(found, Comparison):
        return found.first.use, found.second.use
    return found.first_use, found.second_use


def both(first: Use | None, second: Use | None, figure: str) -> str:
    """A figure of each: `cost_per_trial`, `p50` or `p95`; a dash where neither has it."""
    before, after = _figure(first, figure), _figure(second, figure)
    return "–" if before == after == "–" else f"{before} → {after}"


def _figure(use: Use | None, figure: str) -> str:
    if use is None:
        return "–"
    if figure == "cost_per_trial":
        return "–" if use.cost_per_trial is None else f"{use.cost_per_trial:.6f}"
    return "–" if use.latency is None else f"{getattr(use.latency, figure):.2f}"


def _comparison(found: Comparison) -> str:
    rows = [_row("**all**", found, *uses(found, found))]
    rows += [_row(text(each.eval_id), each, *uses(found, each)) for each in found.evals]
    parts = [f"## {text(headline(found))}", table(_HEADERS, rows)]
    facts = [reason for reason in (left_out(found), *found.notes) if reason]
    effect = found.pass_rate
    if effect.bootstrap_low is not None and effect.bootstrap_high is not None:
        interval = f"{100 * effect.bootstrap_low:+.1f} to {100 * effect.bootstrap_high:+.1f} pp"
        facts.append(f"bootstrap of {effect.bootstrap_of}, 95 %: {interval}{_mid(effect.p_mid)}")
    facts += [f"{name} ({cases.count:,}): {cases.named(NAMED)}" for name, cases in lists(found)]
    return "\n\n".join([*parts, "\n".join(f"- {whole_text(fact)}" for fact in facts)])


def _mid(p: float | None) -> str:
    return "" if p is None else f"; McNemar's mid-p: {p:.4f}"


def _row(name: str, found: Contrast, first: Use | None, second: Use | None) -> Sequence[str]:
    return (
        name,
        f"{found.pass_rate.cases:,}",
        f"{found.left_out:,}",
        *effect_cells(found.pass_rate),
        f"{found.fixed.count:,}",
        f"{found.broke.count:,}",
        both(first, second, "cost_per_trial"),
        both(first, second, "p50"),
        both(first, second, "p95"),
    )
