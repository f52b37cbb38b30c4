"""The AI SDK itself as the judge: what its own loop shows a model is what our tools process shows."""

from __future__ import annotations

import json
import subprocess

import pytest

from trunchray.adapters.sandbox.deno import binary
from trunchray.adapters.sandbox.tools import ToolModule, ToolsProcess
from trunchray.frontends.benchmark.tool_entries import bundle_tools

TOOLS = """
import { jsonSchema, tool } from "ai";
import { z } from "zod";
const free = (execute, more) => {
  return tool({ description: "Does it.", inputSchema: jsonSchema({ type: "object" }), execute, ...more });
};
export const tools = {
  add: tool({
    description: "Adds.",
    inputSchema: z.object({ a: z.coerce.number(), b: z.number().default(2) }),
    execute: async (input) => input,
  }),
  text: free(() => "plain"),
  nothing: free(() => undefined),
  steps: free(async function* () { yield "one"; yield { three: 3 }; }),
  shown: free(({ x }) => x, { toModelOutput: ({ toolCallId, input, output }) => {
    return { type: "text", value: [toolCallId, JSON.stringify(input), output].join() };
  } }),
  throws: free(() => { throw new Error("no such order"); }),
  throws_text: free(() => { throw "text"; }),
  throws_value: free(() => { throw { code: 1 }; }),
  throws_nothing: free(() => { throw undefined; }),
};
"""
LOOP = """
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { tools } from "./tools/a.ts";
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const shown = [];
for (const [toolName, input] of JSON.parse(Deno.args[0])) {
  let seen;
  const model = new MockLanguageModelV3({ doGenerate: async ({ prompt }) => {
    seen = prompt;
    const called = prompt.length > 1;
    const call = { type: "tool-call", toolCallId: "call-1", toolName, input };
    const content = called ? [{ type: "text", text: "" }] : [call];
    return { content, finishReason: { unified: called ? "stop" : "tool-calls" }, usage, warnings: [] };
  } });
  await generateText({ model, tools, prompt: "p", stopWhen: stepCountIs(2) });
  shown.push(seen.at(-1).content[0].output);
}
console.log(JSON.stringify(shown));
"""
CALLS = [
    ("add", '{"a": "40", "extra": 1}'),
    ("add", '{"a": '),
    ("add", ""),
    ("add", "[1]"),
    ("add", '{"a": 1, "b": "x"}'),
    ("add", '{"__proto__": {"x": 1}, "a": 1}'),
    ("add", '{"a": 1, "constructor": {"prototype": 1}}'),
    ("text", ""),
    ("nothing", "{}"),
    ("steps", " "),
    ("shown", '{"x": "y"}'),
    ("throws", "{}"),
    ("throws_text", "{}"),
    ("throws_value", "{}"),
    ("throws_nothing", "{}"),
    ("nope", "{}"),
    ("nope", "{"),
]


@pytest.fixture(scope="module")
def stage(stage_of):
    return stage_of({"tools/a.ts": TOOLS, "loop.mjs": LOOP})


@pytest.fixture(scope="module")
def shown_by_the_sdk(stage) -> list[dict]:
    """What a model gets to see of each call in the SDK's own loop."""
    done = subprocess.run(
        [binary(), "run", "-A", "--quiet", "loop.mjs", json.dumps(CALLS)],
        cwd=stage.directory,
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


async def test_the_model_sees_what_the_ai_sdk_would_show_it(stage, shown_by_the_sdk):
    """Results, refusals and errors are the same to the last character."""
    bundle = bundle_tools(stage, ["tools/a.ts"], [])["tools/a.ts"]
    names = ("add", "text", "nothing", "steps", "shown", "throws", "throws_text", "throws_value", "throws_nothing")
    tools = ToolsProcess(dict.fromkeys(names, ToolModule(bundle.sha256, bundle.code)))
    try:
        outcomes = [await tools.call(name, text, tool_call_id="call-1") for name, text in CALLS]
    finally:
        await tools.close()
    assert [outcome.shown for outcome in outcomes] == shown_by_the_sdk
