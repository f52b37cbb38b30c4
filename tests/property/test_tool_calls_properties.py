"""The call matcher against brute force, and the laws of JSON equality."""

from __future__ import annotations

import json
import math
from itertools import permutations
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from trunchray.core.checks import Alternative
from trunchray.core.checks import ToolCallSyntax as Check
from trunchray.core.trial import ToolCall
from trunchray.evaluators.assignment import in_any_order, in_order
from trunchray.evaluators.json_equality import json_equal
from trunchray.evaluators.tool_calls import grade_tool_calls

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
close_values = st.sampled_from([0, -0.0, 1, 1.0, True, False, None, "1", "", [], {}, [1], [True], {"a": 1}, {"a": 1.0}])

options = st.lists(st.sets(st.integers(0, 4)).map(sorted), max_size=5)
inputs = st.fixed_dictionaries({}, optional={"x": st.integers(1, 3), "y": st.integers(1, 2)}) | st.just("broken")
calls = st.lists(st.tuples(st.sampled_from("fg"), inputs), max_size=4).map(
    lambda pairs: tuple(ToolCall(tool_call_id="c", tool_name=name, input=given) for name, given in pairs)
)
rules = st.fixed_dictionaries(
    {"required": st.booleans()}, optional={"accepted_values": st.lists(st.integers(1, 3), max_size=3)}
)
plans = st.fixed_dictionaries(
    {
        "tool_name": st.sampled_from("fg"),
        "arguments": st.fixed_dictionaries({}, optional={"x": rules, "y": rules}),
        "extra_arguments": st.sampled_from(["forbid", "allow"]),
    }
)
alternatives = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["ordered", "unordered"]),
        "calls": st.lists(plans, max_size=4),
        "extra_calls": st.sampled_from(["forbid", "allow"]),
    }
).map(Alternative.model_validate)


def matches(plan: Any, call: ToolCall) -> bool:
    """The rule as it is written down, clause by clause."""
    if not isinstance(call.input, dict) or call.tool_name != plan.tool_name:
        return False
    for name, rule in plan.arguments.items():
        if rule.required and name not in call.input:
            return False
    for name, value in call.input.items():
        if name not in plan.arguments:
            if plan.extra_arguments == "forbid":
                return False
        elif (accepted := plan.arguments[name].accepted_values) is not None and value not in accepted:
            return False
    return True


def brute_force(alternative: Alternative, observed: tuple[ToolCall, ...]) -> bool:
    """Try every way to hand observed calls to planned calls."""
    size = len(alternative.calls)
    if alternative.extra_calls == "forbid" and size != len(observed):
        return False
    for chosen in permutations(range(len(observed)), size):
        if alternative.order == "ordered" and list(chosen) != sorted(chosen):
            continue
        if all(matches(plan, observed[i]) for plan, i in zip(alternative.calls, chosen, strict=True)):
            return True
    return False


@given(st.lists(alternatives, min_size=1, max_size=2), calls)
def test_matcher_agrees_with_brute_force(several: list[Alternative], observed: tuple[ToolCall, ...]) -> None:
    """A check passes exactly when some assignment of calls satisfies some alternative."""
    verdict = grade_tool_calls(Check(version=1, alternatives=tuple(several)), observed)
    assert verdict.passed is any(brute_force(alternative, observed) for alternative in several)


@given(st.lists(alternatives, min_size=1, max_size=3), calls)
def test_a_failure_always_has_a_reason(several: list[Alternative], observed: tuple[ToolCall, ...]) -> None:
    """Details explain each planned call, and either something was missed or something was too much."""
    verdict = grade_tool_calls(Check(version=1, alternatives=tuple(several)), observed)
    details: Any = verdict.details
    plan = several[details["alternative"]].calls
    assert [call["toolName"] for call in details["calls"]] == [call.tool_name for call in plan]
    assert all((call["reason"] is None) == (call["toolCall"] is not None) for call in details["calls"])
    problems = [call for call in details["calls"] if call["reason"]] + details["extraCalls"]
    assert bool(problems) is not verdict.passed


@given(options)
def test_assignments_are_valid_and_largest(some: list[list[int]]) -> None:
    """Each planned call gets one of its options, no call is given twice, and nobody could do better."""
    best_any = best_ordered = 0
    slots: list[int | None] = [*range(5), *[None] * len(some)]
    for chosen in set(permutations(slots, len(some))) if len(some) <= 3 else ():
        if all(call is None or call in allowed for call, allowed in zip(chosen, some, strict=True)):
            given_calls = [call for call in chosen if call is not None]
            best_any = max(best_any, len(given_calls))
            best_ordered = max(best_ordered, len(given_calls) if given_calls == sorted(given_calls) else 0)
    for assign, best in ((in_any_order, best_any), (in_order, best_ordered)):
        taken = assign(some)
        used = [call for call in taken if call is not None]
        assert all(call is None or call in allowed for call, allowed in zip(taken, some, strict=True))
        assert len(set(used)) == len(used)
        assert assign is in_any_order or used == sorted(used)
        assert len(some) > 3 or len(used) == best


@given(json_values)
def test_equality_is_reflexive_and_survives_text(value: Any) -> None:
    """A value equals itself, also after a trip through JSON text with its keys in reverse order."""
    assert json_equal(value, value)
    assert json_equal(value, json.loads(json.dumps(value)))
    if isinstance(value, dict):
        assert json_equal(value, dict(reversed(value.items())))


@given(close_values | json_values, close_values | json_values, close_values | json_values)
def test_equality_is_an_equivalence(a: Any, b: Any, c: Any) -> None:
    """Equality is symmetric and transitive."""
    assert json_equal(a, b) is json_equal(b, a)
    if json_equal(a, b) and json_equal(b, c):
        assert json_equal(a, c)


@given(st.integers())
@example(2**53 + 1)
@example(10**400)
def test_integers_equal_their_doubles(number: int) -> None:
    """1 equals 1.0, and integers beyond a double's precision equal the double that JavaScript would hold."""
    assert json_equal(number, float(number) if abs(number) < 10**300 else math.inf)
    assert not json_equal(number, number % 2 == 1)
    assert not json_equal(number, str(number))
