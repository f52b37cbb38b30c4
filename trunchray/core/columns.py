"""Sheets laid side by side: the same cases in the same order, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from trunchray.core.bootstrap import Floats, Integers
from trunchray.core.contrast import CaseList, Contrast
from trunchray.core.group import CaseTotal
from trunchray.core.paired import effect
from trunchray.core.sheet import Sheet

_NONE = CaseTotal(0, 0, 0.0)


@dataclass(frozen=True)
class Order:
    """Cases by id, so that what is summed over them never depends on who ran them when."""

    cases: tuple[str, ...]
    evals: tuple[str, ...]
    """The names of their evals."""
    eval_of: Integers
    """The place in `evals` of each case's eval."""

    @classmethod
    def of(cls, evals: Mapping[str, str]) -> Self:
        """The order of cases with these evals."""
        cases = tuple(sorted(evals))
        numbers = {name: number for number, name in enumerate(sorted(set(evals.values())))}
        return cls(cases, tuple(numbers), np.array([numbers[evals[case]] for case in cases], dtype=np.int64))

    def clusters(self, sources: Mapping[str, str]) -> Integers:
        """The number of each case's cluster: of its eval's source, or of the eval where it has none."""
        names = [sources.get(name, name) for name in self.evals]
        numbers = {name: number for number, name in enumerate(sorted(set(names)))}
        return np.array([numbers[name] for name in names], dtype=np.int64)[self.eval_of]


@dataclass(frozen=True)
class Column:
    """One model's verdicts in the order of cases."""

    attempts: Integers
    """Graded attempts; 0 where there is no verdict, and then the other figures mean nothing."""
    passes: Floats
    """The mean over attempts, as of scores."""
    scores: Floats

    @classmethod
    def of(cls, sheet: Sheet, cases: Iterable[str | None]) -> Self:
        """The verdicts on these cases of the sheet; None is a case that it does not have."""
        totals = [sheet.totals.get(case, _NONE) if case else _NONE for case in cases]
        attempts = np.array([total.attempts for total in totals], dtype=np.int64)
        divisor = np.maximum(attempts, 1)
        passed = np.array([total.passed for total in totals], dtype=np.float64)
        return cls(attempts, passed / divisor, np.array([total.score for total in totals]) / divisor)

    def at(self, places: Integers) -> Column:
        return Column(self.attempts[places], self.passes[places], self.scores[places])


@dataclass(frozen=True)
class Shared:
    """The cases that two models were both graded on."""

    order: Order
    places: Integers
    """Where they are in the order."""
    first: Column
    second: Column
    """Of these cases alone, as `first`."""

    @classmethod
    def of(cls, order: Order, first: Column, second: Column) -> Self:
        places = np.flatnonzero((first.attempts > 0) & (second.attempts > 0))
        return cls(order, places, first.at(places), second.at(places))

    @property
    def cases(self) -> int:
        return len(self.places)

    @property
    def single(self) -> bool:
        """Whether every case has one graded attempt on each side."""
        return bool((self.first.attempts == 1).all() and (self.second.attempts == 1).all())

    def within(self, eval_id: str) -> Shared:
        """Those of one eval."""
        mine = np.flatnonzero(self.order.eval_of[self.places] == self.order.evals.index(eval_id))
        return Shared(self.order, self.places[mine], self.first.at(mine), self.second.at(mine))

    def contrast(
        self, *, left_out: int, clusters: Integers, resample: bool = False, limit: int | None = None
    ) -> Contrast:
        """What these cases say; `clusters` numbers the cluster of every case of the order.

        Lists of cases name the first `limit`.
        """
        first, second, mine = self.first, self.second, clusters[self.places]
        same = bool((first.scores == first.passes).all() and (second.scores == second.passes).all())
        scores = None if same else effect(first.scores, second.scores, mine, single=False, resample=resample)
        before, after = first.passes == 1, second.passes == 1
        return Contrast(
            pass_rate=effect(first.passes, second.passes, mine, single=self.single, resample=resample),
            score=scores,
            fixed=self._listed(after & ~before, limit),
            broke=self._listed(before & ~after, limit),
            left_out=left_out,
        )

    def _listed(self, chosen: NDArray[np.bool_], limit: int | None) -> CaseList:
        places = self.places[chosen]
        return CaseList(count=len(places), cases=tuple(self.order.cases[place] for place in places[:limit].tolist()))


def disagreed(columns: Sequence[Column]) -> Integers:
    """The places at which the columns differ, most first: in how often they pass, then in their scores.

    Where they differ equally, first where more of them have a verdict, then by id.
    """
    passes, scores = _spread(columns, "passes"), _spread(columns, "scores")
    graded = np.sum([column.attempts > 0 for column in columns], axis=0)
    places = np.flatnonzero((passes > 0) | (scores > 0))
    most_first = np.lexsort((-graded[places], -scores[places], -passes[places]))
    return places[most_first]


def _spread(columns: Sequence[Column], figure: Literal["passes", "scores"]) -> Floats:
    """The variance at each case of a figure over the columns that have a verdict there; 0 where none has.

    It is rounded, because sums of the same numbers in another order may differ in their last digits.
    """
    graded, total, squares = (np.zeros(len(columns[0].attempts)) for _ in range(3))
    for column in columns:
        values = np.where(column.attempts > 0, getattr(column, figure), 0)
        graded += column.attempts > 0
        total += values
        squares += values**2
    graded = np.maximum(graded, 1)
    return np.round(squares / graded - (total / graded) ** 2, 9)
