"""`tool_call_syntax`: whether the observed tool calls satisfy one of the author's alternatives.

Places are written as in the source, counting from 0: `alternatives[0].calls[1]` is planned, `toolCalls[2]` observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from trunchray.core.checks import Alternative, ArgumentRule, PlannedCall, ToolCallSyntax
from trunchray.core.trial import ToolCall, Verdict
from trunchray.evaluators.assignment import Assignment, Options, in_any_order, in_order
from trunchray.evaluators.json_equality import json_equal
from trunchray.evaluators.quote import quote, quote_some


def grade_tool_calls(check: ToolCallSyntax, calls: Sequence[ToolCall]) -> Verdict:
    """The first alternative that is met, else the closest one and what keeps it from being met.

    Details are `{alternative, calls: [{toolName, toolCall, reason}], extraCalls}`: which alternative, what each of its
    planned calls got (`toolCall`, or the `reason` why nothing), and the observed calls it has no place for.
    """
    fits: list[_Fit] = []
    for index, alternative in enumerate(check.alternatives):
        fit = _Fit.of(index, alternative, calls)
        if not fit.distance:
            return Verdict(passed=True, score=1, details=fit.details())
        fits.append(fit)
    closest = min(fits, key=lambda fit: fit.distance)
    message = closest.problem() if len(fits) == 1 else f"no alternative is met; the closest: {closest.problem()}"
    return Verdict(passed=False, score=0, message=message, details=closest.details())


@dataclass(frozen=True, slots=True)
class _Fit:
    """How well the observed calls fit one alternative."""

    index: int
    alternative: Alternative
    calls: Sequence[ToolCall]
    options: Options
    assignment: Assignment
    used: frozenset[int | None]
    unwanted: tuple[int, ...]
    """Observed calls that no planned call takes, where such calls are forbidden."""

    @classmethod
    def of(cls, index: int, alternative: Alternative, calls: Sequence[ToolCall]) -> _Fit:
        options = [_options(plan, calls) for plan in alternative.calls]
        assignment = in_order(options) if alternative.order == "ordered" else in_any_order(options)
        used = frozenset(assignment)
        forbid = alternative.extra_calls == "forbid"
        unwanted = tuple(i for i in range(len(calls)) if i not in used) if forbid else ()
        return cls(index, alternative, calls, options, assignment, used, unwanted)

    @property
    def distance(self) -> int:
        """Calls to replace, add or remove before the alternative is met; 0 when it is."""
        return max(self.assignment.count(None), len(self.unwanted))

    def details(self) -> JsonValue:
        planned: list[JsonValue] = [
            {"toolName": plan.tool_name, "toolCall": self.assignment[i], "reason": self._reason(i)}
            for i, plan in enumerate(self.alternative.calls)
        ]
        return {"alternative": self.index, "calls": planned, "extraCalls": list(self.unwanted)}

    def problem(self) -> str:
        """The first thing that keeps the alternative from being met; there must be one."""
        place = f"alternatives[{self.index}]"
        if None in self.assignment:
            first = self.assignment.index(None)
            return f"{place}.calls[{first}]: {self._reason(first)}"
        extra = self.unwanted[0]
        return f"{place}: toolCalls[{extra}] ({quote(self.calls[extra].tool_name)}) is one call too many"

    def _reason(self, index: int) -> str | None:
        """The first reason why a planned call was not met; None when it was."""
        if self.assignment[index] is not None:
            return None
        plan, options = self.alternative.calls[index], self.options[index]
        if options:
            free = next((call for call in options if call not in self.used), None)
            if free is None:
                return f"toolCalls[{options[0]}] matches, but another planned call needs it"
            return f"toolCalls[{free}] matches, but comes in the wrong order"
        named = [i for i, call in enumerate(self.calls) if call.tool_name == plan.tool_name]
        if not named:
            return f"{quote(plan.tool_name)} was not called"
        nearest = next((i for i in named if i not in self.used), named[0])
        return f"toolCalls[{nearest}]: {_sentence(plan, self.calls[nearest])}"


def _options(plan: PlannedCall, calls: Sequence[ToolCall]) -> list[int]:
    name = plan.tool_name
    return [i for i, call in enumerate(calls) if call.tool_name == name and _mismatch(plan, call.input) is None]


def _mismatch(plan: PlannedCall, given: JsonValue) -> str | None:
    """The first argument that keeps a call of the right name from matching, "" when it has none; None on a match."""
    if not isinstance(given, dict):
        return ""
    for name, rule in plan.arguments.items():
        if not _accepts(rule, given[name]) if name in given else rule.required:
            return name
    if plan.extra_arguments == "forbid" and len(given) > len(plan.arguments.keys() & given.keys()):
        return min(given.keys() - plan.arguments.keys())
    return None


def _accepts(rule: ArgumentRule, value: JsonValue) -> bool:
    return rule.accepted_values is None or any(json_equal(value, accepted) for accepted in rule.accepted_values)


def _sentence(plan: PlannedCall, call: ToolCall) -> str:
    """What is wrong with the argument that `_mismatch` found."""
    name = _mismatch(plan, call.input) or ""
    if not isinstance(call.input, dict):
        return f"its arguments are not a JSON object but {quote(call.input)}"
    if name not in plan.arguments:
        return f"argument {quote(name)} is not expected"
    if name not in call.input:
        return f"argument {quote(name)} is missing"
    accepted = plan.arguments[name].accepted_values or ()
    return f"argument {quote(name)} is {quote(call.input[name])}; accepted: {quote_some(accepted) or 'nothing'}"
