"""May a run pass? Limits against what its models did, each with a verdict of its own.

Counts of cases (`miss`, `drop`) and of errors are facts; a trial without a verdict could go either way, so it keeps a
count open that it could break. Rates are estimates: a limit on one is broken or kept only when the whole interval says
so. A limit fails a run by interval in at most half of 1 − confidence of cases when the run is just within it; where
several rates are judged at once, the intervals that may fail it are widened for all of them together (Bonferroni), so
that this holds for the gate as a whole. To pass, each has to hold at the plain confidence, which needs no widening
(Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trunchray.core.columns import Column
from trunchray.core.contrast import CaseList
from trunchray.core.figures import rate_interval
from trunchray.core.gate import Gate, Limit, LimitName
from trunchray.core.gate_facts import Candidate, Facts, Mask
from trunchray.core.paired import effect
from trunchray.core.report import Figures
from trunchray.core.stats import Cluster
from trunchray.core.verdicts import Finding, GateReport, GateVerdict, concluded
from trunchray.core.wording import coverage, percent, points


def judge(
    gate: Gate,
    candidates: Sequence[Candidate],
    *,
    compared_with: str | None = None,
    sources: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> GateReport:
    """Every limit of the gate for every candidate of one run.

    `compared_with` names the run compared with, if any; `sources` as in `Planned`.
    """
    laid = [Facts.of(candidate, sources or {}) for candidate in candidates]
    rule = _Rule(gate, compared_with, widened(gate.confidence, _rates(gate, laid, compared_with)))
    findings = tuple(
        finding
        for facts in laid
        for eval_id, limit in scopes(gate, list(facts.evals))
        for finding in _Scope(facts, eval_id, limit, rule).findings()
    )
    return GateReport(
        run=candidates[0].contender.spec.run_id,
        compared_with=compared_with,
        verdict=concluded(findings),
        findings=findings,
        notes=tuple(notes),
    )


def scopes(gate: Gate, evals: Sequence[str]) -> Iterator[tuple[str | None, Limit]]:
    """What the gate limits: all evals together (None), then each one."""
    for eval_id in (None, *evals):
        limit = gate.of(eval_id)
        if limit is not None and limit.limits_anything:
            yield eval_id, limit


def widened(confidence: float, rates: int) -> float:
    """The confidence at which each of several rates is judged, so that all together fail no more often than one."""
    return 1 - (1 - confidence) / max(1, rates) if confidence else 0.0


def _rates(gate: Gate, laid: Sequence[Facts], compared_with: str | None) -> int:
    """How many limits on rates could fail the run."""
    limits = [limit for facts in laid for _, limit in scopes(gate, list(facts.evals)) if limit.tier != "advisory"]
    asked = sum(limit.min_pass_rate is not None for limit in limits)
    return asked + (sum(limit.max_drop is not None for limit in limits) if compared_with is not None else 0)


@dataclass(frozen=True)
class _Rule:
    """How all of a run is judged."""

    gate: Gate
    compared_with: str | None
    strict: float
    """The confidence of intervals that may fail the run."""


class _Scope:
    """Judges one limit's fields for all evals together, or for one."""

    def __init__(self, facts: Facts, eval_id: str | None, limit: Limit, rule: _Rule) -> None:
        self._facts, self._eval_id, self._limit, self._rule = facts, eval_id, limit, rule
        self._figures: Figures = facts.evals[eval_id] if eval_id else facts.report
        self._mine = facts.within(eval_id)
        graded = facts.now.attempts
        self._missed = self._mine & (graded > 0) & (facts.now.passes < 1)
        self._open = self._mine & ~self._missed & facts.unfinished
        self._floor = rule.gate.min_coverage if limit.min_coverage is None else limit.min_coverage

    def findings(self) -> Iterator[Finding]:
        limit = self._limit
        yield from self._coverage()
        if limit.max_error_share is not None:
            yield self._error_share(limit.max_error_share)
        if limit.miss is not None:
            yield self._count("miss", limit.miss, self._missed, self._open, "missed")
        if limit.min_pass_rate is not None:
            yield self._pass_rate(limit.min_pass_rate)
        if self._rule.compared_with is not None:
            yield from self._against(self._rule.compared_with)

    def _coverage(self) -> Iterator[Finding]:
        """Told where it was asked for, and where it is too low for what was."""
        share, short = self._figures.coverage, self._figures.coverage < self._floor
        if short or self._limit.min_coverage is not None:
            yield self._found(
                "min_coverage",
                allowed=self._floor,
                observed=share,
                verdict="INCONCLUSIVE" if short else "PASS",
                too_little=short,
                message=f"{coverage(self._figures)} of the trials have a verdict"
                + (f", fewer than {percent(self._floor)}: {self._why_missing()}" if short else ""),
                cases=self._facts.named(self._mine & self._facts.unfinished) if short else None,
            )

    def _why_missing(self) -> str:
        return f"{self._figures.error:,} errors, {self._figures.not_run:,} not run"

    def _error_share(self, allowed: float) -> Finding:
        share = self._figures.error / self._figures.planned
        broken = share > allowed
        return self._found(
            "max_error_share",
            allowed=allowed,
            observed=share,
            verdict="FAIL" if broken else "PASS",
            message=f"{percent(share)} of the trials ended in an error, {percent(allowed)} may",
            cases=self._facts.named(self._mine & self._facts.errors) if broken else None,
        )

    def _count(self, name: LimitName, allowed: int, broken: Mask, possible: Mask, word: str) -> Finding:
        """A count of cases: broken, or open because cases without a verdict could break it, or kept."""
        count, most = int(broken.sum()), int(broken.sum() + possible.sum())
        verdict: GateVerdict = "FAIL" if count > allowed else "INCONCLUSIVE" if most > allowed else "PASS"
        message = f"{count:,} {_plural(count, 'case')} {word}, {allowed:,} allowed"
        if verdict == "INCONCLUSIVE":
            more = most - count
            message += f"; {more:,} more {'lacks a verdict' if more == 1 else 'lack one'} and could be {word}"
        chosen = broken if verdict == "FAIL" else broken | possible
        return self._found(
            name,
            allowed=allowed,
            observed=count,
            verdict=verdict,
            too_little=verdict == "INCONCLUSIVE",
            message=message,
            cases=None if verdict == "PASS" else self._facts.named(chosen),
        )

    def _pass_rate(self, allowed: float) -> Finding:
        rate = self._figures.pass_rate
        if rate is None:
            return self._too_little("min_pass_rate", allowed, "no trial has a verdict")
        if self._figures.coverage < self._floor:
            return self._too_little(
                "min_pass_rate", allowed, f"pass rate {percent(rate)}, but coverage is too low", rate
            )
        low, high = self._rate_interval(rate)
        verdict = _decided(kept=low >= allowed, broken=high < allowed)
        return self._found(
            "min_pass_rate",
            allowed=allowed,
            observed=rate,
            low=low,
            high=high,
            verdict=verdict,
            message=f"pass rate {percent(rate)} ({percent(low)} to {percent(high)}), at least {percent(allowed)} asked"
            + (_OPEN if verdict == "INCONCLUSIVE" else ""),
            cases=None if verdict == "PASS" else self._facts.named(self._missed),
        )

    def _rate_interval(self, rate: float) -> tuple[float, float]:
        """Its lower end at the gate's confidence, its upper end at that of all rates together."""
        totals = [total for total, mine in zip(self._facts.totals, self._mine.tolist(), strict=True) if mine and total]
        clusters = self._passes_by_cluster()
        low, _, _ = rate_interval(rate, totals, clusters, confidence=self._rule.gate.confidence)
        _, high, _ = rate_interval(rate, totals, clusters, confidence=self._rule.strict)
        return low, high

    def _passes_by_cluster(self) -> list[Cluster]:
        """Graded attempts and passes of each cluster; none for a single eval."""
        if self._eval_id is not None:
            return []
        places = np.flatnonzero(self._facts.now.attempts)
        now, clusters = self._facts.now.at(places), self._facts.clusters[places]
        sizes = np.bincount(clusters, weights=now.attempts)
        passes = np.bincount(clusters, weights=np.rint(now.passes * now.attempts))
        return [Cluster(int(size), total) for size, total in zip(sizes, passes.tolist(), strict=True) if size]

    def _against(self, compared_with: str) -> Iterator[Finding]:
        dropped, max_drop, before = self._limit.dropped, self._limit.max_drop, self._facts.before
        allowed: list[tuple[LimitName, float | None]] = [("drop", dropped), ("max_drop", max_drop)]
        if before is None:
            for name, value in allowed:
                if value is not None:
                    yield self._too_little(name, value, f"run {compared_with} has no model {self._facts.report.name!r}")
            return
        if dropped is not None:
            held = (before.attempts > 0) & (before.passes == 1)
            yield self._count("drop", dropped, self._missed & held, self._open & held, "dropped")
        if max_drop is not None:
            yield self._drop_of_rate(max_drop, before)

    def _drop_of_rate(self, allowed: float, before: Column) -> Finding:
        both = self._facts.shared(self._mine, before)
        if not both.cases:
            return self._too_little("max_drop", allowed, "no case has a verdict in both runs")
        if self._figures.coverage < self._floor or self._facts.before_coverage < self._floor:
            return self._too_little("max_drop", allowed, "coverage of one of the runs is too low")
        clusters = self._facts.clusters[both.places]
        plain, strict = (
            effect(both.first.passes, both.second.passes, clusters, single=both.single, confidence=confidence)
            for confidence in (self._rule.gate.confidence, self._rule.strict)
        )
        change, low, high = plain.difference or 0.0, plain.low or 0.0, strict.high or 0.0
        verdict = _decided(kept=low >= -allowed, broken=high < -allowed)
        return self._found(
            "max_drop",
            allowed=allowed,
            observed=-change + 0.0,
            low=low,
            high=high,
            verdict=verdict,
            message=f"pass rate {points(change)} ({points(low)} to {points(high)}) on {both.cases:,} shared "
            f"{_plural(both.cases, 'case')}, {points(-allowed)} allowed" + (_OPEN if verdict == "INCONCLUSIVE" else ""),
            cases=None if verdict == "PASS" else self._facts.named(self._mine & _worse(before, self._facts.now)),
        )

    def _too_little(self, name: LimitName, allowed: float, message: str, observed: float | None = None) -> Finding:
        return self._found(
            name, allowed=allowed, observed=observed, verdict="INCONCLUSIVE", too_little=True, message=message
        )

    def _found(
        self,
        name: LimitName,
        *,
        allowed: float,
        observed: float | None,
        verdict: GateVerdict,
        message: str,
        low: float | None = None,
        high: float | None = None,
        too_little: bool = False,
        cases: CaseList | None = None,
    ) -> Finding:
        return Finding(
            model=self._facts.report.name,
            eval_id=self._eval_id,
            limit=name,
            tier=self._limit.tier,
            allowed=allowed,
            observed=observed,
            low=low,
            high=high,
            verdict=verdict,
            too_little=too_little,
            message=message,
            cases=cases or CaseList(),
        )


_OPEN = ": the interval holds the limit, so more cases or attempts are needed to tell"


def _decided(*, kept: bool, broken: bool) -> GateVerdict:
    return "PASS" if kept else "FAIL" if broken else "INCONCLUSIVE"


def _worse(before: Column, now: Column) -> Mask:
    return (before.attempts > 0) & (now.attempts > 0) & (now.passes < before.passes)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
