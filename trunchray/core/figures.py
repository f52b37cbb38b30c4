"""Groups of counted rows → the figures a report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import fsum

from trunchray.core import stats
from trunchray.core.group import CaseTotal, Group
from trunchray.core.report import Bounds, ErrorKind, Figures, IntervalMethod, Latency, Tokens
from trunchray.core.stats import Cluster


def figures(
    groups: Sequence[Group],
    *,
    planned: int,
    attempts: int,
    clusters: Sequence[str] = (),
    priced: bool | None = False,
) -> Figures:
    """The figures of one or more evals of a model; `planned` trials were owed, `attempts` for each case.

    `clusters` names what each eval's cases were made from, where several evals may share it. `priced` is as in
    `PlannedModel`.
    """
    whole = groups[0] if len(groups) == 1 else Group.merged(groups)
    evals = [group for group in groups if group.graded]
    cases = list(whole.by_case().values())
    graded, passed, rows = whole.graded, whole.passed, whole.graded + whole.error
    pass_rate = passed / graded if graded else None
    by_source = _merged(groups, clusters)
    low, high, method = _interval(pass_rate, cases, evals, by_source)
    # A coding tool may know what it cost although we know no price.
    known = priced or any(whole.costs)
    input_tokens, output_tokens, cached_tokens, reasoning_tokens = whole.tokens
    return Figures(
        planned=planned,
        passed=passed,
        failed=graded - passed,
        error=whole.error,
        not_run=planned - rows,
        coverage=graded / planned,
        pass_rate=pass_rate,
        pass_rate_low=low,
        pass_rate_high=high,
        interval=method,
        none_failed_below=stats.rule_of_three(len(cases)) if graded and passed == graded else None,
        none_passed_below=stats.rule_of_three(len(cases)) if graded and not passed else None,
        mean_score=whole.score / graded if graded else None,
        mean_score_se=_largest_error(
            [Cluster(case.attempts, case.score) for case in cases],
            [Cluster(group.graded, group.score) for group in evals],
            [Cluster(group.graded, group.score) for group in by_source],
        ),
        bounds=Bounds(errors_failed=passed / rows, errors_passed=(passed + whole.error) / rows) if rows else None,
        pass_at_k=_over_attempts(stats.pass_at_k, cases, attempts),
        pass_hat_k=_over_attempts(stats.pass_hat_k, cases, attempts),
        usage=Tokens(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_input_tokens=cached_tokens,
            reasoning_tokens=reasoning_tokens,
        ),
        cost_usd=None if whole.uncosted or not whole.costs else fsum(whole.costs),
        unpriced=0 if known or priced is None else whole.uncosted,
        uncounted=whole.uncosted if known else 0,
        least_usd=fsum(whole.costs) if known and whole.uncosted else None,
        latency=_latency(whole),
        finish_reasons=dict(sorted(whole.finish_reasons.items())),
        tool_calls=whole.tool_calls,
        cache_hits=whole.cache_hits,
        saved_tokens=whole.saved_tokens,
        retried=whole.retried,
        errors=_error_kinds(whole),
    )


def _merged(groups: Sequence[Group], clusters: Sequence[str]) -> list[Group]:
    """The graded groups of each cluster as one; none where every group is a cluster of its own."""
    if len(set(clusters)) == len(clusters):
        return []
    together: dict[str, list[Group]] = {}
    for group, cluster in zip(groups, clusters, strict=True):
        if group.graded:
            together.setdefault(cluster, []).append(group)
    return [Group.merged(some) for some in together.values()]


def _interval(
    rate: float | None, cases: Sequence[CaseTotal], evals: Sequence[Group], by_source: Sequence[Group]
) -> tuple[float | None, float | None, IntervalMethod | None]:
    """None of it without a rate."""
    if rate is None:
        return None, None, None
    by_eval = [Cluster(group.graded, group.passed) for group in evals]
    return rate_interval(rate, cases, by_eval, [Cluster(group.graded, group.passed) for group in by_source])


def rate_interval(
    rate: float, cases: Sequence[CaseTotal], *clusters: Sequence[Cluster], confidence: float = stats.CONFIDENCE
) -> tuple[float, float, IntervalMethod]:
    """The interval of a pass rate over graded attempts at `cases`, and where it comes from.

    Wilson's while cases are few, and when all agree, since then a standard error of 0 would claim certainty. Else
    normal, with the largest of the standard errors by case and by each way of clustering.
    """
    error = _largest_error([Cluster(case.attempts, case.passed) for case in cases], *clusters)
    if len(cases) < stats.FEW_CASES or not error:
        low, high = stats.wilson(rate, len(cases), confidence)
        return low, high, "wilson"
    low, high = stats.normal(rate, error, confidence)
    return low, high, "normal-clustered" if any(len(some) > 1 for some in clusters) else "normal"


def _largest_error(*ways: Sequence[Cluster]) -> float | None:
    """The largest of the standard errors clustered by case, by eval and by source.

    A few evals that happen to do equally well would otherwise make the error vanish.
    """
    errors = [error for clusters in ways if (error := stats.standard_error(clusters)) is not None]
    return max(errors, default=None)


def _over_attempts(
    estimate: Callable[[int, int, int], float], cases: Sequence[CaseTotal], attempts: int
) -> dict[str, float]:
    """The mean over cases for k = 1, 2, 4, … and `attempts`; without a k that no case was graded often enough for."""
    if attempts == 1:
        return {}
    kinds = Counter((case.attempts, case.passed) for case in cases)
    powers = {1 << power for power in range(attempts.bit_length())}
    out: dict[str, float] = {}
    for k in sorted(powers | {attempts}):
        enough = {kind: count for kind, count in kinds.items() if kind[0] >= k}
        if enough:
            total = fsum(count * estimate(*kind, k) for kind, count in enough.items())
            out[str(k)] = total / sum(enough.values())
    return out


def _latency(group: Group) -> Latency | None:
    seconds = sorted(group.seconds)
    return Latency(p50=stats.quantile(seconds, 0.5), p95=stats.quantile(seconds, 0.95)) if seconds else None


def _error_kinds(group: Group) -> tuple[ErrorKind, ...]:
    kinds = [ErrorKind(kind=kind, count=count, example=example) for kind, (count, example) in group.errors.items()]
    return tuple(sorted(kinds, key=lambda error: (-error.count, error.kind)))
