"""Figures as people read them: the same in pages, tables and messages. "–" stands for what there is not."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from trunchray.core.agent import HarnessAgent
from trunchray.core.excerpt import excerpt
from trunchray.core.report import Figures, ModelReport, Report
from trunchray.core.run import RunSpec


def percent(share: float | None) -> str:
    """A share of 1."""
    return "–" if share is None else f"{share:.1%}"


def share_range(low: float | None, high: float | None) -> str:
    """An interval of shares in percent."""
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "–" if difference is None else f"{100 * difference + 0.0:+.1f} pp"


def distance(difference: float | None) -> str:
    """The same without a sign, whichever way it goes."""
    return "–" if difference is None else f"{100 * difference:.1f} pp"


def chance(p: float | None) -> str:
    """A p-value with three decimals."""
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def coverage(figures: Figures | Report) -> str:
    """In percent, rounded as other shares are; but only a whole one is 100%."""
    graded = figures.passed + figures.failed
    if graded == figures.planned:
        return "100%"
    return percent(min(graded / figures.planned, 0.999))


def cost(figures: Figures) -> str:
    """US dollars, or what they are at least."""
    if figures.cost_usd is None:
        return f"≥ {figures.least_usd:,.4f}" if figures.least_usd else "–"
    return f"{figures.cost_usd:,.4f}"


def unknown_costs(models: Sequence[ModelReport]) -> list[str]:
    """Why costs of models are unknown, or known in part; nothing when none is."""
    unpriced = excerpt(", ".join(model.name for model in models if model.unpriced), 200)
    said = [f"cost –: no price is known of {unpriced}; `price` in the run config gives it"] if unpriced else []
    for sign in ("≥", "–"):
        some = [model for model in models if model.uncounted and bool(model.least_usd) == (sign == "≥")]
        if some:
            left_out = excerpt(", ".join(f"{model.uncounted:,} of {model.name}" for model in some), 200)
            said.append(
                f"cost {sign}: without trials whose tokens their provider did not count, or whose price was not known "
                f"then: {left_out}"
            )
    return said


def way_to_grade(ungraded: int, run_uri: str) -> str:
    """What to say of answers that no evaluator could grade, and that no asking mends."""
    answers, them = ("answer", "it") if ungraded == 1 else ("answers", "them")
    return (
        f"{ungraded:,} {answers} could not be graded, which asking again does not mend: once the evaluator is mended, "
        f"`trunchray regrade {quote(run_uri)} --release PATH` grades {them}"
    )


def way_to_name_a_grader(count: int, run_uri: str) -> str:
    """What to say of attempts at skill evals that nobody was named to grade."""
    attempts, them = ("attempt", "it") if count == 1 else ("attempts", "them")
    return (
        f"nobody has graded {count:,} {attempts}; where there is a rubric, "
        f"`trunchray regrade {quote(run_uri)} --grader MODEL` (or --grader-harness JSON) grades {them}"
    )


def way_to_run_again(spec: RunSpec) -> str:
    """How rows that are gone or damaged are made anew, in a message about them."""
    if spec.regrades:
        return "give the regrade command again"
    if not any(isinstance(agent, HarnessAgent) for agent in spec.agents):
        return "`trunchray run` again"
    return (
        "move execution-summary.json or triggers-result.json, which ends the run, elsewhere, and the same "
        "`trunchray skills` command reads its attempts again"
    )


def duration(seconds: float) -> str:
    """Hours, when there are any, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def ago(seconds: float) -> str:
    """How long ago something was."""
    return f"{seconds:.0f} s ago" if seconds < 100 else f"{duration(seconds)} ago"
