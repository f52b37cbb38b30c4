"""Benchmarks compiled and stored: of 25,000 cases in a JSONL file, and of those that transformers make of sources."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import apart, result, table, usage
from subject import SYSTEM, prompt

from trunchray.frontends.benchmark.compiler import compile_to

SIZES = ((8_792, 5), (10_000, 12), (25_000, 48))
"""Of transformers' sources: rows and MB (10^6 bytes). Each row becomes a case."""

CONFIG = 'export default { protocolVersion: 1, title: "Sums", version: "1.0.0" }\n'
EVAL = """export default {
  id: "sums",
  systemPrompt: %s,
  evaluate: { kind: "contains", expected: "42" },
  cases: "./sums.jsonl",
}
"""
TRANSFORMED = """export default {
  id: "sums",
  evaluate: { kind: "non_empty" },
  cases: { transformer: "../transformers/sums.ts", sources: { sums: "../data/sums.jsonl" } },
}
"""
TRANSFORMER = """export default {
  name: "sums",
  transform: ({ sources }) =>
    sources.sums.content.trimEnd().split("\\n").map((line, number) => {
      const { question, answer } = JSON.parse(line)
      return { id: `sum.${number}`, prompt: question, evaluate: { kind: "gsm8k", expected: answer } }
    }),
}
"""

_LOOK = 0.05  # seconds between two looks at the memory of Deno's processes


@dataclass
class Cost:
    """Seconds by the clock and of processors; the most memory, in MB, that the compiler and one of Deno's took."""

    seconds: float = 0
    cpu: float = 0
    peak: float = 0
    deno_peak: float = 0


def write_cases(folder: Path, cases: int) -> Path:
    """An authoring repository; every second case brings a check of its own. The path is of its cases."""
    (folder / "evals").mkdir(parents=True)
    (folder / "benchmark.config.ts").write_text(CONFIG)
    (folder / "evals" / "sums.ts").write_text(EVAL % json.dumps(SYSTEM))
    path = folder / "evals" / "sums.jsonl"
    with path.open("w") as file:
        for number in range(cases):
            case: dict[str, object] = {"id": f"sum.{number:05d}", "prompt": prompt(number), "data": {"number": number}}
            if number % 2:
                case["evaluate"] = {"kind": "gsm8k", "expected": str(number)}
            file.write(json.dumps(case) + "\n")
    return path


def write_source(folder: Path, rows: int, megabytes: int) -> Path:
    """An authoring repository with a transformer; the path is of its source."""
    for name in ("evals", "transformers", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "benchmark.config.ts").write_text(CONFIG)
    (folder / "evals" / "sums.ts").write_text(TRANSFORMED)
    (folder / "transformers" / "sums.ts").write_text(TRANSFORMER)
    path = folder / "data" / "sums.jsonl"
    length = megabytes * 10**6 // rows
    with path.open("w") as file:
        for number in range(rows):
            row = {"question": prompt(number), "answer": str(number)}
            row["question"] += " " + "x" * (length - len(json.dumps(row)) - 2)
            file.write(json.dumps(row) + "\n")
    return path


def run(write: Callable[..., Path], *size: int) -> Cost:
    """Compile and store what `write` writes; the first of `size` is the number of cases."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / "sums", *size)
        with measured() as cost:
            stored = compile_to(folder / "sums", str(folder / "releases"))
        assert stored.release.cases.count == size[0]
        return cost


@contextmanager
def measured() -> Generator[Cost]:
    """What the block costs, known at its end."""
    cost, over = Cost(), threading.Event()

    def look() -> None:
        while not over.wait(_LOOK):
            cost.deno_peak = max(cost.deno_peak, usage().worker_peak)

    looking = threading.Thread(target=look)
    before, began = usage(), time.monotonic()
    looking.start()
    try:
        yield cost
    finally:
        cost.seconds = time.monotonic() - began
        over.set()
        looking.join()
    spent = usage().since(before)
    cost.cpu = spent.driver + spent.workers + spent.others
    cost.peak = spent.driver_peak


def bare(write: Callable[..., Path], *size: int) -> float:
    """Seconds to parse the same lines and write them again."""
    with tempfile.TemporaryDirectory() as temporary:
        path = write(Path(temporary), *size)
        began = time.monotonic()
        with path.open() as lines, (path.parent / "copy").open("w") as copy:
            for line in lines:
                copy.write(json.dumps(json.loads(line)) + "\n")
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=25_000)
    options = parser.parse_args()
    shown: list[list[object]] = []
    for title, write, *size in (
        ("one case", write_cases, 1),
        (f"{options.cases:,} cases in a file", write_cases, options.cases),
        *((f"transform {rows:,} rows of {mb} MB, twice", write_source, rows, mb) for rows, mb in SIZES),
    ):
        baseline = bare(write, *size)
        cost = apart(run, write, *size)
        shown.append([title, baseline, cost.seconds, cost.seconds / baseline, cost.cpu, cost.peak, cost.deno_peak])
    head = ["", "parse and write", "compile s", "ratio", "CPU s", "peak MB", "Deno's peak MB"]
    table("compile", head, shown)
    print()
    for row, most in ((shown[1], 5.0), (shown[2], 3.0)):
        seconds = float(str(row[2]))
        result(f"compile: {row[0]}", f"≤ {most:g} s", f"{seconds:.1f} s", met=seconds <= most)


if __name__ == "__main__":
    main()
