"""Intervals, tests and the gate on made-up data whose truth is known: how often they are right.

Each line repeats one experiment; `--repetitions` says how often. The seed is fixed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trunchray.core.agent import ModelAgent
from trunchray.core.comparison import Contender
from trunchray.core.contrast import Effect
from trunchray.core.false_alarms import against_itself
from trunchray.core.figures import rate_interval
from trunchray.core.gate import Gate
from trunchray.core.gate_facts import Candidate, Facts
from trunchray.core.group import CaseTotal
from trunchray.core.paired import effect
from trunchray.core.report import CountedRow, Planned, PlannedModel
from trunchray.core.run import RunSpec
from trunchray.core.stats import Cluster
from trunchray.core.tally import Tally

Chance = np.random.Generator


class Truth(NamedTuple):
    """Whether an interval held the truth."""

    low: float
    high: float
    value: float

    @property
    def held(self) -> bool:
        return self.low <= self.value <= self.high


def rate(chance: Chance, cases: int, attempts: int = 1) -> Truth:
    """A pass rate of cases whose own rates differ (Beta 4, 2; mean 2/3), asked so many times each."""
    passed = chance.binomial(attempts, chance.beta(4, 2, cases))
    totals = [CaseTotal(attempts, count, float(count)) for count in passed.tolist()]
    low, high, _ = rate_interval(float(passed.mean()) / attempts, totals)
    return Truth(low, high, 2 / 3)


def clustered_rate(chance: Chance, evals: int, cases: int) -> Truth:
    """A pass rate over evals whose own rates differ (Beta 4, 2), with so many cases each."""
    passed = chance.random((evals, cases)) < chance.beta(4, 2, (evals, 1))
    totals = [CaseTotal(1, int(one), float(one)) for one in passed.ravel()]
    clusters = [Cluster(cases, float(total)) for total in passed.sum(axis=1)]
    low, high, _ = rate_interval(float(passed.mean()), totals, clusters)
    return Truth(low, high, 2 / 3)


def pair(chance: Chance, cases: int, attempts: int = 1, better: float = 0.0, evals: int = 1) -> Effect:
    """Two models on the same cases; the second is better by `better` on each. Evals shift both ways by 0.2 or not."""
    base = 0.25 + 0.4 * chance.random(cases)
    clusters = np.arange(cases) % evals
    shift = np.where(chance.random(evals) < 0.5, -0.15, 0.15)[clusters] if evals > 1 else 0.0
    first = chance.binomial(attempts, base) / attempts
    second = chance.binomial(attempts, base + better + shift) / attempts
    return effect(first, second, clusters, single=attempts == 1)


def held(found: Effect, value: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= value <= found.high


def share(repetitions: int, once: Callable[[Chance], bool]) -> float:
    chance = np.random.default_rng(20260101)
    return sum(once(chance) for _ in range(repetitions)) / repetitions


EXPERIMENTS: dict[str, tuple[str, Callable[[Chance], bool]]] = {
    "Wilson, 50 cases": ("93–97 %", lambda chance: rate(chance, 50).held),
    "Wilson, 200 cases": ("93–97 %", lambda chance: rate(chance, 200).held),
    "normal, 400 cases": ("93–97 %", lambda chance: rate(chance, 400).held),
    "normal, 400 cases, 5 attempts": ("93–97 %", lambda chance: rate(chance, 400, 5).held),
    "clustered, 40 evals of 25": ("93–97 %", lambda chance: clustered_rate(chance, 40, 25).held),
    "clustered, 100 evals of 10": ("93–97 %", lambda chance: clustered_rate(chance, 100, 10).held),
    "clustered, 8 evals of 100 (warned of)": ("< 95 %", lambda chance: clustered_rate(chance, 8, 100).held),
    "difference, 200 cases": ("93–97 %", lambda chance: held(pair(chance, 200, better=0.1), 0.1)),
    "difference, 500 cases, 3 attempts": ("93–97 %", lambda chance: held(pair(chance, 500, 3, 0.1), 0.1)),
    "difference, 40 evals of 10": ("93–97 %", lambda chance: held(pair(chance, 400, evals=40), 0.0)),
    "exact McNemar on equal models, 500 cases": ("≤ 5 %", lambda chance: (pair(chance, 500).p or 0) < 0.05),
    "exact McNemar on equal models, 5,000 cases": ("4–6 %", lambda chance: (pair(chance, 5_000).p or 0) < 0.05),
    "mid-p on equal models, 500 cases": ("4–6 %", lambda chance: (pair(chance, 500).p_mid or 0) < 0.05),
    "paired t on equal models, 300 cases, 3 attempts": ("4–6 %", lambda chance: (pair(chance, 300, 3).p or 0) < 0.05),
}


def false_alarm_rate(repetitions: int, attempts: int = 4, cases: int = 150) -> float:
    """Of a gate with `max_drop: 0`, over repetitions of the whole run with ten splits each: it claims at most 2.5 %."""
    chance = np.random.default_rng(20260101)
    gate = Gate.model_validate({"overall": {"max_drop": 0}})
    rates: list[float] = []
    for _ in range(repetitions):
        found = against_itself(gate, made_up(chance.binomial(attempts, chance.beta(4, 2, cases)), attempts), splits=10)
        rates.append(found.rate if found else 0.0)
    return float(np.mean(rates))


def made_up(passed: np.ndarray, attempts: int) -> Facts:
    """One model whose cases passed so often."""
    model = PlannedModel("m", "a" * 64, "mock/echo", {"e": len(passed) * attempts})
    tally = Tally(Planned("r", "d" * 64, "T", attempts, (model,)))
    for case, count in enumerate(passed.tolist()):
        for attempt in range(attempts):
            won = attempt < count
            outcome = "passed" if won else "failed"
            nothing = (None, None, None, None)
            tally.add(
                CountedRow("m", "e", f"c{case}", attempt + 1, outcome, float(won), nothing, None, 0.0, None, 0, None)
            )
    agent = ModelAgent(name="m", model="mock/echo")
    spec = RunSpec(
        run_id="r", title="T", release="memory://r", release_digest="d" * 64, agents=(agent,), attempts=attempts
    )
    return Facts.of(Candidate(Contender(spec, tally.model(model), tally.sheet(model))), {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2_000)
    repetitions = parser.parse_args().repetitions
    print(f"{repetitions:,} repetitions")
    for name, (claim, once) in EXPERIMENTS.items():
        print(f"{name:50} {share(repetitions, once):6.1%}   {claim}", flush=True)
    print(f"{'gate, false alarms of max_drop: 0':50} {false_alarm_rate(max(1, repetitions // 2)):6.1%}   about 2.5 %")


if __name__ == "__main__":
    main()
