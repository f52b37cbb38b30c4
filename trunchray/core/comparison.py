"""One model against another: quality on the cases both were graded on, with cost and latency beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from trunchray.core.agent import AgentSpec
from trunchray.core.columns import Column, Order, Shared
from trunchray.core.contrast import CaseList, Contrast, few_clusters, with_adjusted
from trunchray.core.frozen import Frozen
from trunchray.core.matching import Matching
from trunchray.core.report import Figures, Latency, ModelReport
from trunchray.core.run import RunSpec
from trunchray.core.sheet import Sheet
from trunchray.core.unequal import unequal

SHOWN_DIFFERENCES = 3
"""Differences between two agents or graders that a note names."""
UNLIKE_ERRORS = 0.01
"""A difference of error shares above which the cases left out are no random part."""


class Use(Frozen):
    """What counted trials took. Costs are US dollars."""

    trials: int
    tokens: int
    """Input and output tokens; 0 where no provider said."""
    cost_usd: float | None
    """None when a price is unknown, or nothing was paid for; so is the cost per trial."""
    cost_per_trial: float | None
    latency: Latency | None

    @classmethod
    def of(cls, figures: Figures) -> Self:
        trials = figures.passed + figures.failed + figures.error
        cost = figures.cost_usd
        return cls(
            trials=trials,
            tokens=(figures.usage.input_tokens or 0) + (figures.usage.output_tokens or 0),
            cost_usd=cost,
            cost_per_trial=cost / trials if cost is not None and trials else None,
            latency=figures.latency,
        )


class Side(Frozen):
    """One of the two: a model and its run, over all its trials."""

    run: str
    name: str
    model: str
    release_digest: str
    attempts: int
    planned: int
    coverage: float
    error_share: float
    """Errors as a share of the planned trials."""
    use: Use


class WithoutVerdict(Frozen):
    """Why cases that are in both runs are left out: nothing was graded on one side, or on both."""

    error_first: int
    error_second: int
    not_run_first: int
    not_run_second: int


class EvalContrast(Contrast):
    """The two on one eval."""

    eval_id: str
    first_use: Use | None
    """None when the eval was no part of the run."""
    second_use: Use | None


class Comparison(Contrast):
    """The second against the first, over all cases they share."""

    first: Side
    second: Side
    without_verdict: WithoutVerdict
    added: CaseList
    """Cases that only the second run has; `removed`: only the first."""
    removed: CaseList
    changed: CaseList
    """Cases in both by id, whose content is another; they are not compared. Graders may differ where answers do not."""
    renamed: int
    """Compared cases that have another id in each run."""
    same_answers: bool = False
    """Both hold the same stored answers, graded by each: what these took tells nothing of a difference."""
    evals: tuple[EvalContrast, ...]
    notes: tuple[str, ...]


class ComparisonReport(Frozen):
    """What `trunchray compare` found. p-values are adjusted over all comparisons, those of evals over all evals too."""

    format: Literal[1] = 1
    comparisons: tuple[Comparison, ...]
    only_first: tuple[str, ...] = ()
    """Models that only the first run has; `only_second`: only the second."""
    only_second: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contender:
    """One of two models that are to be compared."""

    spec: RunSpec
    """The question of its run."""
    report: ModelReport
    sheet: Sheet

    @property
    def agent(self) -> AgentSpec:
        return self.spec.agent(self.report.name)

    def side(self) -> Side:
        report = self.report
        return Side(
            run=self.spec.run_id,
            name=report.name,
            model=report.model,
            release_digest=self.spec.release_digest,
            attempts=self.spec.attempts,
            planned=report.planned,
            coverage=report.coverage,
            error_share=report.error / report.planned,
            use=Use.of(report),
        )


def compare(
    first: Contender, second: Contender, matching: Matching, *, sources: Mapping[str, str], limit: int | None = None
) -> Comparison:
    """The second against the first.

    `sources` names what evals of the second run were made from where several may share it; lists name `limit` cases.
    """
    evals = {case: second.sheet.evals[case] for case in matching.alike}
    order = Order.of(evals)
    clusters = order.clusters(sources)
    one = Column.of(first.sheet, [matching.alike[case] for case in order.cases])
    other = Column.of(second.sheet, order.cases)
    both = Shared.of(order, one, other)
    overall = both.contrast(left_out=len(evals) - both.cases, clusters=clusters, resample=True, limit=limit)
    each: list[EvalContrast] = []
    for number, eval_id in enumerate(order.evals):
        mine = both.within(eval_id)
        left_out = int((order.eval_of == number).sum()) - mine.cases
        found = mine.contrast(left_out=left_out, clusters=clusters, resample=True, limit=limit)
        uses = {"first_use": _use(first.report, eval_id), "second_use": _use(second.report, eval_id)}
        each.append(EvalContrast(eval_id=eval_id, **uses, **dict(found)))
    return Comparison(
        first=first.side(),
        second=second.side(),
        without_verdict=_without_verdict(first.sheet, second.sheet, matching.alike),
        added=CaseList.of(matching.added, limit),
        removed=CaseList.of(matching.removed, limit),
        changed=CaseList.of(matching.changed, limit),
        renamed=matching.renamed,
        same_answers=matching.regraded is not None,
        evals=tuple(each),
        notes=tuple(_notes(first, second, matching, overall)),
        **dict(overall),
    )


def all_adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same with Holm's adjustment: over all of them, and over all their evals."""
    evals = iter(with_adjusted([each for comparison in comparisons for each in comparison.evals]))
    return tuple(
        comparison.model_copy(update={"evals": tuple(next(evals) for _ in comparison.evals)})
        for comparison in with_adjusted(comparisons)
    )


