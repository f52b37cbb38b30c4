"""Which thresholds suit a judge and a workload: what each would have made of a labelled sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from pydantic import JsonValue

from trunchray.core.decisions import Decision, Thresholds
from trunchray.core.frozen import Frozen
from trunchray.core.rule import Judged, Rule, judged, likeliest

Kind = Literal["yes/no", "ask"]
Label = bool | str
"""Whether a check is expected to pass; or, of one made by `ask`, the name of the right answer."""

YES_THRESHOLDS = tuple(percent / 100 for percent in range(50, 100, 5))
"""0.50, 0.55, … 0.95."""
SURE_THRESHOLDS = tuple(percent / 100 for percent in range(30, 100, 5))
"""0.30, 0.35, … 0.95."""


class Sample(NamedTuple):
    """What a judge made of one labelled case."""

    case: str
    label: Label
    decision: Decision


class Trouble(Frozen):
    """A labelled case about which nothing was decided, and why."""

    case: str
    reason: str


class Row(Frozen):
    """What one setting of a check's thresholds makes of its samples."""

    thresholds: dict[str, float]
    """`yes` and `no`, or `sure`, as the check or the judge is given them."""
    agree: int
    """Decided as labelled."""
    unsure: int
    """Not decided."""
    disagree: int
    """Decided against the label."""

    @property
    def coverage(self) -> float:
        """The share of the samples that it decides; 0 when there are none."""
        n = self.agree + self.unsure + self.disagree
        return (n - self.unsure) / n if n else 0.0

    def to_json(self) -> dict[str, JsonValue]:
        """`{yes, no, agree, unsure, disagree}`, or with `sure`."""
        return {**self.thresholds, "agree": self.agree, "unsure": self.unsure, "disagree": self.disagree}


class CheckCalibration(Frozen):
    """One check at every threshold, lowest first."""

    check: str
    kind: Kind
    rows: tuple[Row, ...]
    n: int
    """Samples: labelled cases about which the judge gave a decision, unsure or not."""
    errors: tuple[Trouble, ...] = ()
    """Labelled cases whose run failed, or about which the judge gave no decision. They count nowhere else."""

    @property
    def best(self) -> Row | None:
        """The row with the fewest confident disagreements, then the most agreements, then the lowest threshold.

        None when there are no samples.
        """
        return min(self.rows, key=lambda row: (row.disagree, -row.agree)) if self.n else None  # the first of equals

    @property
    def recommended(self) -> dict[str, float] | None:
        """What to paste into the check or the judge: `{yes, no}` or `{sure}`; None when there are no samples."""
        return None if self.best is None else dict(self.best.thresholds)

    def to_json(self) -> dict[str, JsonValue]:
        """`{check, kind, rows, recommended, n, errors}`."""
        recommended: JsonValue = None if self.recommended is None else {**self.recommended}
        return {
            "check": self.check,
            "kind": self.kind,
            "rows": [row.to_json() for row in self.rows],
            "recommended": recommended,
            "n": self.n,
            "errors": [error.model_dump(mode="json") for error in self.errors],
        }


def calibrated(check: str, rule: Rule, samples: Sequence[Sample], errors: Iterable[Trouble] = ()) -> CheckCalibration:
    """A check at every threshold of its kind: yes/no sweeps `yes`, with `no` its mirror image; others sweep `sure`.

    A decision that contradicts itself is an error, as it decides nothing at any threshold.
    """
    sound = [sample for sample in samples if not _contradicts(rule, sample.decision)]
    broken = [sample.case for sample in samples if _contradicts(rule, sample.decision)]
    return CheckCalibration(
        check=check,
        kind="yes/no" if rule.type == "boolean" else "ask",
        rows=tuple(_row(rule, thresholds, sound) for thresholds in _sweep(rule)),
        n=len(sound),
        errors=(*errors, *(Trouble(case=case, reason="inconsistent decision") for case in broken)),
    )


def _sweep(rule: Rule) -> list[dict[str, float]]:
    if rule.type == "boolean":
        return [{"yes": yes, "no": round(1 - yes, 2)} for yes in YES_THRESHOLDS]
    return [{"sure": sure} for sure in SURE_THRESHOLDS]


def _row(rule: Rule, thresholds: Mapping[str, float], samples: Iterable[Sample]) -> Row:
    there = replace(rule, thresholds=thresholds)
    counts = Counter(_verdict(judged(there, sample.decision, Thresholds()), sample.label) for sample in samples)
    return Row(thresholds=dict(thresholds), agree=counts["agree"], unsure=counts["unsure"], disagree=counts["disagree"])


def _verdict(found: Judged, label: Label) -> Literal["agree", "unsure", "disagree"]:
    if found.unsure:
        return "unsure"
    said = found.result.passed if isinstance(label, bool) else found.picked
    return "agree" if said == label else "disagree"


def _contradicts(rule: Rule, decision: Decision) -> bool:
    return rule.type != "boolean" and likeliest(decision)[0] is None
