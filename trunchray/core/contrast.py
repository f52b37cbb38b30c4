"""The contrast of two models, as reports and comparisons tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self, TypeVar

from trunchray.core.frozen import Frozen
from trunchray.core.stats import FEW_CLUSTERS, holm, rounded

SHOWN = 20
"""Cases that a list in a run's report names."""

Test = Literal["mcnemar-exact", "paired-t", "sign-exact"]
Drawn = Literal["clusters", "cases"]
DifferenceInterval = Literal["bonett-price", "student", "normal-clustered"]


class Effect(Frozen):
    """The second model minus the first, over the cases that both were graded on. Shares are from 0 to 1.

    Everything but the counts is None when there is no such case.
    """

    cases: int = 0
    clusters: int = 0
    """How many groups of cases these are: evals, those made from one source together."""
    first: float | None = None
    second: float | None = None
    difference: float | None = None
    low: float | None = None
    """With `high`, the 95 % interval of the difference."""
    high: float | None = None
    interval: DifferenceInterval | None = None
    bootstrap_low: float | None = None
    """With `bootstrap_high`, that of the cluster bootstrap, as a check; None where it was not asked for."""
    bootstrap_high: float | None = None
    bootstrap_of: Drawn | None = None
    """What it drew: below ten clusters, cases."""
    better: int = 0
    """Cases on which the second has the higher mean."""
    worse: int = 0
    test: Test | None = None
    p: float | None = None
    """Two-sided: how often two equal models would differ as far as these do, were all cases independent."""
    p_mid: float | None = None
    """McNemar's mid-p, which is less conservative; None with other tests."""
    p_adjusted: float | None = None
    """Holm's, over all pairs that were compared together."""
    detectable: float | None = None
    """The smallest difference that as many such cases show in 4 of 5 repetitions."""

    @property
    def unlikely(self) -> bool:
        """Whether, with cases that are independent, chance would hardly take it as far: p below 0.05, adjusted."""
        return self.p_adjusted is not None and self.p_adjusted < 0.05

    @property
    def reliable(self) -> bool:
        """Whether it is a difference to rely on: unlikely, and with an interval that does not hold 0.

        Both are needed, because p counts cases as independent, and an interval takes those of one cluster for alike.
        """
        return self.unlikely and not (self.low or 0.0) <= 0 <= (self.high or 0.0)


class CaseList(Frozen):
    """How many cases there are, and their ids, or the first of them."""

    count: int = 0
    cases: tuple[str, ...] = ()

    def named(self, most: int, names: Mapping[str, str] | None = None) -> str:
        """The first `most` of them, and whether there are more; empty when there are none.

        `names` says by id what people call those that they do not call by their id.
        """
        return ", ".join((names or {}).get(case, case) for case in self.cases[:most]) + (
            ", …" if self.count > most else ""
        )

    @classmethod
    def of(cls, cases: Iterable[str], limit: int | None = None) -> Self:
        """All of them by id, or the first `limit`."""
        listed = sorted(cases)
        return cls(count=len(listed), cases=tuple(listed[:limit]))


class Contrast(Frozen):
    """How two models differ on some cases."""

    pass_rate: Effect
    score: Effect | None
    """Of the mean score; None where every score is 1 for a pass and 0 for a fail."""
    fixed: CaseList
    """Cases that passed in every graded attempt of the second model, and not of the first."""
    broke: CaseList
    """The other way round."""
    left_out: int
    """Cases that both were to be asked, and that one of them, or both, have no verdict on."""


class ModelPair(Contrast):
    """Two models of one run, the second against the first."""

    first: str
    second: str


Kind = TypeVar("Kind", bound=Contrast)


def with_adjusted(contrasts: Sequence[Kind]) -> list[Kind]:
    """The same, with Holm's adjustment over all of them; pass rates and scores are two families."""
    rates = _adjusted([each.pass_rate for each in contrasts])
    scored = [place for place, each in enumerate(contrasts) if each.score]
    scores = dict(zip(scored, _adjusted([each.score for each in contrasts if each.score]), strict=True))
    return [
        each.model_copy(update={"pass_rate": rates[place], "score": scores.get(place)})
        for place, each in enumerate(contrasts)
    ]


def few_clusters(clusters: int) -> str | None:
    """What to bear in mind when several clusters, but few, carry an interval; else None."""
    if not 1 < clusters < FEW_CLUSTERS:
        return None
    return (
        f"figures over all evals are clustered by {clusters} evals or sources; with fewer than {FEW_CLUSTERS} their "
        "intervals are themselves uncertain, more often too narrow than too wide"
    )


def _adjusted(effects: Sequence[Effect]) -> list[Effect]:
    """The effects with their p-values adjusted over all of them; those without a p-value are no tests."""
    out = list(effects)
    tested = [place for place, each in enumerate(out) if each.p is not None]
    for place, p in zip(tested, holm([out[place].p or 0.0 for place in tested]), strict=True):
        out[place] = out[place].model_copy(update={"p_adjusted": rounded(p)})
    return out
