"""Thresholds without a judge, and who may decide the checks of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trunchray.core.decisions import Thresholds
from trunchray.core.digest import canonical
from trunchray.errors import UsageError
from trunchray.evaluators.judges.base import Judge


@dataclass(frozen=True, slots=True)
class Bars:
    """Thresholds and the agent that is asked where a judge is unsure, but no judge."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    escalate: Any = None

    @property
    def invoke(self) -> None:
        """None, unlike a judge's."""
        return


def system_one(thresholds: Mapping[str, float] | Thresholds | None = None, escalate: object = None) -> Bars:
    """The thresholds of a decision model, and the agent that is asked again; the model itself is not named here.

    `thresholds` is a mapping with any of `yes` (0.7), `no` (0.3) and `sure` (0.6), all from 0 to 1. `escalate` is
    anything with `send(prompt)` that returns `{"type": "reply", "reply": text}`. An evaluation with questions needs a
    judge that can be asked: see `judge_model`.

    Raises:
        UsageError: a threshold is out of range, or `escalate` has no `send`.
    """
    return Bars(Thresholds.of(thresholds), checked_agent(escalate))


jev = system_one


def checked_agent(escalate: object) -> Any:
    """The agent that is asked again, or None.

    Raises:
        UsageError: it has no `send`.
    """
    if escalate is not None and not callable(getattr(escalate, "send", None)):
        raise UsageError(f"escalate must be an agent, anything with send(prompt) (got {type(escalate).__name__})")
    return escalate


def checked_judge(judge: object, needs: Sequence[str]) -> Judge | None:
    """The judge that decides the checks named in `needs`; None when that is empty.

    Raises:
        UsageError: what was given is not a judge; or there are such checks, and it cannot be asked.
    """
    if judge is not None and not isinstance(judge, Bars) and (problem := _problem(judge)):
        raise UsageError(f"judge: {problem}")
    if not needs:
        return None
    if judge is None:
        raise UsageError(f"{_asked(needs)} but the evaluation has no judge; {_ADVICE}")
    if isinstance(judge, Bars):
        raise UsageError(
            f"{_asked(needs)} but system_one() (jev) only sets thresholds and has no invoke; {_ADVICE} "
            "and give it the same thresholds and escalate"
        )
    return cast("Judge", judge)


_ADVICE = (
    'make one with judge_model(…), of a model such as "openai/gpt-4o-mini", a step with its invoke_step, or a function'
)
_PARTS = ("invoke", "close", "identity", "thresholds", "escalate", "timeout")


def _asked(needs: Sequence[str]) -> str:
    names = ", ".join(map(repr, needs[:5])) + (", …" if len(needs) > 5 else "")
    return f"{'scorer' if len(needs) == 1 else 'scorers'} {names}: a judge decides,"


def _problem(judge: object) -> str | None:
    missing = [name for name in _PARTS if not hasattr(judge, name)]
    if not missing and callable(getattr(judge, "invoke", None)):
        return _wrong_part(judge)
    if callable(judge) or isinstance(judge, str | Mapping):
        return f"{type(judge).__name__} is not a judge by itself; write judge_model({judge!r:.60})"
    lacks = ", ".join(missing) or "invoke that can be called"
    return f"{type(judge).__name__} is not a judge: it has no {lacks}; {_ADVICE}"


def _wrong_part(judge: Any) -> str | None:
    """What is wrong with the parts of a judge that somebody wrote."""
    name, timeout = type(judge).__name__, judge.timeout
    if not isinstance(judge.thresholds, Thresholds):
        return f"{name}.thresholds must be Thresholds (got {judge.thresholds!r:.60})"
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        return f"{name}.timeout must be seconds above 0 (got {timeout!r:.60})"
    try:
        canonical(judge.identity)
    except ValueError as e:
        return f"{name}.identity must be JSON: {e}"
    return None
