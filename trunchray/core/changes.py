"""How an experiment differs from an earlier one of the same evaluation."""

from __future__ import annotations

from pydantic import JsonValue

from trunchray.core.experiment import Experiment
from trunchray.core.frozen import Frozen


class Flipped(Frozen):
    """A check of a case whose result is another one now."""

    case: str
    check: str


class Changes(Frozen):
    """In the order of the data, that of the earlier experiment for what is gone."""

    fixed: tuple[Flipped, ...] = ()
    """Failed then, pass now."""
    broke: tuple[Flipped, ...] = ()
    """Passed then, fail now."""
    added: tuple[str, ...] = ()
    """Cases that are new."""
    removed: tuple[str, ...] = ()
    """Cases that are gone."""

    def to_json(self) -> dict[str, JsonValue]:
        return self.model_dump(mode="json")


def changes(now: Experiment, before: Experiment | None) -> Changes:
    """What changed; nothing when there is no earlier experiment.

    A check that one of the two experiments does not have of a case tells nothing about it.
    """
    if before is None:
        return Changes()
    return Changes(
        fixed=_flipped(now, before, passes=True),
        broke=_flipped(now, before, passes=False),
        added=tuple(case for case in now.cases if case not in before.cases),
        removed=tuple(case for case in before.cases if case not in now.cases),
    )


def _flipped(now: Experiment, before: Experiment, *, passes: bool) -> tuple[Flipped, ...]:
    return tuple(
        Flipped(case=case, check=scorer)
        for case, records in now.cases.items()
        for scorer, record in records.items()
        if record.passed is passes and before.passed(case, scorer) is (not passes)
    )
