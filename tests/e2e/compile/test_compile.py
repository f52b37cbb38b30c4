"""From an authoring repository to a stored release, with the real bundler and sandbox."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from trunchray.adapters.releases import open_release, verify_release
from trunchray.core.checks import Contains, Custom, Exact
from trunchray.frontends.benchmark.compiler import Compiled, compile_benchmark, compile_to
from trunchray.frontends.benchmark.scaffold import scaffold

GOOD = Path(__file__).parents[2] / "repos" / "good"


def copied(name: str, target: Path) -> Path:
    shutil.copytree(GOOD / name, target)
    return target


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Compiled:
    return compile_benchmark(copied("everything", tmp_path_factory.mktemp("everything") / "b"))


@pytest.fixture(scope="module")
def cases(everything) -> list[dict]:
    return [json.loads(line) for line in everything.cases.split(b"\n")[:-1]]


def test_the_smallest_benchmark(tmp_path):
    """One eval module is a benchmark: named after its folder, version 0.0.0, default limits."""
    compiled = compile_benchmark(copied("minimal", tmp_path / "My bench"))
    release = compiled.release
    assert (release.title, release.version, release.cases.count) == ("My bench", "0.0.0", 1)
    assert (release.limits.max_steps, release.limits.max_tool_calls, release.limits.max_output_tokens) == (10, 20, 4096)
    assert compiled.modules == {}
    assert json.loads(compiled.cases) == {
        "id": "ok",
        "evalId": "ok",
        "title": "ok",
        "description": "",
        "input": {"prompt": "Say yes.", "systemPrompt": None, "tools": []},
        "data": None,
        "checks": {"evaluate": {"kind": "exact", "expected": "yes"}},
        "source": {"path": "evals/answer.ts", "row": None},
    }


def test_the_manifest_says_what_the_config_says(everything):
    """A typed config with numeric separators is evaluated, and its values are in the manifest."""
    release = everything.release
    assert (
        release.manifest()
        | {
            "title": "Everything, in one place",
            "version": "2.0.0-rc.1",
            "description": "All forms of cases and evaluators.",
            "license": "Apache-2.0",
            "homepage": "https://example.org/everything",
            "tags": ["all", "forms"],
            "limits": {"maxSteps": 3, "maxToolCalls": 20, "maxOutputTokens": 1000},
        }
        == release.manifest()
    )
    assert [(entry.id, entry.title, entry.cases, entry.path) for entry in release.evals] == [
        ("one-prompt", "one-prompt", 1, "evals/one-prompt.ts"),
        ("inline", "Inline", 3, "evals/inline.mts"),
        ("first", "First", 2, "evals/first.ts"),
        ("second", "second", 2, "evals/second.ts"),
        ("function", "function", 1, "evals/function.js"),
        ("reference", "reference", 1, "evals/reference.mjs"),
    ]
    assert release.source.config == "benchmark.config.ts"


def test_cases_keep_their_order_and_origin(cases):
    """Eval order, then case order; each case points to its file and line."""
    assert [(case["id"], case["source"]["path"], case["source"]["row"]) for case in cases] == [
        ("one-prompt", "evals/one-prompt.ts", None),
        ("inherits", "evals/inline.mts", 1),
        ("overrides", "evals/inline.mts", 2),
        ("no-calls", "evals/inline.mts", 3),
        ("first.1", "evals/first.jsonl", 1),
        ("first.2", "evals/first.jsonl", 3),
        ("second.1", "data/second.jsonl", 1),
        ("second.2", "data/second.jsonl", 2),
        ("function.1", "evals/function.js", 1),
        ("reference.1", "evals/reference.mjs", 1),
    ]


def test_inheritance(cases):
    """What a case does not say, its eval says; data is the case's alone."""
    by_id = {case["id"]: case for case in cases}
    inherits, overrides = by_id["inherits"], by_id["overrides"]
    assert inherits["title"] == "Inline — inherits"
    assert (inherits["description"], inherits["input"]["systemPrompt"]) == ("From the eval.", "From the eval.")
    assert inherits["checks"] == {"evaluate": {"kind": "exact", "expected": "yes"}}
    assert (overrides["description"], overrides["input"]["systemPrompt"]) == ("From the case.", "From the case.")
    assert overrides["data"] == {"nested": [1, 2.5, None, "x"]}
    assert overrides["checks"] == {"evaluate": {"kind": "gsm8k", "expected": "41"}}
    assert by_id["one-prompt"]["input"]["prompt"] == "Name the capital of France."


def test_lines_end_at_line_feeds_only(cases):
    """U+2028 stays inside its row; CRLF ends, a byte order mark and blank lines are not part of any."""
    by_id = {case["id"]: case for case in cases}
    assert by_id["first.1"]["input"]["prompt"] == "line\u2028separator"
    assert by_id["first.2"]["input"]["prompt"] == "crlf"


