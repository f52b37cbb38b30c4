"""One model's verdicts, case by case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trunchray.core.group import CaseTotal


@dataclass(frozen=True)
class Sheet:
    """What one model did with each case that its run planned for it."""

    evals: Mapping[str, str]
    """The eval of each planned case."""
    totals: Mapping[str, CaseTotal]
    """The graded attempts at each case that has some."""
    errors: Mapping[str, int] = field(default_factory=dict[str, int])
    """Attempts that ended in an error, of each case that has some."""
