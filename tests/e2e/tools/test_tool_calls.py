"""Calls of tools in one trial: the AI SDK's rules, in a process that nothing leaves."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.tools import ToolModule, ToolOutcome, ToolsProcess
from trunchray.errors import ToolError
from trunchray.frontends.benchmark.tool_entries import bundle_tools

CODE = """
import { tool, jsonSchema } from "ai";
import { z } from "zod";
const description = "Does it.";
const any = jsonSchema({ type: "object" });
const free = (execute, more) => tool({ description, inputSchema: any, execute, ...more });
let count = 0;
let meet;
const met = new Promise((resolve) => { meet = resolve; });
export const tools = {
  add: tool({
    description,
    inputSchema: z.object({ a: z.coerce.number(), b: z.number().default(2) }),
    execute: async ({ a, b }, { toolCallId, messages, abortSignal }) => {
      return { sum: a + b, toolCallId, messages, aborted: abortSignal.aborted };
    },
  }),
  count: free(() => ++count),
  wait: free(async () => { await met; return "met"; }),
  meet: free(() => { meet(); return "hello"; }),
  text: free(() => "plain \\ud800 text"),
  nothing: free(() => {}),
  odd: free(() => ({ date: new Date(0), map: new Map(), not: NaN, gone: undefined, list: [undefined, () => 1] })),
  steps: free(async function* () { yield "one"; yield "two"; yield { three: 3 }; }),
  shown: free(({ x }) => ({ secret: x }), {
    toModelOutput: ({ toolCallId, input, output }) => {
      return { type: "content", value: [{ type: "text", text: `${toolCallId} ${input.x} ${output.secret}` }] };
    },
  }),
  badly_shown: free(() => 1, { toModelOutput: () => "text" }),
  shown_throws: free(() => 1, { toModelOutput: () => { throw new Error("no view"); } }),
  throws: free(() => { throw new Error("no such order"); }),
  throws_text: free(async () => { throw "just text"; }),
  throws_value: free(() => { throw { code: 1 }; }),
  throws_nothing: free(() => { throw undefined; }),
  cycle: free(() => { const a = {}; a.a = a; return a; }),
  big: free(() => 1n),
  large: free(() => "x".repeat(1_000_001)),
  deep: free(() => { let a = 1; for (let i = 0; i < 5000; i++) a = [a]; return a; }),
  loops: free(() => { for (;;); }),
  hangs: free(() => new Promise(() => {})),
  polite: free((_, { abortSignal: signal }) => new Promise((_, no) => {
    signal.addEventListener("abort", () => no(signal.reason));
  })),
  exhausts: free(() => { const kept = []; for (;;) kept.push(new Array(1e6).fill({})); }),
  fetches: free(async () => (await fetch("https://example.org")).text()),
  environment: free(() => ({ env: process.env, deno: typeof Deno, url: typeof Buffer })),
  reads: free(async () => (await import(["node", "fs"].join(":"))).readFileSync("/etc/passwd")),
  later: free(() => {
    setTimeout(() => { throw new Error("late"); }, 0);
    Promise.reject(new Error("lost"));
    return "fine";
  }),
};
"""


@pytest.fixture(scope="session")
def module(stage_of):
    """The bundle of the module above for a major version of `ai`."""
    bundles: dict[int, ToolModule] = {}

    def bundled(ai: int = 6) -> ToolModule:
        if ai not in bundles:
            bundle = bundle_tools(stage_of({"tools/a.ts": CODE}, ai=ai), ["tools/a.ts"], [])["tools/a.ts"]
            bundles[ai] = ToolModule(bundle.sha256, bundle.code)
        return bundles[ai]

    return bundled


NAMES = re.findall(r"^  (\w+): (?:free|tool)", CODE, re.MULTILINE)


@pytest.fixture
async def trial(module):
    """Starts trials with all tools; whatever happens, their processes are gone at the end."""
    started: list[ToolsProcess] = []

    def start(*, ai: int = 6, deadline: float = 30.0, heap_mb: int = 256) -> ToolsProcess:
        started.append(ToolsProcess(dict.fromkeys(NAMES, module(ai)), deadline=deadline, heap_mb=heap_mb))
        return started[-1]

    yield start
    pids = [process.pid for process in started]
    for process in started:
        await process.close()
    assert not any(map(lives, pids))


def lives(pid: int | None) -> bool:
    return pid is not None and Path(f"/proc/{pid}").exists()


async def call(tools: ToolsProcess, name: str, arguments: str = "{}") -> ToolOutcome:
    return await tools.call(name, arguments, tool_call_id="call-1", messages=[{"role": "user", "content": "你好"}])


@pytest.mark.parametrize("ai", [5, 6, 7])
async def test_validated_input_replaces_what_the_model_sent(trial, ai):
    """Defaults, conversions and stripped keys apply; the tool sees id, conversation and a live signal of its call."""
    outcome = await call(trial(ai=ai), "add", '{"a": "40", "extra": 1}')
    assert outcome.input == {"a": 40, "b": 2}
    assert outcome.output == {
        "sum": 42,
        "toolCallId": "call-1",
        "messages": [{"role": "user", "content": "你好"}],
        "aborted": False,
    }
    assert outcome.shown == {"type": "json", "value": outcome.output}
    assert (outcome.error, outcome.invalid) == (None, False)


async def test_results_of_every_kind(trial):
    """Text stays text, everything else is what JSON.stringify makes of it, and the last yield is the result."""
    tools = trial()
    assert (await call(tools, "text")).shown == {"type": "text", "value": "plain \ufffd text"}
    assert (await call(tools, "nothing")).shown == {"type": "json", "value": None}
    assert (await call(tools, "odd")).output == {
        "date": "1970-01-01T00:00:00.000Z",
        "map": {},
        "not": None,
        "list": [None, None],
    }
    assert (await call(tools, "steps")).output == {"three": 3}
    assert (await call(tools, "count", "")).input == {}
    assert (await call(tools, "later")).output == "fine"
    assert (await call(tools, "count")).output == 2


async def test_a_tool_chooses_what_the_model_sees(trial):
    """`toModelOutput` decides what the model gets; the recorded output stays the tool's own."""
    outcome = await call(trial(), "shown", '{"x": 7}')
    assert outcome.output == {"secret": 7}
    assert outcome.shown == {"type": "content", "value": [{"type": "text", "text": "call-1 7 7"}]}


