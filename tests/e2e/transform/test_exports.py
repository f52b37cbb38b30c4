"""`trunchray transform` and `trunchray transform-batch`: every byte they write, and when they write nothing."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from trunchray.cli.main import run_command

CASES = """[
  {
    prompt: "  CJK 日本語, emoji 😀\\u2028 \\uFEFF",
    id: "a.1",
    data: { b: 1, 10: 2, 2: 3, "-1": 4, a: [1e-7, -0, 1e21, 0.1, 5e-324] },
  },
  {
    id: "a.2",
    prompt: "\\u0000\\u001f\\u007f\\"\\\\/",
    data: { n: null, d: [null, [{ e: null }]], "": {}, ["__proto__"]: null },
  },
  ...sources.rows.content.split(/\\r?\\n/).filter(Boolean)
    .map((text, n) => ({ id: `r.${n}`, prompt: text, data: { text } })),
]"""
ODD_CASES = "JSON.parse(sources.rows.content).map((data, n) => ({ data, id: `c.${n}`, prompt: `\\u3000${n}\\ufeff` }))"
ROWS = "one\r\ntwo\u2028half\r\n\u0085three\ud7ff\uffff\n"
MODULE = f'export default {{ name: "T", transform: ({{ sources }}) => {CASES} }};'


@pytest.fixture
def here(tmp_path: Path, write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("transformers/t.mjs", MODULE)
    write("data/rows.txt", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*more: str, output: str = "out/cases.jsonl") -> int:
    given = ["--transformer", "transformers/t.mjs", "--source", "rows=data/rows.txt", "--output", output]
    return run_command(["transform", *given, *more])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


PLAIN = """import transformer from "./transformers/t.mjs";
const content = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Deno.readFileSync("data/rows.txt"));
const cases = transformer.transform({ sources: { rows: { content } } });
for (const one of cases) one.prompt = one.prompt.trim();
"""


def test_lines_are_what_javascript_writes(here: Path, plain_deno):
    """`JSON.stringify` of each case, keys in their order, prompts trimmed, and a final line feed."""
    assert run() == 0
    wanted = plain_deno(PLAIN + 'console.log(cases.map((one) => JSON.stringify(one)).join("\\n"));')
    assert (here / "out/cases.jsonl").read_bytes() == wanted
    assert b'"data":{"2":3,"10":2,"b":1,"-1":4,"a":[1e-7,0,1e+21,0.1,5e-324]}' in wanted


def odd_value(chance: random.Random, depth: int = 0) -> object:
    """A JSON value with every kind of trouble: odd names, odd numbers, odd characters."""
    texts = [
        "",
        "10",
        "2",
        "01",
        "-1",
        "4294967295",
        "__proto__",
        "toJSON",
        "\x00\x1f",
        '\\"/',
        "\u2028\x7f\x85",
        "日本 😀",
    ]
    numbers = [0, -0.0, 1e-7, 1e-6, 1e21, 1e20, 123456789012345680000, 5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    match chance.randrange(8 if depth < 4 else 4):
        case 0:
            return chance.choice(texts)
        case 1:
            return chance.choice(numbers) * chance.choice([1, -1])
        case 2:
            return chance.choice([None, True, False])
        case 3:
            return chance.random() * 10 ** chance.randrange(-9, 23)
        case 4 | 5:
            return [odd_value(chance, depth + 1) for _ in range(chance.randrange(5))]
        case _:
            return {chance.choice(texts): odd_value(chance, depth + 1) for _ in range(chance.randrange(6))}


def test_any_data_is_what_javascript_writes(here: Path, write, plain_deno):
    """Thousands of odd values come out as `JSON.stringify` has them, byte for byte."""
    chance = random.Random(7)
    write("data/rows.txt", json.dumps([odd_value(chance) for _ in range(3000)], ensure_ascii=False))
    write("transformers/t.mjs", MODULE.replace(CASES, ODD_CASES))
    assert run() == 0
    wanted = plain_deno(PLAIN + 'console.log(cases.map((one) => JSON.stringify(one)).join("\\n"));')
    assert (here / "out/cases.jsonl").read_bytes() == wanted
    assert len(wanted) > 100_000


def test_an_array_is_what_javascript_writes(here: Path, plain_deno):
    """`JSON.stringify(cases, null, 2)`, and a final line feed."""
    assert run("--format", "json", output="cases.json") == 0
    assert (here / "cases.json").read_bytes() == plain_deno(PLAIN + "console.log(JSON.stringify(cases, null, 2));")


def test_the_receipt_is_byte_exact(here: Path):
    """Keys in the documented order, sources by name, paths relative to the working directory."""
    assert run("--source", "extra=data/../data/rows.txt") == 0
    rows = here / "data/rows.txt"
    size = rows.stat().st_size
    source = f'{{\n      "path": "data/rows.txt",\n      "sha256": "{digest(rows)}",\n      "bytes": {size}\n    }}'
    assert (
        (here / "out/cases.jsonl.manifest.json").read_text()
        == f"""{{
  "protocolVersion": 1,
  "transformer": {{
    "name": "T",
    "path": "transformers/t.mjs",
    "sha256": "{digest(here / "transformers/t.mjs")}"
  }},
  "sources": {{
    "extra": {source},
    "rows": {source}
  }},
  "caseCount": 5,
  "output": {{
    "path": "out/cases.jsonl",
    "format": "jsonl",
    "sha256": "{digest(here / "out/cases.jsonl")}"
  }}
}}
"""
    )


def test_the_outcome_as_json(here: Path, capsys: pytest.CaptureFixture[str]):
    """One JSON value on stdout says what was written."""
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "id": "transform",
        "transformer": "T",
        "cases": 5,
        "output": "out/cases.jsonl",
        "sha256": digest(here / "out/cases.jsonl"),
        "receipt": "out/cases.jsonl.manifest.json",
    }


def test_paths_may_lead_anywhere_inside_the_repository(here: Path, write, monkeypatch: pytest.MonkeyPatch):
    """The working directory need not hold the transformer; the source's path is that from the repository root."""
    write("package.json", "{}")
    write("transformers/t.mjs", 'import { id } from "../lib/id.ts";\n' + MODULE.replace('"T"', "id"))
    write("lib/id.ts", 'export const id: string = "typed";')
    (here / "out").mkdir()
    monkeypatch.chdir(here / "out")
    given = ["--transformer", "../transformers/t.mjs", "--source", f"rows={here}/data/rows.txt", "--output", "o.jsonl"]
    assert run_command(["transform", *given]) == 0
    receipt = json.loads((here / "out/o.jsonl.manifest.json").read_text())
    assert (receipt["transformer"]["name"], receipt["transformer"]["path"]) == ("typed", "../transformers/t.mjs")
    assert receipt["sources"]["rows"]["path"] == "../data/rows.txt"