def test_functions_become_modules(everything, tmp_path):
    """A function on an eval and one in a module of its own are both stored under their key, one bundle each."""
    release = everything.release
    keys = ["evals/function.js#default", "evaluators/words.ts#exactly"]
    assert [(entry.key, entry.export) for entry in release.evaluators] == [(keys[0], "default"), (keys[1], "exactly")]
    assert set(everything.modules) == release.modules
    stored = compile_to(copied("everything", tmp_path / "b"), str(tmp_path / "out"))
    table = stored.cases()
    assert table["function.1"].checks == {"evaluate": Custom(evaluator_key=keys[0])}
    assert table["reference.1"].checks == {"evaluate": Custom(evaluator_key=keys[1])}
    assert b"caseData.word" in stored.module(release.evaluators[1].module)
    assert isinstance(table["second.1"].checks["evaluate"], Contains)
    assert isinstance(table["inherits"].checks["evaluate"], Exact)


def test_the_same_sources_give_the_same_release_anywhere(everything, tmp_path):
    """Folder, checkout and commit do not matter: the digest and every byte of cases and modules are the same."""
    repository = tmp_path / "some" / "deep repository"
    elsewhere = copied("everything", repository / "packages" / "b")
    (repository / "package.json").write_text("{}")
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "All"]
    for command in (["git", "init", "-q"], ["git", "remote", "add", "origin", "https://u:p@example.org/x.git"]):
        subprocess.run(command, cwd=repository, check=True)
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    subprocess.run(commit, cwd=repository, check=True)
    again = compile_benchmark(elsewhere / "benchmark.config.ts")
    assert again.release.digest == everything.release.digest
    assert (again.cases, again.modules) == (everything.cases, everything.modules)
    source = again.release.source
    assert (source.remote, source.dirty, len(source.commit or "")) == ("https://example.org/x.git", False, 40)
    (elsewhere / "notes.md").touch()
    assert compile_benchmark(repository, config="packages/b/benchmark.config.ts").release.source.dirty is True


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("evals/first.jsonl", "line", "Line"),
        ("evals/words.json", "Forty-one", "Forty-two"),
        ("evaluators/words.ts", "===", "!=="),
        ("benchmark.config.ts", "maxSteps: 3", "maxSteps: 4"),
    ],
)
def test_another_prompt_grader_or_limit_is_another_release(everything, tmp_path, file, old, new):
    """Whatever changes what is asked or how it is graded changes the digest."""
    changed = copied("everything", tmp_path / "b")
    content = (changed / file).read_bytes()
    assert old.encode() in content
    (changed / file).write_bytes(content.replace(old.encode(), new.encode()))
    assert compile_benchmark(changed).release.digest != everything.release.digest


def test_compiling_again_is_a_no_op(tmp_path):
    """The same benchmark compiled to the same place leaves every file as it is."""
    benchmark = copied("minimal", tmp_path / "b")
    stored = compile_to(benchmark, str(tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert compile_to(benchmark, str(tmp_path / "out")).uri == stored.uri
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    assert open_release(stored.uri).release == stored.release


def test_doubts_are_recorded(tmp_path):
    """Warnings are in the release, and change nothing about its identity."""
    assert compile_benchmark(copied("doubtful", tmp_path / "b")).warnings == (
        "evals/a.ts: evaluate: 'contains' 'B' is so short that almost any answer passes; use 'exact'",
        "evals/a.ts: case 3: evaluate: 'exact' ' yes' has outer blanks, which are trimmed before comparing",
        "evals/b.ts: evaluate: is a function, but no case has `data`, so it grades all cases alike",
    )


def test_the_scaffold_compiles_as_it_stands(tmp_path):
    """`init` and then `compile` work without a change, and without a doubt."""
    scaffold(tmp_path / "b")
    stored = compile_to(tmp_path / "b", str(tmp_path / "out"))
    assert stored.release.cases.count == 9
    assert stored.release.warnings == ()
    assert verify_release(stored.uri) == []


def test_a_release_of_25_000_cases(tmp_path):
    """The largest release compiles, and its cases are found by id."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "a.ts").write_text(
        'export default { id: "a", cases: "./a.jsonl", evaluate: { kind: "non_empty" } };'
    )
    with (tmp_path / "evals" / "a.jsonl").open("w") as file:
        for number in range(25_000):
            row = {"id": f"a.{number}", "prompt": f"Question {number}: " + "words " * 40, "data": {"answer": number}}
            file.write(json.dumps(row) + "\n")
    stored = compile_to(tmp_path, str(tmp_path / "out"))
    table = stored.cases()
    assert len(table) == stored.release.cases.count == 25_000
    assert table["a.24999"].data == {"answer": 24_999}


def test_data_files_of_any_size(tmp_path):
    """The limit for sources of transformers is none for data files: 55 MB of cases compile, from a link as well."""
    evals = tmp_path / "evals"
    evals.mkdir()
    (evals / "a.ts").write_text('export default { id: "a", cases: "./a.jsonl", evaluate: { kind: "non_empty" } };')
    with (evals / "large.jsonl").open("w") as file:
        for number in range(55):
            file.write(json.dumps({"id": f"a.{number}", "prompt": "p", "data": "x" * 1_000_000}) + "\n")
    (evals / "a.jsonl").symlink_to("large.jsonl")
    assert compile_benchmark(tmp_path).release.cases.count == 55
