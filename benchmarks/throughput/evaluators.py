"""Custom evaluators: calls a second and processor, each call in a realm of its own in a Deno without permissions."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time

from measure import Usage, apart, table, usage
from pydantic import JsonValue

from trunchray.adapters.sandbox.deno import binary
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule

PLAIN = b"""
const answers = new Map([["forty-two", 42]]);
export default {
  evaluate({ output, caseData }) {
    const said = output.match(/-?[0-9]+/)?.[0] ?? answers.get(output);
    return { passed: Number(said) === caseData.expected, score: said ? 1 : 0, message: `said ${said}` };
  },
};
"""

OUTPUT = "The answer is 42. " + "Because. " * 100


def run(slots: int, calls: int) -> tuple[float, Usage]:
    """Seconds for `calls` calls, at most `slots` at a time, and what they used."""
    return asyncio.run(_run(slots, calls))


async def _run(slots: int, calls: int) -> tuple[float, Usage]:
    sandbox = EvaluatorSandbox(slots=slots)
    module = SandboxModule("plain", PLAIN, "default")
    given: dict[str, JsonValue] = {"output": OUTPUT, "caseData": {"expected": 42}, "toolCalls": []}

    async def call(times: range) -> None:
        for _ in times:
            graded = await sandbox.evaluate(module, given)
            assert graded.passed

    await asyncio.gather(*(call(range(5)) for _ in range(slots)))
    before, began = usage(), time.monotonic()
    await asyncio.gather(*(call(range(place, calls, slots)) for place in range(slots)))
    seconds, spent = time.monotonic() - began, usage().since(before)
    await sandbox.close()
    return seconds, spent


def bare(calls: int) -> tuple[float, float]:
    """Seconds for as many calls in one process: all in one realm, and each in an empty new one."""
    given = json.dumps({"output": OUTPUT, "caseData": {"expected": 42}})
    module = f"(() => {{ {PLAIN.decode().replace('export default', 'return')} }})()"
    script = f"""
import vm from "node:vm";
const script = new vm.Script({json.dumps(module)}), given = {json.dumps(given)};
const shared = script.runInThisContext();
const timed = (author) => {{
  const call = () => JSON.stringify(author().evaluate(JSON.parse(given)));
  for (let n = 0; n < 100; n++) call();
  const began = performance.now();
  for (let n = 0; n < {calls}; n++) call();
  return (performance.now() - began) / 1000;
}};
console.log(timed(() => shared), timed(() => script.runInContext(vm.createContext({{}}))));
"""
    with tempfile.NamedTemporaryFile("w", suffix=".mjs") as file:
        file.write(script)
        file.flush()
        done = subprocess.run([binary(), "run", file.name], capture_output=True, check=True, text=True)
    shared, fresh = map(float, done.stdout.split())
    return shared, fresh


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=4_000)
    options = parser.parse_args()
    calls, processors = options.calls, os.cpu_count() or 1
    shown: list[list[object]] = []
    for slots in dict.fromkeys((1, processors)):
        seconds, spent = apart(run, slots, calls)
        used = spent.driver + spent.workers + spent.others
        cores = min(slots, processors)
        shown.append([f"{slots} at a time", calls / seconds, calls / seconds / cores, calls / used, spent.worker_peak])
    for name, seconds in zip(
        ("one realm for all, one process", "empty new realms, one process"), bare(calls), strict=True
    ):
        shown.append([name, calls / seconds, calls / seconds, None, None])
    table(f"{calls:,} plain evaluator calls", ["", "calls/s", "a slot", "per CPU second", "worker MB"], shown)


if __name__ == "__main__":
    main()
