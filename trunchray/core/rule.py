"""What a check makes of a judge's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import NO, YES, Decision, QuestionType, Thresholds

TIE = 1e-9
"""How much less likely than the likeliest the option may be that the judge itself says it picks."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a check makes of each answer to its question.

    `answers` are as in `Question`; `worth` has the check's value for each of them, from 0 to 1; `passing` are those
    that pass. `thresholds` holds the check's own thresholds, any of `yes`, `no` and `sure`; the rest are the judge's.
    """

    type: QuestionType
    answers: Mapping[str, str | None]
    worth: Mapping[str, float]
    passing: frozenset[str]
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])

    def in_force(self, usual: Thresholds) -> Thresholds:
        """The thresholds in force where a judge has `usual`.

        Raises:
            UsageError: together with the check's own, `no` is above `yes`.
        """
        return replace(usual, **self.thresholds)

    def to_json(self) -> JsonValue:
        """All of it. Answers are a list, as the order of levels matters."""
        answers: list[JsonValue] = [[name, meaning, self.worth[name]] for name, meaning in self.answers.items()]
        passing: list[JsonValue] = [*sorted(self.passing)]
        return {"type": self.type, "answers": answers, "passing": passing, "thresholds": {**self.thresholds}}


def yes_no(thresholds: Mapping[str, float] | None = None) -> Rule:
    """Yes is right. `thresholds` may have `yes` and `no`."""
    return Rule("boolean", {YES: None, NO: None}, {YES: 1.0, NO: 0.0}, frozenset({YES}), thresholds or {})


@dataclass(frozen=True, slots=True)
class Judged:
    """A check as a judge decides it."""

    result: CheckResult
    picked: str | None = None
    """The answer that the decision comes to; None when it is unsure between yes and no, or contradicts itself."""
    unsure: bool = False
    """The decision lies between the thresholds, so `escalate` may be asked."""


def judged(rule: Rule, decision: Decision, usual: Thresholds) -> Judged:
    """The verdict of a decision about the rule's question, where the judge's thresholds are `usual`.

    The value is what the likeliest answer is worth, however unsure; for a yes/no question, the probability of yes.

    Raises:
        UsageError: with the check's own thresholds and the judge's, `no` is above `yes`.
    """
    thresholds = rule.in_force(usual)
    return _of_yes_no(decision, thresholds) if rule.type == "boolean" else _of_pick(rule, decision, thresholds.sure)


def _of_yes_no(decision: Decision, thresholds: Thresholds) -> Judged:
    p = decision.probabilities[YES]
    if p >= thresholds.yes:  # before `no`, so that equal thresholds leave nothing between them
        return Judged(_result(decision, passed=True, value=p), YES)
    if p <= thresholds.no:
        return Judged(_result(decision, value=p, explanation=f"answered 'no' (p={p:.2f} of yes)"), NO)
    return Judged(_result(decision, value=p, explanation=_unsure(p)), unsure=True)


def _of_pick(rule: Rule, decision: Decision, sure: float) -> Judged:
    picked, top = likeliest(decision)
    p = decision.probabilities[top]
    if picked is None:
        chosen = decision.choice or ""
        both = f"{chosen!r} (p={decision.probabilities.get(chosen, 0):.2f}) though {top!r} (p={p:.2f}) is likelier"
        return Judged(_result(decision, value=0.0, explanation=f"inconsistent decision: chose {both}"))
    value = rule.worth[picked]
    if p < sure:
        return Judged(_result(decision, value=value, explanation=_unsure(p)), picked, unsure=True)
    if picked in rule.passing:
        return Judged(_result(decision, passed=True, value=value), picked)
    return Judged(_result(decision, value=value, explanation=f"answered {picked!r} (p={p:.2f})"), picked)


def likeliest(decision: Decision) -> tuple[str | None, str]:
    """The answer that is picked, and the likeliest one (the first of several equally likely).

    The two differ only where the judge names its own choice: that breaks a tie, and where it is not the likeliest, the
    decision contradicts itself and the pick is None.
    """
    found = decision.probabilities
    top = max(found, key=lambda answer: found[answer])
    if decision.choice in (None, top):
        return top, top
    tied = found.get(decision.choice, 0.0) >= found[top] - TIE
    return (decision.choice if tied else None), top


def _unsure(p: float) -> str:
    return f"unsure (p={p:.2f})"


def _result(decision: Decision, *, value: float, passed: bool = False, explanation: str | None = None) -> CheckResult:
    return CheckResult(
        passed=passed,
        value=value,
        explanation=explanation,
        probabilities=dict(decision.probabilities),
        confidence=max(decision.probabilities.values()),
        method=decision.method,
    )
