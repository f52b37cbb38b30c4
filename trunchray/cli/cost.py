"""What a run will cost: said before it begins, and confirmed when that is much."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from trunchray.cli.job import Job
from trunchray.cli.output import Output
from trunchray.cli.screen import Line, fitted
from trunchray.cli.tables import spent_of
from trunchray.core.budget import Budget
from trunchray.core.estimate import ModelEstimate, Range, one_trial, together
from trunchray.core.printable import printable
from trunchray.engine.launch import estimate_cost
from trunchray.engine.spending import Spending
from trunchray.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.core.report import Report
    from trunchray.engine.progress import Snapshot

_COLUMNS = (("trials", 1), ("tokens", 0), ("from – to", 3), ("cost $", 0), ("from – to", 2), ("from", 4))


class CostCheck:
    """What stands between a command and what it would spend.

    `estimate` says what is to come, of a pilot of so many trials or of all. `most` is what the command may spend in
    all, `unasked` what it spends without being asked; None: anything. `remedies` are what to do when that is less.
    """

    def __init__(
        self,
        output: Output,
        estimate: Callable[[int | None], list[ModelEstimate]],
        *,
        most: float | None,
        unasked: float | None,
        remedies: str,
    ) -> None:
        self._output, self._estimate = output, estimate
        self._most, self._unasked, self._remedies = most, unasked, remedies

    @classmethod
    def of(cls, output: Output, job: Job, *, yes: bool) -> Self:
        """Before a job. `yes`: everything is confirmed."""

        def estimate(pilot: int | None) -> list[ModelEstimate]:
            return estimate_cost(job.spec, job.release, job.run_uri, pilot=pilot, inputs=job.inputs)

        unasked = job.config.confirm_above
        limit = f"limit it with --budget-usd {unasked:g}, " if unasked else ""
        remedies = f"give --yes to go on, see --estimate for each model, {limit}or raise confirm_above"
        free = yes or not any(agent.price for agent in job.spec.agents)
        most = job.spending.whole.usd
        return cls(output, estimate, most=most, unasked=None if free else unasked, remedies=remedies)

    def show(self) -> None:
        """The estimate of what is owed, as the command's result."""
        found = self._estimate(None)
        self._output.result(_described(found), lambda console: show_estimate(console, found))

    def pilot(self, trials: int) -> bool:
        """Whether a pilot has anything to run.

        Raises:
            UsageError: it costs too much to begin unasked.
        """
        found = self._estimate(trials)
        self._confirm(found, began=False)
        return any(one.trials for one in found)

    def rest(self, *, began: bool) -> None:
        """Let the run go on if it may; after a pilot, which `began` says, its estimate is shown in any case.

        Raises:
            UsageError: it costs too much to begin unasked.
            Interrupted: the same, after a pilot.
        """
        if not began and self._unasked is None:
            return
        found = self._estimate(None)
        if began:
            show_estimate(self._output.stderr, found)
        self._confirm(found, began=began)

    def _confirm(self, found: Sequence[ModelEstimate], *, began: bool) -> None:
        usd = together(one.usd for one in found)
        expected = usd.expected if self._most is None else min(usd.expected, self._most)
        if self._unasked is None or expected <= self._unasked:
            return
        said = f"{sum(one.trials for one in found):,} trials are expected to cost {dollars(usd)}"
        if sys.stdin.isatty() and self._output.stderr.is_terminal:
            if not began:
                show_estimate(self._output.stderr, found)
            if self._asked(f"{said}. Go on? [y/N] "):
                return
            said += "; that was not confirmed"
        else:
            said += f", more than confirm_above ({self._unasked:g}) lets a command spend unasked"
        if began:
            raise Interrupted(f"{said}. The pilot is stored and counts; {self._remedies}")
        raise UsageError(f"{said}. Nothing was run; {self._remedies}")

    def _asked(self, question: str) -> bool:
        self._output.stderr.print(question, end="")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}


