"""Models that call tools, from a compiled repository to the counted rows."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from support.collector import Collector, said
from support.runs import drive, question, rows
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.telemetry.metrics import METRICS
from trunchray.core.agent import Limits, Mock, ModelAgent, Pacing, ScriptedCall, ScriptedReply
from trunchray.core.telemetry import LogConfig, Observe
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


def test_a_call_that_the_wall_cuts_short_is_known(tmp_path: Path):
    """The model did call: what ended in time is kept, that others did not is said, and the trial is graded."""
    folder = tmp_path / "benchmark"
    shutil.copytree(Path(__file__).parents[2] / "repos" / "good" / "tools", folder)
    (folder / "evals" / "orders.ts").write_text(EVAL, encoding="utf-8")
    tool = folder / "tools" / "orders.ts"
    lasting = "new Promise((done) => setTimeout(done, 60_000))"
    tool.write_text(tool.read_text("utf-8").replace("({ orderId, ...orders[orderId] })", lasting), encoding="utf-8")
    release = compile_to(folder, str(tmp_path / "releases"))
    asks = ScriptedReply(text="Let me look.", tool_calls=(*BOTH, BOTH[0]))
    agent = scripted("m", asks, ScriptedReply(text="?"), wall=3, max_tool_calls=2)
    drive(question(release, [agent]), release, tmp_path)
    (row,) = (row for row in rows(tmp_path / "test") if row["case_id"] == "plan")
    assert (row["outcome"], row["output"]) == ("failed", "Let me look.")
    cut, ended, over = json.loads(row["tool_calls"])
    assert cut["error"] == "The time of the trial, limits.wall, was over before this call had ended."
    assert (ended["toolName"], ended["error"]) == ("lookup_policy", None)
    assert ended["output"]
    assert over["error"].startswith("The limit of 2 tool calls is reached")
    steps = json.loads(row["steps"])
    assert [step["name"] for step in steps if step["kind"] == "limit"] == ["max_tool_calls", "wall"]
    given = [step["input"]["input"] for step in steps if step["kind"] == "tool"]
    assert given[0] == {"orderId": "order_123"}


def test_what_a_model_was_offered_is_in_its_trace(release: StoredRelease, tmp_path: Path):
    """The request of a step names the tools of the case, and only those."""
    drive(question(release, [scripted("s", ScriptedReply(text="hi"))]), release, tmp_path)
    offered = {row["case_id"]: json.loads(row["steps"])[0]["input"].get("tools") for row in rows(tmp_path / "test")}
    assert offered == {"plan": ["get_order", "lookup_policy"], "no-tools": None}


SECRET = "a word that only prompts and answers hold"


def observed(name: str, **faults: float) -> ModelAgent:
    script = (ScriptedReply(tool_calls=BOTH), ScriptedReply(text=f"{SECRET}: it is delivered."))
    pacing = Pacing(max_in_flight=4, max_retries=1)
    return ModelAgent(name=name, model="mock/script", mock=Mock(script=script, faults=faults), pacing=pacing)


def test_what_is_told_of_a_run(release: StoredRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A trace for each trial, with its requests, tool calls and grading, and a log; neither holds what was said."""
    log = tmp_path / "logs" / "run.jsonl"
    agents = [observed("good"), observed("down", server_error=1.0)]
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        observe = Observe(log=LogConfig(level="debug", file=str(log)), traces=True)
        report = drive(question(release, agents), release, tmp_path, observe=observe)
    assert (report.planned, report.error, report.not_run) == (4, 2, 0)
    spans = {span.span_id: span for span in collector.spans}
    assert collector.services == {"trunchray"}
    trials = {said(span)["trunchray.case"]: span for span in spans.values() if span.name == "trial"}
    assert len([span for span in spans.values() if span.name == "trial"]) == 4
    plan = next(
        span
        for span in spans.values()
        if span.name == "trial" and (said(span)["gen_ai.agent.name"], said(span)["trunchray.case"]) == ("good", "plan")
    )
    below = sorted(span.name for span in spans.values() if span.parent_span_id == plan.span_id)
    assert below == ["chat script", "chat script", "evaluate", "execute_tool get_order", "execute_tool lookup_policy"]
    assert said(plan)["trunchray.outcome"] == "passed"
    chat = next(said(span) for span in spans.values() if span.name == "chat script" and span.trace_id == plan.trace_id)
    assert (chat["gen_ai.operation.name"], chat["gen_ai.provider.name"]) == ("chat", "mock")
    assert chat["gen_ai.response.finish_reasons"] in (["tool-calls"], ["stop"])
    assert chat["gen_ai.usage.input_tokens"] > 0
    failed = [said(span) for span in spans.values() if said(span).get("gen_ai.agent.name") == "down"]
    assert {span["error.type"] for span in failed} == {"server_error"}
    assert "plan" in trials

    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    events = {line["event"] for line in lines}
    assert {"run_began", "run_ended", "shard_ended", "trial_ended", "request_ended", "tool_ended", "commit"} <= events
    (trial,) = [
        line for line in lines if line["event"] == "trial_ended" and line["trial"] == said(plan)["trunchray.trial"]
    ]
    assert (trial["level"], trial["run"], trial["model"], trial["worker"]) == ("debug", "test", "good", "local")
    assert trial["shard"] == said(plan)["trunchray.shard"]
    assert {line["level"] for line in lines if line.get("failure") and line["event"] == "trial_ended"} == {"warning"}
    everything = log.read_text(encoding="utf-8") + repr(collector.spans)
    assert SECRET not in everything
    assert "order_123" not in everything


def test_metrics_that_ray_exports(ray_here: None, release: StoredRelease, tmp_path: Path):
    """Each node of the cluster exports what its workers did, by the documented names."""
    from trunchray.engine.ray_connection import ray

    agents = [observed("good"), observed("down", rate_limited=1.0)]
    drive(question(release, agents), release, tmp_path, pool="ray", observe=Observe(metrics=True))
    (head,) = [node for node in ray.nodes() if "node:__internal_head__" in node["Resources"]]  # others may have been
    address = f"http://{head['NodeManagerAddress']}:{head['MetricsExportPort']}/metrics"
    expected = {metric.name for metric in METRICS} - {"trunchray_cost_usd"}  # nobody knows what a mock costs
    found: set[str] = set()
    lines: list[str] = []
    for _ in range(60):
        with urllib.request.urlopen(address, timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line.startswith("ray_trunchray_")]
        found = {name for line in lines for name in _names(line.split("{")[0].removeprefix("ray_"))}
        if expected <= found:
            break
        Event().wait(0.5)  # agents take what processes hand on from time to time
    assert expected - found == set()
    trials = [line for line in lines if "trunchray_trials" in line and 'outcome="passed"' in line]
    assert sum(float(line.split()[-1]) for line in trials) == 1  # the case without tools has to be answered without
    assert all('run="test"' in line and 'model="good"' in line for line in trials)


def _names(name: str) -> set[str]:
    """A metric's name without what exporters append to it."""
    return {name, *(name.removesuffix(end) for end in ("_total", "_bucket", "_sum", "_count"))}
