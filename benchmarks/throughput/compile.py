"""A benchmark of 25,000 cases in one JSONL file, compiled and stored."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from measure import apart, table, usage
from subject import SYSTEM, prompt

from trunchray.frontends.benchmark.compiler import compile_to

EVAL = """export default {
  id: "sums",
  systemPrompt: %s,
  evaluate: { kind: "contains", expected: "42" },
  cases: "./sums.jsonl",
}
"""


def write(folder: Path, cases: int) -> Path:
    """An authoring repository; every second case brings a check of its own. The path is of its cases."""
    evals = folder / "evals"
    evals.mkdir(parents=True)
    (folder / "benchmark.config.ts").write_text(
        'export default { protocolVersion: 1, title: "Sums", version: "1.0.0" }\n'
    )
    (evals / "sums.ts").write_text(EVAL % json.dumps(SYSTEM))
    path = evals / "sums.jsonl"
    with path.open("w") as file:
        for number in range(cases):
            case: dict[str, object] = {"id": f"sum.{number:05d}", "prompt": prompt(number), "data": {"number": number}}
            if number % 2:
                case["evaluate"] = {"kind": "gsm8k", "expected": str(number)}
            file.write(json.dumps(case) + "\n")
    return path


def run(cases: int) -> tuple[float, float, float]:
    """Seconds to compile, those of processors, and the most memory the compiler took, in MB."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / "sums", cases)
        before, began = usage(), time.monotonic()
        stored = compile_to(folder / "sums", str(folder / "releases"))
        took = time.monotonic() - began
        assert stored.release.cases.count == cases
        spent = usage().since(before)
        return took, spent.driver + spent.workers + spent.others, spent.driver_peak


def bare(cases: int) -> float:
    """Seconds to parse the same lines and write them again."""
    with tempfile.TemporaryDirectory() as temporary:
        path = write(Path(temporary), cases)
        began = time.monotonic()
        with path.open() as lines, (path.parent / "copy").open("w") as copy:
            for line in lines:
                copy.write(json.dumps(json.loads(line)) + "\n")
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=25_000)
    options = parser.parse_args()
    baseline = bare(options.cases)
    shown: list[list[object]] = [["parse and write the lines", baseline, 1.0, None, None]]
    for cases in (1, options.cases):
        took, cpu, peak = apart(run, cases)
        shown.append([f"compile {cases:,}", took, took / baseline, cpu, peak])
    table("compile", ["", "seconds", "of the baseline", "CPU s", "peak MB"], shown)


if __name__ == "__main__":
    main()
