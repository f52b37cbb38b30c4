"""Models that call tools, from a compiled repository to the counted rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.runs import drive, question, rows
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import Limits, Mock, ModelAgent, ScriptedCall, ScriptedReply
from trunchray.frontends.benchmark.compiler import compile_to

EVAL = """
export default {
  id: "orders", tools: ["get_order", "lookup_policy"],
  cases: [
    { id: "plan", prompt: "Is order_123 delivered?", evaluate: {
      kind: "tool_call_syntax", version: 1,
      alternatives: [{ order: "unordered", calls: [
        { toolName: "get_order", arguments: { orderId: { acceptedValues: ["order_123"] } } },
        { toolName: "lookup_policy", arguments: { topic: { acceptedValues: ["returns"] } } },
      ] }],
    } },
    { id: "no-tools", prompt: "Say hello.", tools: [], evaluate: {
      kind: "tool_call_syntax", version: 1, alternatives: [{ calls: [] }] } },
  ],
  evaluate: { kind: "non_empty" },
}
"""
BOTH = (
    ScriptedCall(name="get_order", arguments={"orderId": "order_123"}),
    ScriptedCall(name="lookup_policy", arguments={"topic": "returns"}),
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> StoredRelease:
    folder = tmp_path_factory.mktemp("tools")
    shutil.copytree(Path(__file__).parents[2] / "repos" / "good" / "tools", folder / "benchmark")
    (folder / "benchmark" / "evals" / "orders.ts").write_text(EVAL, encoding="utf-8")
    return compile_to(folder / "benchmark", str(folder / "releases"))


def scripted(name: str, *script: ScriptedReply, **limits: int) -> ModelAgent:
    return ModelAgent(name=name, model="mock/script", mock=Mock(script=script), limits=Limits(**limits))


def test_a_model_uses_the_tools_of_its_case(pool: str, release: StoredRelease, tmp_path: Path):
    """Calls are executed, their results go back to the model, and grading sees what was called."""
    good = scripted("good", ScriptedReply(tool_calls=BOTH), ScriptedReply(text="It is delivered."))
    wrong = scripted(
        "wrong",
        ScriptedReply(tool_calls=(ScriptedCall(name="get_order", arguments={"orderId": 7}),)),
        ScriptedReply(tool_calls=(ScriptedCall(name="cancel_order"),)),
        ScriptedReply(text="Done."),
    )
    endless = scripted("endless", ScriptedReply(text="…", tool_calls=BOTH[:1]), max_steps=3)
    report = drive(question(release, [good, wrong, endless]), release, tmp_path, pool=pool)
    assert report.error == 0
    found: dict[tuple[str, str], dict[str, Any]] = {
        (row["agent"], row["case_id"]): row for row in rows(tmp_path / "test")
    }
    plan = found["good", "plan"]
    assert (plan["passed"], plan["output"]) == (True, "It is delivered.")
    calls = json.loads(plan["tool_calls"])
    assert calls[0]["output"] == {"orderId": "order_123", "status": "delivered", "eligible": True}
    kinds = [step["kind"] for step in json.loads(plan["steps"])]
    assert kinds == ["model", "tool", "tool", "model"]

    errors = [call["error"] for call in json.loads(found["wrong", "plan"]["tool_calls"])]
    assert errors[0].startswith("Invalid input for tool get_order")
    assert errors[1].startswith("Model tried to call unavailable tool 'cancel_order'. Available tools: get_order, ")
    assert found["wrong", "plan"]["passed"] is False

    limit = json.loads(found["endless", "plan"]["steps"])[-1]
    assert (limit["kind"], limit["name"]) == ("limit", "max_steps")
    assert found["good", "no-tools"]["passed"] is False, "a call was observed although the case offers no tool"
    assert "No tools are available" in json.loads(found["good", "no-tools"]["tool_calls"])[0]["error"]


def test_what_a_model_was_offered_is_in_its_trace(release: StoredRelease, tmp_path: Path):
    """The request of a step names the tools of the case, and only those."""
    drive(question(release, [scripted("s", ScriptedReply(text="hi"))]), release, tmp_path)
    offered = {row["case_id"]: json.loads(row["steps"])[0]["input"].get("tools") for row in rows(tmp_path / "test")}
    assert offered == {"plan": ["get_order", "lookup_policy"], "no-tools": None}
