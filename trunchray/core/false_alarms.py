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
from trunchray.core.verdicts import FalseAlarms, limit_name, scope_name

SPLITS = 400


def against_itself(gate: Gate, facts: Facts, splits: int = SPLITS) -> FalseAlarms | None:
    """The false-alarm rate of the gate's limits against another run; None when no case has two graded attempts.

    Each split deals the attempts at every case at random into two halves of the same size, one attempt being left over
    when their number is odd, and judges one half against the other. The verdicts are the seed, so that the same ones
    always give the same rate.
    """
    limits = [(eval_id, facts.within(eval_id), limit) for eval_id, limit in _against(gate, facts)]
    rates = sum(limit.max_drop is not None for _, _, limit in limits)
    halves = _Halves(facts, widened(gate.confidence, rates))
    if not halves.cases:
        return None
    alarms, by_limit = 0, Counter[str]()
    drops: defaultdict[str, list[int]] = defaultdict(list)
    for _ in range(splits):
        halves.deal()
        broken: set[str] = set()
        for eval_id, mine, limit in limits:
            dropped = halves.dropped(mine)
            drops[scope_name(eval_id)].append(dropped)
            if limit.dropped is not None and dropped > limit.dropped:
                broken.add(limit_name(eval_id, "drop"))
            if limit.max_drop is not None and halves.fail(mine, limit.max_drop):
                broken.add(limit_name(eval_id, "max_drop"))
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
        out += [limit_name(eval_id, "drop")] if limit.dropped is not None else []
        out += [limit_name(eval_id, "max_drop")] if limit.max_drop is not None else []
    return out


class _Halves:
    """The graded attempts at each case, dealt into two halves, and how the gate would judge one against the other."""

    def __init__(self, facts: Facts, confidence: float) -> None:
        self._clusters, self._confidence = facts.clusters, confidence
        self._graded = facts.now.attempts
        self._passed = np.rint(facts.now.passes * self._graded).astype(np.int64)
        self._half: Integers = self._graded // 2
        self._chance = np.random.Generator(np.random.PCG64(self._passed.tolist()))
        self._first = self._second = np.zeros_like(self._half)

    @property
    def cases(self) -> int:
        """Those with an attempt in each half."""
        return int((self._half > 0).sum())

    def deal(self) -> None:
        """Draw how many of the passes fall to each half, anew."""
        half, graded, passed = self._half, self._graded, self._passed
        self._first = self._chance.hypergeometric(passed, graded - passed, half)
        rest = graded - passed - (half - self._first)
        self._second = self._chance.hypergeometric(passed - self._first, rest, half)

    def dropped(self, mine: Mask) -> int:
        """How many of the cases passed throughout in the first half and not in the second."""
        half = self._half
        return int((mine & (half > 0) & (self._first == half) & (self._second < half)).sum())

    def fail(self, mine: Mask, allowed: float) -> bool:
        """Whether the pass rate of these cases is shown to have dropped by more than is allowed."""
        places = np.flatnonzero(mine & (self._half > 0))
        if not len(places):
            return False
        half = self._half[places]
        one: Floats = self._first[places] / half
        other: Floats = self._second[places] / half
        single = bool((half == 1).all())
        found = effect(one, other, self._clusters[places], single=single, confidence=self._confidence)
        return found.high is not None and found.high < -allowed