def unlike(first: Contender, second: Contender, matching: Matching) -> Iterable[str]:
    """What differs in who graded the two, and in how they were asked; in releases only if the answers are the same."""
    graders = _graders(first.spec, second.spec)
    if matching.regraded is not None:
        yield _same_answers(first.spec.release_digest, second.spec.release_digest, graders, matching)
    elif graders:
        yield f"graders differ: {_first(graders)}"
    if first.agent.name == second.agent.name and (asked := unequal(first.agent.asked, second.agent.asked)):
        yield f"{second.agent.name!r} was asked otherwise: {_first(asked)}"


def _graders(first: RunSpec, second: RunSpec) -> list[str]:
    """What differs between those who graded by rubrics; a release has its own graders."""
    was, now = (spec.grading.asked if spec.grading else None for spec in (first, second))
    if (was is None) != (now is None):
        return [f"only the {'first' if now is None else 'second'} run names a grader of its own"]
    return unequal(was, now, "grader")


def _same_answers(first_digest: str, second_digest: str, graders: Sequence[str], matching: Matching) -> str:
    """What to bear in mind when two runs hold the same stored answers, graded by these releases and graders."""
    told = [] if first_digest == second_digest else [f"{first_digest[:12]} and {second_digest[:12]}"]
    if not (told or graders):
        return "the answers are the same, and so are the graders: one release graded both"
    said = (
        f"graders differ ({', '.join([*told, *([_first(graders)] if graders else [])])}) and the answers are the same"
    )
    if not told:
        return said
    return (
        f"{said}: compared are the {len(matching.alike):,} cases that ask the same, {matching.regraded:,} of them "
        "graded by a changed check"
    )


def _first(differences: Sequence[str]) -> str:
    """The first few of them."""
    more = len(differences) - SHOWN_DIFFERENCES
    return ", ".join([*differences[:SHOWN_DIFFERENCES], *([f"and {more:,} more"] if more > 0 else [])])


def _use(report: ModelReport, eval_id: str) -> Use | None:
    return next((Use.of(each) for each in report.evals if each.eval_id == eval_id), None)


def _without_verdict(first: Sheet, second: Sheet, alike: Mapping[str, str]) -> WithoutVerdict:
    one = [case for case in alike.values() if case not in first.totals]
    other = [case for case in alike if case not in second.totals]
    errors_first, errors_second = (
        sum(case in first.errors for case in one),
        sum(case in second.errors for case in other),
    )
    return WithoutVerdict(
        error_first=errors_first,
        error_second=errors_second,
        not_run_first=len(one) - errors_first,
        not_run_second=len(other) - errors_second,
    )


def _notes(first: Contender, second: Contender, matching: Matching, overall: Contrast) -> Iterable[str]:
    """What to bear in mind when reading the comparison."""
    cases = overall.pass_rate.cases
    if not matching.alike:
        yield "the two have no case in common, so there is nothing to compare"
    elif not cases:
        yield "no case has a verdict from both, so there is nothing to compare"
    one, other = first.spec, second.spec
    if matching.regraded is None and one.release_digest != other.release_digest:
        yield (
            f"the releases differ ({one.release_digest[:12]} and {other.release_digest[:12]}): compared are the "
            f"{len(matching.alike):,} cases whose content, that is, prompt, tools, data and checks, is the same"
        )
        yield from regradable(matching)
    yield from unlike(first, second, matching)
    if matching.regraded is not None and (count := _graded_more(first.sheet, second.sheet, matching.alike)):
        yield (
            f"cases fixed or broke with more attempts graded in one of the two: {count:,}; there it may be that no "
            "verdict is another one"
        )
    if one.attempts != other.attempts:
        yield f"attempts differ ({one.attempts} and {other.attempts}): the mean over the attempts at a case counts"
    if found := few_clusters(overall.pass_rate.clusters):
        yield found
    yield from _unlike_errors(first.side(), second.side())


def _graded_more(first: Sheet, second: Sheet, alike: Mapping[str, str]) -> int:
    """Of how many cases another number of attempts has a verdict in each, while all of them pass in one alone."""
    both = [(first.totals.get(old), second.totals.get(new)) for new, old in alike.items()]
    return sum(
        one.attempts != other.attempts and (one.passed == one.attempts) != (other.passed == other.attempts)
        for one, other in both
        if one and other
    )


def regradable(matching: Matching) -> Iterable[str]:
    """The way to compare cases of which only the grading changed: one run's answers can be graded as the other's."""
    if matching.regradable:
        yield (
            f"cases with changed content that differ in their checks alone: {matching.regradable:,} of "
            f"{len(matching.changed):,}; `trunchray regrade RUN --release PATH` grades the first run's answers by the "
            "second's release, and its outcome can be compared"
        )


def _unlike_errors(first: Side, second: Side) -> Iterable[str]:
    if abs(first.error_share - second.error_share) > UNLIKE_ERRORS:
        yield (
            f"errors differ ({first.error_share:.1%} and {second.error_share:.1%} of the trials): the cases left out "
            "may not be a random part"
        )
