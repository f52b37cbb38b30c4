"""`trunchray check` and `trunchray try`, as an author uses them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from trunchray.cli.main import run_command
from trunchray.frontends.benchmark.compiler import compile_benchmark

EVAL = """
export default {
  id: "sum",
  tools: [],
  evaluate({ output, caseData, toolCalls }) {
    if (output === "crash") throw new Error("boom");
    if (toolCalls.length) return { passed: toolCalls[0].input.n === caseData.sum, details: toolCalls };
    return { passed: output === String(caseData.sum), score: output.includes("4") ? 0.5 : 0, message: "not the sum" };
  },
  cases: [
    { id: "sum.1", prompt: "1 + 3?", data: { sum: 4 } },
    { id: "sum.2", prompt: "2?", evaluate: { kind: "exact", expected: "2" } },
  ],
};
"""


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "sum.ts").write_text(EVAL)
    return tmp_path


def run(capsys, *argv: str) -> tuple[int, str, str]:
    code = run_command(argv)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_check_shows_what_would_be_frozen_and_writes_nothing(benchmark, capsys):
    """Evals, case counts, evaluators and the digest that `compile` will give; the folder stays as it was."""
    before = sorted(benchmark.rglob("*"))
    code, out, _ = run(capsys, "check", str(benchmark), "--json")
    shown = json.loads(out)
    release = compile_benchmark(benchmark).release
    assert code == 0
    assert shown["digest"] == release.digest
    assert shown["evals"] == [
        {"id": "sum", "title": "sum", "path": "evals/sum.ts", "cases": 2, "gradedBy": {"custom": 1, "exact": 1}}
    ]
    assert [each["key"] for each in shown["evaluators"]] == ["evals/sum.ts#default"]
    assert (shown["cases"], shown["tools"], shown["transformers"], shown["warnings"]) == (2, [], [], [])
    code, out, _ = run(capsys, "check", str(benchmark))
    assert code == 0
    assert f"digest   {release.digest}  (nothing was written)" in out
    assert "evaluator evals/sum.ts#default" in out
    assert sorted(benchmark.rglob("*")) == before


def test_check_says_everything_that_is_wrong(benchmark, capsys):
    """All problems at once, exit code 2."""
    (benchmark / "evals" / "bad.ts").write_text('export default { id: "Bad", prompt: " ", evaluate: { kind: "x" } };')
    code, out, err = run(capsys, "check", str(benchmark))
    assert (code, out) == (2, "")
    assert [line.split(": ")[1] for line in err.splitlines()[1:]] == ["id", "prompt"]


def test_a_commit_cannot_be_watched(capsys):
    """`--watch` of something that never changes is refused."""
    code, _, err = run(capsys, "check", f"git+https://example.org/x.git@{'0' * 40}", "--watch")
    assert code == 2
    assert "never changes" in err


def test_try_grades_an_answer(benchmark, capsys, monkeypatch):
    """0 passed and 1 failed, with the evaluator's score, message and details; `-` reads the answer from stdin."""
    code, out, _ = run(capsys, "try", str(benchmark), "--case", "sum.1", "--output", "4", "--json")
    assert (code, json.loads(out)["passed"]) == (0, True)
    code, out, _ = run(capsys, "try", str(benchmark), "--case", "sum.1", "--output", "14")
    assert (code, out) == (1, "failed  score 0.5\nnot the sum\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("2"))
    code, out, _ = run(capsys, "try", str(benchmark), "--case", "sum.2", "--output", "-")
    assert (code, out) == (0, "passed  score 1\n")


def test_try_takes_tool_calls(benchmark, capsys, tmp_path):
    """The evaluator sees the calls of the file."""
    file = tmp_path / "calls.json"
    file.write_text('[{"toolName": "add", "input": {"n": 4}, "output": 4}]')
    code, out, _ = run(
        capsys, "try", str(benchmark), "--case", "sum.1", "--output", "", "--tool-calls", str(file), "--json"
    )
    assert code == 0
    assert json.loads(out)["details"] == [{"toolCallId": "call-1", "toolName": "add", "input": {"n": 4}, "output": 4}]


def test_try_tells_a_broken_evaluator_from_bad_input(benchmark, capsys):
    """3 when the evaluator failed, 2 when there is no such case, file or benchmark."""
    code, out, err = run(capsys, "try", str(benchmark), "--case", "sum.1", "--output", "crash", "--json")
    assert code == 3
    assert "boom" in json.loads(out)["error"]["message"]
    code, _, err = run(capsys, "try", str(benchmark), "--case", "sum.3", "--output", "4")
    assert code == 2
    assert "the benchmark has no case 'sum.3' — did you mean" in err
    code, _, err = run(capsys, "try", str(benchmark), "--case", "sum.1", "--output", "4", "--tool-calls", "gone.json")
    assert code == 2
    assert "'gone.json': No such file" in err