REFUSED = {
    "no such transformer": (["--transformer", "no.ts"], "transform: transformer: 'no.ts' does not exist"),
    "no such source": (["--source", "more=no.txt"], "transform: sources.more: 'no.txt' does not exist"),
    "bad name": (["--source", "More=data/rows.txt"], "transform: sources: 'More' is not a valid id"),
    "no name": (["--source", "data/rows.txt"], "--source 'data/rows.txt' must be NAME=PATH"),
    "the same name": (["--source", "rows=x"], "--source 'rows=x': there is another source 'rows'"),
    "outside": (["--source", "more=/etc/hostname"], "leads out of the repository"),
    "over its input": (["--output", "data/rows.txt"], "'data/rows.txt' would overwrite an input; choose another"),
    "over a folder": (["--output", "data"], "transform: output: 'data' is a folder; give a file"),
}


@pytest.mark.parametrize(("more", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_exported(here: Path, write, more, message, capsys: pytest.CaptureFixture[str]):
    """Exit code 2, one message, and nothing written."""
    write("package.json", "{}")
    before = sorted(here.rglob("*"))
    assert run(*more) == 2
    assert message in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before


def test_bad_cases_are_refused(here: Path, write, capsys: pytest.CaptureFixture[str]):
    """An export holds what an eval could hold: every case is checked as when it is compiled."""
    write(
        "transformers/t.mjs", 'export default { name: "T", transform: () => [{ id: "a" }, { id: "a", prompt: " " }] };'
    )
    assert run() == 2
    err = capsys.readouterr().err
    assert "transformers/t.mjs: case 1: prompt: is required" in err
    assert "transformers/t.mjs: case 2: prompt: must not be empty" in err
    assert not (here / "out").exists()


def job(name: str, **more) -> dict:
    common = {"transformer": "bench/t.mjs", "sources": {"rows": f"bench/{name}.txt"}}
    return {"id": name, **common, "output": f"exports/{name}.jsonl", **more}


@pytest.fixture
def batch(tmp_path: Path, write):
    """Two sources, one transformer, and a function that runs a manifest with jobs."""
    write("repo/package.json", "{}")
    write("repo/bench/t.mjs", MODULE)
    write("repo/bench/a.txt", "x")
    write("repo/bench/b.txt", "y\nz")

    def run_batch(*jobs: dict, **more) -> int:
        manifest = write("repo/batch.json", json.dumps({"protocolVersion": 1, "jobs": jobs} | more))
        return run_command(["transform-batch", "--manifest", str(manifest)])

    return run_batch


def test_a_batch_writes_everything_and_a_report(batch, tmp_path: Path):
    """Paths are relative to the manifest; the report lists the jobs in its order, without times."""
    expected = hashlib.sha256(b"x").hexdigest()
    jobs = [job("b", format="json"), job("a", expectedCaseCount=3, expectedSourceSha256={"rows": expected})]
    assert batch(*jobs) == 0
    assert (
        (tmp_path / "repo/batch.json.report.json").read_text()
        == """{
  "protocolVersion": 1,
  "manifest": "batch.json",
  "jobCount": 2,
  "caseCount": 7,
  "results": [
    {
      "id": "b",
      "transformerName": "T",
      "caseCount": 4,
      "output": "exports/b.jsonl",
      "receipt": "exports/b.jsonl.manifest.json"
    },
    {
      "id": "a",
      "transformerName": "T",
      "caseCount": 3,
      "output": "exports/a.jsonl",
      "receipt": "exports/a.jsonl.manifest.json"
    }
  ]
}
"""
    )
    assert len(json.loads((tmp_path / "repo/exports/b.jsonl").read_bytes())) == 4
    receipt = json.loads((tmp_path / "repo/exports/a.jsonl.manifest.json").read_text())
    assert receipt["output"]["path"] == "exports/a.jsonl"
    assert receipt["sources"]["rows"]["path"] == "bench/a.txt"
    before = {path: path.read_bytes() for path in (tmp_path / "repo").rglob("*") if path.is_file()}
    assert batch(*jobs) == 0
    assert {path: path.read_bytes() for path in (tmp_path / "repo").rglob("*") if path.is_file()} == before


BATCHES = {
    "another count": ([job("a", expectedCaseCount=2)], "jobs[0].expectedCaseCount: is 2, but the number of cases is 3"),
    "another source": ([job("a", expectedSourceSha256="0" * 64)], "jobs[0].expectedSourceSha256.rows: is 0000"),
    "no hash": ([job("a", expectedSourceSha256={"rows": 3})], "must be 64 lower-case hex digits, not 3"),
    "hash of nothing": ([job("a", expectedSourceSha256={"x": "0" * 64})], "is not the name of a source of this job"),
    "same ids": ([job("a"), job("a", output="b")], "jobs[1].id: 'a' is already the id of jobs[0]"),
    "same outputs": ([job("a"), job("b", output="exports/a.jsonl")], "would overwrite an output of 'a'"),
    "over the manifest": ([job("a", output="batch.json")], "'batch.json' would overwrite the manifest"),
    "over the report": ([job("a", output="batch.json.report.json")], "would overwrite the report"),
    "outside": ([job("a", output="../a.jsonl")], "jobs[0].output: '../a.jsonl' leads out of the repository"),
    "absolute": ([job("a", output="/tmp/a.jsonl")], "must be relative, not absolute"),
    "unknown field": ([job("a", expectedCount=3)], "jobs[0].expectedCount: is not a known field"),
    "format": ([job("a", format="csv")], "jobs[0].format: must be 'jsonl' or 'json', not 'csv'"),
    "no jobs": ([], "jobs: must have at least 1 entry"),
    "one of two": (
        [job("b"), job("a", expectedCaseCount=4)],
        "1 problem, nothing was written; more may show once it is mended",
    ),
}


@pytest.mark.parametrize(("jobs", "message"), BATCHES.values(), ids=BATCHES)
def test_a_batch_is_written_whole_or_not_at_all(batch, tmp_path, jobs, message, capsys: pytest.CaptureFixture[str]):
    """A job that is not as expected, or unsafe, ends the batch with exit code 2: no output, no receipt, no report."""
    assert batch(*jobs) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == ["batch.json", "bench", "package.json"]