MISTAKES = {
    "throws": "no such order",
    "throws_text": "just text",
    "throws_value": '{"code":1}',
    "throws_nothing": "unknown error",
    "large": "the result of tool 'large' has 1,000,003 characters of JSON; at most 1,000,000 are allowed",
    "deep": "the result of tool 'deep' is not possible: ",
    "big": "the result of tool 'big' cannot be written as JSON: Do not know how to serialize a BigInt",
    "cycle": "the result of tool 'cycle' cannot be written as JSON: Converting circular structure to JSON",
    "badly_shown": "what toModelOutput of tool 'badly_shown' returns has the type undefined",
    "shown_throws": "no view",
    "fetches": "there is no network in the sandbox",
    "reads": "A dynamic import callback was not specified",
}


async def test_mistakes_of_tools_are_for_the_model_to_see(trial):
    """Whatever a tool does wrong is an error text, and the process goes on."""
    tools = trial()
    for name, expected in MISTAKES.items():
        outcome = await call(tools, name)
        assert outcome.error is not None, name
        assert outcome.error.startswith(expected), name
        assert outcome.shown == {"type": "error-text", "value": outcome.error}
        assert not outcome.invalid
    assert (await call(tools, "count")).output == 1


async def test_bad_calls_are_refused_in_the_words_of_the_ai_sdk(trial):
    """Broken JSON, arguments that do not fit and unknown names: the tool does not run, the model reads why."""
    tools = trial()
    broken = await call(tools, "add", '{"a": ')
    assert (broken.input, broken.invalid) == ('{"a": ', True)
    assert (broken.error or "").startswith(
        'Invalid input for tool add: JSON parsing failed: Text: {"a": .\nError message: Unexpected end of JSON input'
    )
    wrong = await call(tools, "add", '{"a": 1, "b": "x"}')
    assert (wrong.input, wrong.invalid) == ({"a": 1, "b": "x"}, True)
    assert (wrong.error or "").startswith(
        'Invalid input for tool add: Type validation failed: Value: {"a":1,"b":"x"}.\nError message: [\n'
    )
    for name in ("nope", "constructor", "toString"):
        unknown = await call(tools, name, '{"a": 1}')
        assert (unknown.input, unknown.invalid) == ({"a": 1}, True)
        assert unknown.error == (f"Model tried to call unavailable tool '{name}'. Available tools: {', '.join(NAMES)}.")
    assert (
        await call(ToolsProcess({}), "x")
    ).error == "Model tried to call unavailable tool 'x'. No tools are available."


