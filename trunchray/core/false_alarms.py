"""How often a gate fails a model that is set against itself: repeats of each case are dealt into two halves."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from trunchray.core import stats
from trunchray.core.bootstrap import Floats, Integers
from trunchray.core.gate import Gate, Limit
from trunchray.core.gate_facts import Facts, Mask
from trunchray.core.judge import scopes, widened
from trunchray.core.paired import effect
from trunchray.core.verdicts import FalseAlarms

SPLITS = 400


def against_itself(gate: Gate, facts: Facts, splits: int = SPLITS) -> FalseAlarms | None:
    """The false-alarm rate of the gate's limits against another run; None when no case has two graded attempts.

    Each split deals the attempts at every case at random into two halves of the same size, one attempt being left over
    when their number is odd, and judges one half against the other. The verdicts are the seed, so that the same ones
    always give the same rate.
    """
    graded = facts.now.attempts
    half = graded // 2
    if not half.any():
        return None
    passed = np.rint(facts.now.passes * graded).astype(np.int64)
    limits = [(eval_id, facts.within(eval_id), limit) for eval_id, limit in _against(gate, facts)]
    rates = sum(limit.max_drop is not None for _, _, limit in limits)
    halves = _Halves(facts, half, widened(gate.confidence, rates))
    chance = np.random.Generator(np.random.PCG64(passed.tolist()))
    alarms, by_limit = 0, Counter[str]()
    drops: defaultdict[str, list[int]] = defaultdict(list)
    for _ in range(splits):
        first = chance.hypergeometric(passed, graded - passed, half)
        second = chance.hypergeometric(passed - first, graded - passed - (half - first), half)
        broken: set[str] = set()
        for eval_id, mine, limit in limits:
            name = eval_id or "all evals"
            dropped = int((mine & (half > 0) & (first == half) & (second < half)).sum())
            drops[name].append(dropped)
            if limit.dropped is not None and dropped > limit.dropped:
                broken.add(f"{name}: drop")
            if limit.max_drop is not None and halves.fails(mine, first, second, limit.max_drop):
                broken.add(f"{name}: max_drop")
        by_limit.update(broken)
        alarms += bool(broken)
    low, high = stats.wilson(alarms / splits, splits)
    return FalseAlarms(
        model=facts.report.name,
        splits=splits,
        alarms=alarms,
        rate=alarms / splits,
        low=low,
        high=high,
        by_limit={name: by_limit[name] / splits for name in _names(limits)},
        usual_drop={name: int(np.quantile(counts, 0.95, method="higher")) for name, counts in drops.items()},
    )


def claimed(gate: Gate, facts: Facts) -> float | None:
    """The largest false-alarm rate that the gate promises; None when it counts dropped cases: they promise nothing."""
    limits = [limit for _, limit in _against(gate, facts)]
    return None if any(limit.dropped is not None for limit in limits) else round((1 - gate.confidence) / 2, 9)


def judges_against(gate: Gate, facts: Facts) -> bool:
    """Whether any limit is against another run."""
    return bool(_against(gate, facts))


def _against(gate: Gate, facts: Facts) -> list[tuple[str | None, Limit]]:
    return [
        (eval_id, limit)
        for eval_id, limit in scopes(gate, list(facts.evals))
        if limit.tier != "advisory" and (limit.dropped is not None or limit.max_drop is not None)
    ]


def _names(limits: list[tuple[str | None, Mask, Limit]]) -> list[str]:
    out: list[str] = []
    for eval_id, _, limit in limits:
        out += [f"{eval_id or 'all evals'}: drop"] if limit.dropped is not None else []
        out += [f"{eval_id or 'all evals'}: max_drop"] if limit.max_drop is not None else []
    return out


class _Halves:
    """Judges the pass rates of two halves, as the gate judges those of two runs."""

    def __init__(self, facts: Facts, half: Integers, confidence: float) -> None:
        self._clusters, self._half, self._confidence = facts.clusters, half, confidence

    def fails(self, mine: Mask, first: Integers, second: Integers, allowed: float) -> bool:
        places = np.flatnonzero(mine & (self._half > 0))
        if not len(places):
            return False
        half = self._half[places]
        one: Floats = first[places] / half
        other: Floats = second[places] / half
        single = bool((half == 1).all())
        found = effect(one, other, self._clusters[places], single=single, confidence=self._confidence)
        return found.high is not None and found.high < -allowed
