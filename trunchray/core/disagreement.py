"""A case on which the models of a run differ."""

from __future__ import annotations

from trunchray.core.frozen import Frozen


class Finding(Frozen):
    """What became of one model's attempts at the case."""

    model: str
    graded: int
    passed: int
    score: float | None
    """The mean over graded attempts; None when there are none."""
    errors: int


class Disagreement(Frozen):
    """The case, and every model's attempts at it in the order of the run."""

    case_id: str
    eval_id: str
    findings: tuple[Finding, ...]


class Disagreements(Frozen):
    """How many such cases there are, and those on which models differ most, most first."""

    count: int = 0
    cases: tuple[Disagreement, ...] = ()
