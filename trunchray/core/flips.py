"""Which verdicts changed when stored answers were graded anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trunchray.core.frozen import Frozen
from trunchray.core.trial import Outcome

LISTED = 1000
"""Flips that a report lists."""


class Graded(NamedTuple):
    """What grading made of one trial."""

    eval_id: str
    agent: str
    case_id: str
    attempt: int
    """From 1."""
    outcome: Outcome
    score: float | None
    message: str | None
    """The evaluator's; of an error, `<boundary>/<type>: <message>`."""
    gradable: bool
    """Grading alone failed."""

    @property
    def judgement(self) -> Judgement:
        return Judgement(outcome=self.outcome, score=self.score, message=self.message)


class Judgement(Frozen):
    """An outcome and what explains it."""

    outcome: Outcome
    score: float | None
    """None for an error."""
    message: str | None


class Flip(Frozen):
    """A trial whose outcome is another one now."""

    model: str
    eval_id: str
    case_id: str
    attempt: int
    old: Judgement
    new: Judgement


class FlipCount(Frozen):
    """How many trials of one model and eval went from one outcome to another."""

    model: str
    eval_id: str
    old: Outcome
    new: Outcome
    count: int


class FlipReport(Frozen):
    """All that changed. A trial is compared when it has a row from before and one of now."""

    compared: int
    flipped: int
    rescored: int
    """Trials with the same outcome and another score."""
    ungraded: int
    """Trials that could not be graded now: the evaluator or its sandbox failed."""
    counts: tuple[FlipCount, ...]
    flips: tuple[Flip, ...]
    """The first `LISTED` by model, eval, case and attempt."""


class FlipTally:
    """Sets what is against what was, model after model."""

    def __init__(self) -> None:
        self._compared = self._rescored = self._ungraded = 0
        self._counts: Counter[tuple[str, str, Outcome, Outcome]] = Counter()
        self._flips: list[Flip] = []

    def add(self, rows: Iterable[Graded], before: Mapping[tuple[int, str], Graded]) -> list[Flip]:
        """The flips among the rows of one model, in order; `before` is by attempt and case."""
        flips = [flip for row in rows if (flip := self._compare(row, before.get((row.attempt, row.case_id))))]
        flips.sort(key=lambda flip: (flip.eval_id, flip.case_id, flip.attempt))
        self._counts.update((flip.model, flip.eval_id, flip.old.outcome, flip.new.outcome) for flip in flips)
        self._flips += flips[: LISTED - len(self._flips)]
        return flips

    def report(self) -> FlipReport:
        """All of it so far."""
        return FlipReport(
            compared=self._compared,
            flipped=self._counts.total(),
            rescored=self._rescored,
            ungraded=self._ungraded,
            counts=tuple(
                FlipCount(model=model, eval_id=eval_id, old=old, new=new, count=count)
                for (model, eval_id, old, new), count in self._counts.items()
            ),
            flips=tuple(self._flips),
        )

    def _compare(self, new: Graded, old: Graded | None) -> Flip | None:
        if old is None:
            return None
        self._compared += 1
        self._ungraded += new.gradable
        if new.outcome == old.outcome:
            self._rescored += new.score != old.score
            return None
        return Flip(
            model=new.agent,
            eval_id=new.eval_id,
            case_id=new.case_id,
            attempt=new.attempt,
            old=old.judgement,
            new=new.judgement,
        )