async def test_calls_run_at_the_same_time(trial):
    """A call that waits for another one ends, because both are under way together."""
    tools = trial()
    outcomes = await asyncio.gather(
        call(tools, "wait"), *(call(tools, "count") for _ in range(20)), call(tools, "meet")
    )
    assert (outcomes[0].output, outcomes[-1].output) == ("met", "hello")
    assert sorted(outcome.output for outcome in outcomes[1:-1]) == list(range(1, 21))


async def test_memory_lives_as_long_as_its_trial(trial):
    """Within a trial tools remember; the next trial begins anew."""
    one, other = trial(), trial()
    assert one.pid is None
    assert [(await call(one, "count")).output for _ in range(3)] == [1, 2, 3]
    assert (await call(other, "count")).output == 1
    assert one.pid != other.pid


@pytest.mark.parametrize("name", ["loops", "hangs"])
async def test_a_call_that_does_not_end_costs_the_process(trial, name):
    """At its deadline everything is killed, which the results say, and the next call starts afresh."""
    tools = trial(deadline=1)
    assert (await call(tools, "count")).output == 1
    before = tools.pid
    hanging, other = await asyncio.gather(call(tools, name), call(tools, "wait"))
    lost = "All tools were restarted: what earlier calls left in their memory is lost."
    texts = {hanging.error, other.error}
    assert f"Tool '{name}' did not finish within 1 s. {lost}" in texts or (
        f"Tool 'wait' did not finish within 1 s. {lost}" in texts
    )
    assert all(text and text.endswith(lost) for text in texts)
    assert not lives(before)
    assert (await call(tools, "count")).output == 1


async def test_a_tool_that_heeds_its_signal_keeps_its_memory(trial):
    """The abort signal fires at the deadline, before anything is killed."""
    tools = trial(deadline=0.5)
    assert (await call(tools, "count")).output == 1
    assert (await call(tools, "polite")).error == "The call took too long."
    assert (await call(tools, "count")).output == 2


async def test_a_dead_process_is_an_error_of_the_trial(trial):
    """Nobody can say whether a tool or the machine is to blame, so it is no result; the cause is named."""
    tools = trial(heap_mb=48)
    with pytest.raises(ToolError) as exhausted:
        await call(tools, "exhausts")
    assert exhausted.value.type == "out_of_memory"
    await call(tools, "count")
    waiting = asyncio.create_task(call(tools, "hangs"))
    os.kill(tools.pid or 0, 9)
    with pytest.raises(ToolError) as killed:
        await waiting
    assert (killed.value.type, killed.value.retryable) == ("killed", True)


async def test_closing_ends_calls_and_the_process(trial):
    """At the end of a trial nothing of it goes on, and nothing can be started again."""
    tools = trial()
    await call(tools, "count")
    pid = tools.pid
    waiting = asyncio.create_task(call(tools, "hangs"))
    await asyncio.sleep(0)
    await tools.close()
    with pytest.raises(ToolError, match=r"cut off|closed"):
        await waiting
    assert not lives(pid)
    with pytest.raises(ToolError, match="closed"):
        await call(tools, "count")
    await tools.close()


async def test_there_is_nothing_outside_of_the_sandbox(trial):
    """No environment, no runtime, no files, no network."""
    assert (await call(trial(), "environment")).output == {"env": {}, "deno": "undefined", "url": "function"}


async def test_large_arguments_and_results_arrive(trial):
    """Frames of a megabyte pass both ways while others do."""
    tools = trial()
    text = "字" * 300_000
    outcomes = await asyncio.gather(
        *(call(tools, "shown", f'{{"x": "{text}"}}') for _ in range(3)), call(tools, "count")
    )
    assert [outcome.output for outcome in outcomes] == [{"secret": text}] * 3 + [1]
