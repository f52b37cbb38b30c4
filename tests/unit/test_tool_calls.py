"""`tool_call_syntax`: alternatives, order, assignment and the reasons given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.core.checks import ToolCallSyntax
from trunchray.core.trial import ToolCall, Verdict
from trunchray.evaluators.tool_calls import grade_tool_calls

VECTORS = Path(__file__).parents[1] / "vectors" / "tool_call_syntax.jsonl"


def observed(*calls: tuple[str, Any]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(tool_call_id=f"c{i}", tool_name=name, input=given) for i, (name, given) in enumerate(calls))


def planned(name: str, **accepted: Any) -> dict[str, Any]:
    return {"toolName": name, "arguments": {key: {"acceptedValues": values} for key, values in accepted.items()}}


def grade(calls: tuple[ToolCall, ...], *alternatives: dict[str, Any]) -> Verdict:
    return grade_tool_calls(ToolCallSyntax.model_validate({"version": 1, "alternatives": alternatives}), calls)


@pytest.mark.parametrize(
    "row", [json.loads(line) for line in VECTORS.read_bytes().splitlines()], ids=lambda row: row["name"]
)
def test_vectors(row: dict[str, Any]) -> None:
    """Every golden case is decided as written down."""
    calls = observed(*((call["toolName"], call["input"]) for call in row["toolCalls"]))
    verdict = grade_tool_calls(ToolCallSyntax.model_validate(row["evaluate"]), calls)
    assert (verdict.passed, verdict.score) == (row["passed"], float(row["passed"]))
    assert (verdict.message is None) is row["passed"]


@pytest.mark.parametrize(
    ("calls", "plan", "reason"),
    [
        ([], planned("f"), '"f" was not called'),
        ([("F", {})], planned("f"), '"f" was not called'),
        ([("f", "x=1")], planned("f"), 'toolCalls[0]: its arguments are not a JSON object but "x=1"'),
        ([("f", {})], planned("f", x=[1]), 'toolCalls[0]: argument "x" is missing'),
        ([("f", {"x": True})], planned("f", x=[1]), 'toolCalls[0]: argument "x" is true; accepted: 1'),
        ([("f", {"x": 1})], planned("f", x=[]), 'toolCalls[0]: argument "x" is 1; accepted: nothing'),
        ([("f", {"z": 1, "y": 1})], planned("f"), 'toolCalls[0]: argument "y" is not expected'),
        ([("g", {}), ("f", {"": 1})], planned("f"), 'toolCalls[1]: argument "" is not expected'),
    ],
)
def test_first_reason_of_a_planned_call(calls: list[tuple[str, Any]], plan: dict[str, Any], reason: str) -> None:
    """A planned call that was not met says what was wrong with the nearest observed call."""
    verdict = grade(observed(*calls), {"calls": [plan], "extraCalls": "allow"})
    assert verdict.message == f"alternatives[0].calls[0]: {reason}"
    assert verdict.details == {
        "alternative": 0,
        "calls": [{"toolName": "f", "toolCall": None, "reason": reason}],
        "extraCalls": [],
    }


def test_wrong_order_is_named() -> None:
    """A call that would match at another place is called out of order."""
    verdict = grade(observed(("b", {}), ("a", {})), {"calls": [planned("a"), planned("b")]})
    assert verdict.message == "alternatives[0].calls[0]: toolCalls[1] matches, but comes in the wrong order"


def test_a_call_serves_one_planned_call_only() -> None:
    """When two planned calls want the same observed call, the one left without says so."""
    plan = {"calls": [planned("f", x=[1]), planned("f", x=[1])], "order": "unordered"}
    verdict = grade(observed(("f", {"x": 1})), plan)
    assert verdict.message == "alternatives[0].calls[1]: toolCalls[0] matches, but another planned call needs it"


def test_extra_calls_are_listed() -> None:
    """Calls that nobody planned are named, the first of them in the message."""
    verdict = grade(observed(("f", {}), ("g", {}), ("h", {})), {"calls": [planned("f")]})
    assert verdict.message == 'alternatives[0]: toolCalls[1] ("g") is one call too many'
    assert verdict.details == {
        "alternative": 0,
        "calls": [{"toolName": "f", "toolCall": 0, "reason": None}],
        "extraCalls": [1, 2],
    }


def test_the_met_alternative_is_named() -> None:
    """Details say which alternative passed, counting from 0."""
    verdict = grade(observed(("b", {})), {"calls": [planned("a")]}, {"calls": [planned("b")]})
    assert verdict.details == {
        "alternative": 1,
        "calls": [{"toolName": "b", "toolCall": 0, "reason": None}],
        "extraCalls": [],
    }


def test_the_closest_alternative_is_explained() -> None:
    """Of several unmet alternatives, the one that needs the fewest changes is explained."""
    far = {"calls": [planned("a"), planned("b"), planned("c")]}
    near = {"calls": [planned("a"), planned("z")]}
    verdict = grade(observed(("a", {})), far, near)
    assert verdict.message == 'no alternative is met; the closest: alternatives[1].calls[1]: "z" was not called'


@pytest.mark.parametrize("order", ["ordered", "unordered"])
@pytest.mark.parametrize("wanted", [[1], [1, 2]])
def test_large_plans_are_decided(order: str, wanted: list[int]) -> None:
    """Hundreds of interchangeable calls are decided without trying their permutations or recursing per call."""
    plan = {"calls": [planned("f", x=wanted)] * 150, "order": order}
    assert grade(observed(*[("f", {"x": 1})] * 150), plan).passed
    assert not grade(observed(*[("f", {"x": 1})] * 149), plan).passed
