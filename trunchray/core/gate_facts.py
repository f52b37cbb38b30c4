"""What one model did, laid out as a gate looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trunchray.core.bootstrap import Integers
from trunchray.core.columns import Column, Order, Shared
from trunchray.core.comparison import Contender
from trunchray.core.contrast import CaseList
from trunchray.core.group import CaseTotal
from trunchray.core.report import EvalReport, ModelReport

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidate:
    """A model to be judged, and what it is compared with."""

    contender: Contender
    baseline: Contender | None = None
    """None when there is no run to compare with, or when that run does not have the model."""
    alike: Mapping[str, str] | None = None
    """For each case that the baseline has too: its id there."""


@dataclass(frozen=True)
class Facts:
    """A candidate's cases in one order, now and before. Masks and columns are in that order."""

    report: ModelReport
    evals: Mapping[str, EvalReport]
    attempts: int
    """Planned for each case."""
    order: Order
    clusters: Integers
    now: Column
    totals: Sequence[CaseTotal | None]
    """None for a case without a verdict."""
    errors: Mask
    before: Column | None
    before_coverage: float

    @classmethod
    def of(cls, candidate: Candidate, sources: Mapping[str, str]) -> Self:
        contender, before, alike = candidate.contender, candidate.baseline, candidate.alike or {}
        report, sheet = contender.report, contender.sheet
        order = Order.of(sheet.evals)
        return cls(
            report=report,
            evals={entry.eval_id: entry for entry in report.evals},
            attempts=contender.spec.attempts,
            order=order,
            clusters=order.clusters(sources),
            now=Column.of(sheet, order.cases),
            totals=[sheet.totals.get(case) for case in order.cases],
            errors=np.array([case in sheet.errors for case in order.cases], dtype=np.bool_),
            before=Column.of(before.sheet, [alike.get(case) for case in order.cases]) if before else None,
            before_coverage=before.report.coverage if before else 0.0,
        )

    @property
    def unfinished(self) -> Mask:
        """Cases that have not a verdict on every attempt."""
        return self.now.attempts < self.attempts

    def within(self, eval_id: str | None) -> Mask:
        """The cases of an eval, or all."""
        if eval_id is None:
            return np.ones(len(self.order.cases), dtype=np.bool_)
        return self.order.eval_of == self.order.evals.index(eval_id)

    def shared(self, mine: Mask, before: Column) -> Shared:
        """Those of these cases that have a verdict now and before."""
        places = np.flatnonzero(mine & (before.attempts > 0) & (self.now.attempts > 0))
        return Shared(self.order, places, before.at(places), self.now.at(places))

    def named(self, chosen: Mask) -> CaseList:
        """All of the chosen cases."""
        places = np.flatnonzero(chosen).tolist()
        return CaseList(count=len(places), cases=tuple(self.order.cases[place] for place in places))
