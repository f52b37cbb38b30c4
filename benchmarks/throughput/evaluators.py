"""Custom evaluators: calls a second and processor, each in a realm of its own behind all walls, and time to recover."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from measure import Usage, apart, result, table, usage
from pydantic import JsonValue

from trunchray.adapters.sandbox.deno import binary
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.adapters.sandbox.launcher import sandbox_level
from trunchray.errors import EvaluatorError
from trunchray.frontends.benchmark.compiler import compile_benchmark

PLAIN = b"""
const answers = new Map([["forty-two", 42]]);
export default {
  evaluate({ output, caseData }) {
    const said = output.match(/-?[0-9]+/)?.[0] ?? answers.get(output);
    return { passed: Number(said) === caseData.expected, score: said ? 1 : 0, message: `said ${said}` };
  },
};
"""

ZOD = """
import ZOD_SPELLING from "zod";
const answer = z.object({ orderId: z.string().min(1), eligible: z.boolean(), lines: z.array(z.number()).max(9) });
export default {
  id: "zod", prompt: "…",
  evaluate({ output }: { output: string }) {
    const read = answer.safeParse(JSON.parse(output));
    return { passed: read.success && read.data.eligible, message: read.success ? null : read.error.message };
  },
};
"""
HANGING = b"export default { evaluate: ({ caseData }) => { while (caseData.hang); return true; } }"

OUTPUT = "The answer is 42. " + "Because. " * 100


def run(slots: int, calls: int, code: bytes = PLAIN, output: str = OUTPUT) -> tuple[float, Usage]:
    """Seconds for `calls` calls, at most `slots` at a time, and what they used."""
    return asyncio.run(_run(slots, calls, code, output))


async def _run(slots: int, calls: int, code: bytes, output: str) -> tuple[float, Usage]:
    sandbox = EvaluatorSandbox(slots=slots)
    module = SandboxModule("measured", code, "default")
    given: dict[str, JsonValue] = {"output": output, "caseData": {"expected": 42}, "toolCalls": []}

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


def zod(spelling: str) -> bytes:
    """A bundled evaluator that checks its answer with zod, imported as `spelling`, as the compiler makes it."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "benchmark")
        (repository / "evals").mkdir(parents=True)
        (repository / "evals" / "zod.ts").write_text(ZOD.replace("ZOD_SPELLING", spelling), encoding="utf-8")
        (repository / "package.json").write_text('{"dependencies": {"zod": "^4.0.0"}}', encoding="utf-8")
        (code,) = compile_benchmark(repository).modules.values()
        return code


def recovery(rounds: int) -> tuple[float, float]:
    """Median seconds from the deadline of a call that hangs to its error, and from there to the next verdict."""
    return asyncio.run(_recovery(rounds))


async def _recovery(rounds: int) -> tuple[float, float]:
    deadline = 0.3
    sandbox = EvaluatorSandbox(slots=1, deadline=deadline)
    module = SandboxModule("hanging", HANGING, "default")
    killed: list[float] = []
    restarted: list[float] = []
    for _ in range(rounds):
        await sandbox.evaluate(module, {"caseData": {"hang": False}})
        began = time.monotonic()
        with contextlib.suppress(EvaluatorError):
            await sandbox.evaluate(module, {"caseData": {"hang": True}})
        killed.append(time.monotonic() - began - deadline)
        began = time.monotonic()
        await sandbox.evaluate(module, {"caseData": {"hang": False}})
        restarted.append(time.monotonic() - began)
    await sandbox.close()
    return median(killed), median(restarted)


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
        ours = spent.driver / calls * 1e6
        rate = calls / seconds
        shown.append([f"{slots} at a time", rate, rate / cores, calls / used, ours, spent.worker_peak])
    for name, seconds in zip(
        ("one realm for all, one process", "empty new realms, one process"), bare(calls), strict=True
    ):
        shown.append([name, calls / seconds, calls / seconds, None, None, None])
    table(f"{calls:,} plain evaluator calls ({sandbox_level()})", _HEAD, shown)
    plain = shown[-3]
    few = max(100, calls // 10)
    shown = []
    for name, spelling in (("import { z }", "{ z }"), ("import * as z", "* as z")):
        code = zod(spelling)
        seconds, spent = apart(run, 1, few, code, '{"orderId": "a-1", "eligible": true, "lines": [1, 2]}')
        used = spent.driver + spent.workers + spent.others
        row = [f"{name}, {len(code) // 1000} kB", few / seconds, few / seconds, few / used]
        shown.append([*row, spent.driver / few * 1e6, spent.worker_peak])
    table(f"{few:,} zod evaluator calls, one at a time", _HEAD, shown)
    print()
    for row, least in ((plain, 900), (shown[-1], 120)):
        rate = float(str(row[2]))
        result(f"custom evaluators, {row[0]}", f"≥ {least} calls/s a core", f"{rate:,.0f}", met=rate >= least)
    killed, restarted = (seconds * 1e3 for seconds in recovery(10))
    print(f"\na call that hangs: killed {killed:.0f} ms after its deadline, next verdict {restarted:.0f} ms later")


_HEAD = ["", "calls/s", "a slot", "per CPU second", "Python µs", "worker MB"]


if __name__ == "__main__":
    main()
