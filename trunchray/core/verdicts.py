"""What a gate found, as data."""

from __future__ import annotations

from typing import Literal

from trunchray.core.contrast import CaseList
from trunchray.core.frozen import Frozen
from trunchray.core.gate import LimitName, Tier

GateVerdict = Literal["PASS", "FAIL", "INCONCLUSIVE"]


def scope_name(eval_id: str | None) -> str:
    """What people call an eval, or all together (None)."""
    return eval_id or "all evals"


def limit_name(eval_id: str | None, limit: LimitName) -> str:
    """What people call one limit of a gate."""
    return f"{scope_name(eval_id)}: {limit}"


class Finding(Frozen):
    """One limit, for one model and one eval."""

    model: str
    eval_id: str | None
    """None for all evals together."""
    limit: LimitName
    tier: Tier
    allowed: float
    observed: float | None
    """None where there is nothing to observe."""
    low: float | None = None
    """With `high`, the interval that decided, where one did: the end that has to keep the limit is at the gate's
    confidence, the end that would break it at the one that is widened for all limits on rates."""
    high: float | None = None
    verdict: GateVerdict
    too_little: bool = False
    """INCONCLUSIVE for lack of verdicts, not because an interval leaves it open."""
    message: str
    cases: CaseList = CaseList()
    """Those that break it, or that could."""

    @property
    def blocks(self) -> bool:
        """Whether the gate is kept shut by it."""
        match self.tier:
            case "critical":
                return self.verdict != "PASS"
            case "supporting":
                return self.verdict == "FAIL" or (self.verdict == "INCONCLUSIVE" and self.too_little)
            case "advisory":
                return False

    @property
    def scope(self) -> str:
        return scope_name(self.eval_id)


class GateReport(Frozen):
    """What the gate says of a run."""

    format: Literal[1] = 1
    run: str
    compared_with: str | None
    verdict: GateVerdict
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


class FalseAlarms(Frozen):
    """How often limits against another run fail a model that is compared with itself."""

    model: str
    splits: int
    alarms: int
    rate: float
    low: float
    """With `high`, the 95 % interval of the rate."""
    high: float
    by_limit: dict[str, float]
    """The rate of each limit alone, as `<eval>: <limit>`."""
    usual_drop: dict[str, int]
    """By eval, the dropped cases that 95 of 100 splits stay within: below it `drop` limits fail by chance."""

    def limits(self) -> list[tuple[str, float, int]]:
        """Each limit's name, its rate, and the usual drop of its eval."""
        return [(name, rate, self.usual_drop.get(name.rpartition(": ")[0], 0)) for name, rate in self.by_limit.items()]


class AAReport(Frozen):
    """The false-alarm rate of a gate."""

    format: Literal[1] = 1
    run: str
    claimed: float | None
    """What limits on rates promise at most; None when the gate counts dropped cases, which promises nothing."""
    models: tuple[FalseAlarms, ...]
    notes: tuple[str, ...] = ()


def concluded(findings: tuple[Finding, ...]) -> GateVerdict:
    """FAIL when a limit that blocks is broken, else INCONCLUSIVE when one is open, else PASS."""
    blocking = {finding.verdict for finding in findings if finding.blocks}
    return "FAIL" if "FAIL" in blocking else "INCONCLUSIVE" if blocking else "PASS"
