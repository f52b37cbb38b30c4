"""What one check made of all cases, against what is allowed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from pydantic import JsonValue

from trunchray.core.allowance import Allowance
from trunchray.core.check_result import CheckResult
from trunchray.core.experiment import Experiment
from trunchray.core.frozen import Frozen

LimitName = Literal["miss", "drop", "must"]


@dataclass(frozen=True, slots=True)
class Marked:
    """A check's result for one case, and whether that case must pass it whatever is allowed."""

    case: str
    result: CheckResult
    must: bool


class BrokenLimit(Frozen):
    """A limit that was not kept, and every case that counts against it."""

    limit: LimitName
    allowed: int
    cases: tuple[str, ...]

    def __str__(self) -> str:
        if self.limit == "must":
            return "must pass"
        return f"{len(self.cases):,} {self.limit}{_plural(self.limit, len(self.cases))}, {self.allowed:,} allowed"


class ScorerReport(Frozen):
    """Counts are of cases; one that skips the check is in none of them."""

    passes: int
    misses: int
    drops: int | None
    """Misses that passed in the experiment compared with; None when nothing was compared."""
    mean: float | None
    """The mean value; None when every case skips the check."""
    limits: Allowance
    broken: tuple[BrokenLimit, ...] = ()
    failed: tuple[str, ...] = ()
    """The cases that failed, in the order of the data."""

    def to_json(self) -> dict[str, JsonValue]:
        return self.model_dump(mode="json")


def scorer_report(scorer: str, marked: Sequence[Marked], allowed: Allowance, before: Experiment | None) -> ScorerReport:
    """Count, and compare with every limit, whether or not another one is broken."""
    failed = tuple(each.case for each in marked if not each.result.passed)
    dropped = tuple(case for case in failed if before and before.passed(case, scorer))
    musts = tuple(each.case for each in marked if each.must and not each.result.passed)
    against: Mapping[LimitName, tuple[tuple[str, ...], int]] = {
        "miss": (failed, allowed.miss),
        "drop": (dropped, allowed.drop),
        "must": (musts, 0),
    }
    return ScorerReport(
        passes=len(marked) - len(failed),
        misses=len(failed),
        drops=None if before is None else len(dropped),
        mean=fsum(each.result.value for each in marked) / len(marked) if marked else None,
        limits=allowed,
        broken=tuple(
            BrokenLimit(limit=name, allowed=most, cases=cases)
            for name, (cases, most) in against.items()
            if len(cases) > most
        ),
        failed=failed,
    )


def _plural(limit: LimitName, count: int) -> str:
    if count == 1:
        return ""
    return "es" if limit == "miss" else "s"
