"""From a repository with tools to a release whose tools run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.sandbox.tools import ToolModule, ToolsProcess
from trunchray.cli.main import run_command
from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.compiler import compile_benchmark, compile_to

GOOD = Path(__file__).parents[2] / "repos" / "good" / "tools"


def copied(target: Path) -> Path:
    return Path(shutil.copytree(GOOD, target))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRelease:
    folder = tmp_path_factory.mktemp("tools")
    return compile_to(copied(folder / "b"), str(folder / "out"))


def test_a_release_holds_its_tools(stored):
    """Names, descriptions and schemas in the order of the modules, and the `ai` that they were made with."""
    tools = stored.release.tools
    assert [(tool.name, tool.description) for tool in tools] == [
        ("get_order", "Look up an order by ID."),
        ("lookup_policy", "Look up a policy by topic."),
    ]
    assert tools[0].input_schema == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"orderId": {"type": "string", "description": "Such as order_123."}},
        "required": ["orderId"],
        "additionalProperties": False,
    }
    assert stored.release.modules == {tool.module for tool in tools}
    assert (stored.release.dependencies.ai or "").startswith("6.")


async def test_the_tools_of_a_release_run(stored):
    """What was stored is all that a worker needs to execute them."""
    modules = {tool.name: ToolModule(tool.module, stored.module(tool.module)) for tool in stored.release.tools}
    tools = ToolsProcess(modules)
    try:
        order = await tools.call("get_order", '{"orderId": "order_123"}', tool_call_id="1")
        policy = await tools.call("lookup_policy", '{"topic": "returns"}', tool_call_id="2")
    finally:
        await tools.close()
    assert order.output == {"orderId": "order_123", "status": "delivered", "eligible": True}
    assert policy.shown == {"type": "text", "value": "returns: unopened items may be returned within 30 days."}


def test_check_shows_the_schemas(stored, tmp_path, capsys):
    """The preview has what the release has, from another folder: its digest, tools and schemas."""
    benchmark = copied(tmp_path / "elsewhere" / "b")
    assert run_command(["check", str(benchmark), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["digest"] == stored.release.digest
    assert [(tool["name"], tool["inputSchema"]) for tool in shown["tools"]] == [
        (tool.name, tool.input_schema) for tool in stored.release.tools
    ]
    assert not (benchmark / "node_modules").exists()


def test_another_tool_is_another_release(stored, tmp_path):
    """A changed byte in what a tool imports changes the digest."""
    benchmark = copied(tmp_path / "b")
    file = benchmark / "lib" / "orders.ts"
    file.write_text(file.read_text().replace("delivered", "shipped"))
    assert compile_benchmark(benchmark).release.digest != stored.release.digest


def test_problems_of_tools_and_evals_are_told_together(tmp_path):
    """Flawed tools still exist for cases that name them; a name that is none gets a suggestion."""
    benchmark = copied(tmp_path / "b")
    policy = benchmark / "tools" / "policy.js"
    policy.write_text(policy.read_text().replace("inputSchema", "parameters"))
    evals = benchmark / "evals" / "orders.ts"
    evals.write_text(evals.read_text().replace('tools: ["get_order"', 'tools: ["get_orders"'))
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(benchmark)
    waits = "waits for a call of 'get_order', which is not in the case's `tools`; add it there"
    unknown = "tool 'get_orders' does not exist in this repository — did you mean 'get_order'?"
    version_4 = "is the name that version 4 of 'ai' used; rename it to `inputSchema`"
    assert str(refused.value).splitlines() == [
        f"evals/orders.ts: evaluate: {waits}",
        f"evals/orders.ts: tools: {unknown}",
        f"tools/policy.js: tools.lookup_policy.parameters: {version_4}",
    ]