def show_estimate(console: Console, found: Sequence[ModelEstimate]) -> None:
    """A table of the models, and what the figures rest on."""
    lines = [_line(one) for one in found]
    if len(found) > 1:
        tokens, usd = together(one.tokens for one in found), together(one.usd for one in found)
        trials = f"{sum(one.trials for one in found):,}"
        lines.append(Line("all", [trials, *_cells(tokens, usd if any(one.usd for one in found) else None), ""], "bold"))
    console.print(fitted(console, "model", _COLUMNS, lines))
    if any(one.basis == "sizes" and one.trials for one in found):
        console.print(
            "from sizes: a token is about 4 bytes, an answer an eighth of max_output_tokens; the range spans what is "
            "plausible. --pilot N measures it"
        )
    if any(one.basis == "rows" and one.trials for one in found):
        console.print("from trials: with what the ones before had cost; the range holds the sum with 95 % confidence")
    for one in found:
        if one.usd is None:
            console.print(f"{printable(one.name)} has no price; its cost is not in here")


def dollars(usd: Range) -> str:
    """An amount with its range."""
    return f"about ${usd.expected:,.2f} (${usd.low:,.2f} to ${usd.high:,.2f})"


def budget_reached(
    report: Report, snapshot: Snapshot, spending: Spending, estimates: Sequence[ModelEstimate] = ()
) -> str:
    """What to say when a run has stopped because a budget is reached; `estimates` are of what is owed."""
    stopped = {model.name for model in report.models if model.not_run_reason == "budget"}
    owners = [(f"model {name!r}: ", spending.each[name], name) for name in spending.each if name in stopped]
    reached = [
        f"{owner}{spent_of(snapshot.spent if name is None else snapshot.spent_on(name), budget)}"
        for owner, budget, name in [("", spending.whole, None), *owners]
        if budget.limits()
    ]
    done, planned = snapshot.rows, snapshot.planned
    stored = snapshot.rows - (report.planned - report.not_run)
    waiting = f" ({stored:,} of them count when the run goes on)" if stored > 0 else ""
    unbegun = [_why_not_begun(one, spending) for one in estimates if one.name in not_begun(report, snapshot)]
    headline = "budget reached" if done else "the budget does not carry one trial (--estimate says what they may cost)"
    return (
        f"{headline}: {'; '.join(reached)}; {done:,} of {planned:,} trials are done{waiting}, {planned - done:,} "
        f"are owed; the same command with a larger budget continues, and pays for nothing twice{''.join(unbegun)}"
    )


def not_begun(report: Report, snapshot: Snapshot) -> set[str]:
    """The models of which a budget has let no trial begin."""
    stopped = {model.name for model in report.models if model.not_run_reason == "budget"}
    return {agent.name for agent in snapshot.agents if agent.name in stopped and not agent.counts.rows}


def _why_not_begun(one: ModelEstimate, spending: Spending) -> str:
    """What kept a model from its first trial."""
    bounds = (spending.whole, spending.each.get(one.name, Budget()))
    in_dollars = one.usd and any(budget.usd for budget in bounds)
    expected, most = (
        f"${spend.usd:,.4f}" if in_dollars else f"{spend.tokens:,} tokens"
        for spend in (one_trial(one), one_trial(one, "high"))
    )
    return (
        f"; no trial of {one.name!r} was begun: one was expected to cost {expected}, and may cost {most}; a smaller "
        "limits.max_output_tokens, which makes a new run, lets more of them fit"
    )


def _line(one: ModelEstimate) -> Line:
    basis = f"{one.rows:,} trials" if one.basis == "rows" else "sizes"
    return Line(one.name, [f"{one.trials:,}", *_cells(one.tokens, one.usd), basis])


def _cells(tokens: Range, usd: Range | None) -> list[str]:
    cost = ["–", "–"] if usd is None else [f"{usd.expected:,.4f}", f"{usd.low:,.4f} – {usd.high:,.4f}"]
    return [f"{tokens.expected:,.0f}", f"{tokens.low:,.0f} – {tokens.high:,.0f}", *cost]


def _described(found: Sequence[ModelEstimate]) -> JsonValue:
    models: list[JsonValue] = [one.model_dump(mode="json") for one in found]
    usd = together(one.usd for one in found) if all(one.usd for one in found) else None
    return {
        "trials": sum(one.trials for one in found),
        "tokens": together(one.tokens for one in found).model_dump(mode="json"),
        "usd": usd.model_dump(mode="json") if usd else None,
        "models": models,
    }
