"""What is kept of a group of counted rows: compact columns, from which figures are computed at the end."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import NamedTuple

from trunchray.core.report import CountedRow


class CaseTotal(NamedTuple):
    """The graded attempts at one case: how many, how many passed, and the sum of their scores."""

    attempts: int
    passed: int
    score: float


class Group:
    """The rows of one model and one eval, or of several evals together."""

    def __init__(self) -> None:
        self.cases = array("I")
        """The number of each graded row's case; `passes` (0 or 1) and `scores` run beside it."""
        self.passes = array("b")
        self.scores = array("d")
        self.error_cases = array("I")
        """The number of each error row's case."""
        self.seconds = array("d")
        self.costs = array("d")
        self.uncosted = 0
        """Rows that used the model and whose cost is unknown."""
        self.tokens: list[int | None] = [None] * 4
        """Input, output, cached, reasoning; None while no row has said."""
        self.finish_reasons: Counter[str] = Counter()
        self.tool_calls = 0
        self.cache_hits = 0
        self.saved_tokens = 0
        self.retried = 0
        self.errors: dict[str, tuple[int, str]] = {}
        """By `<boundary>/<type>`: how many, and the message that sorts first."""

    @classmethod
    def merged(cls, groups: Iterable[Group]) -> Group:
        out = cls()
        for group in groups:
            out._absorb(group)
        return out

    @property
    def graded(self) -> int:
        return len(self.cases)

    @property
    def error(self) -> int:
        return len(self.error_cases)

    @property
    def passed(self) -> int:
        return sum(self.passes)

    @property
    def score(self) -> float:
        """The sum of all scores."""
        return fsum(self.scores)

    def add(self, row: CountedRow, case: int) -> None:
        """Count a row; `case` is any number that stands for its case alone."""
        if row.outcome == "error":
            self.error_cases.append(case)
        else:
            self.cases.append(case)
            self.passes.append(row.outcome == "passed")
            self.scores.append(row.score or 0.0)
        self.seconds.append(row.latency)
        self.tool_calls += row.tool_calls
        self.cache_hits += row.cache_hits
        self.saved_tokens += row.saved_tokens
        self.retried += row.earlier_errors > 0
        if row.finish_reason is not None:
            self.finish_reasons[row.finish_reason] += 1
        if row.failure is not None:
            boundary, kind, message = row.failure
            self._count_error(f"{boundary}/{kind}", 1, message)
        self._count_tokens(row.usage)
        if row.cost_usd is not None:
            self.costs.append(row.cost_usd)
        elif row.outcome != "error" or row.usage != (None, None, None, None):
            self.uncosted += 1

    def by_case(self) -> dict[int, CaseTotal]:
        """The total of each graded case, by its number, in no particular order."""
        scores: dict[int, list[float]] = {}
        passed: Counter[int] = Counter()
        for case, passes, score in zip(self.cases, self.passes, self.scores, strict=True):
            scores.setdefault(case, []).append(score)
            passed[case] += passes
        known: dict[CaseTotal, CaseTotal] = {}  # most are equal to another, and are kept once
        totals = ((case, CaseTotal(len(listed), passed[case], fsum(listed))) for case, listed in scores.items())
        return {case: known.setdefault(total, total) for case, total in totals}

    def _absorb(self, other: Group) -> None:
        self.cases.extend(other.cases)
        self.passes.extend(other.passes)
        self.scores.extend(other.scores)
        self.error_cases.extend(other.error_cases)
        self.seconds.extend(other.seconds)
        self.costs.extend(other.costs)
        self.uncosted += other.uncosted
        self._count_tokens(other.tokens)
        self.finish_reasons.update(other.finish_reasons)
        self.tool_calls += other.tool_calls
        self.cache_hits += other.cache_hits
        self.saved_tokens += other.saved_tokens
        self.retried += other.retried
        for kind, (count, example) in other.errors.items():
            self._count_error(kind, count, example)

    def _count_tokens(self, more: Iterable[int | None]) -> None:
        for kind, count in enumerate(more):
            if count is not None:
                self.tokens[kind] = (self.tokens[kind] or 0) + count

    def _count_error(self, kind: str, count: int, message: str) -> None:
        known, example = self.errors.get(kind, (0, message))
        self.errors[kind] = (known + count, min(example, message))
