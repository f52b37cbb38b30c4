"""`trunchray eval run`: exit codes, and one JSON value on stdout whatever else is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from support.commands import CommandLine
from support.imported import forgotten

SPEC = """
    def task(value):
        return value.upper()

    evaluation = {
        "name": "shout",
        "task": task,
        "data": [
            {"name": "one", "input": "a", "expectedOutput": "A"},
            {"name": "two", "input": "b", "expectedOutput": "?"},
        ],
        "allow": {"matches": ALLOWED},
    }
"""
PASSES, FAILS = SPEC.replace("ALLOWED", "1"), SPEC.replace("ALLOWED", "0")


@pytest.fixture(autouse=True)
def as_before(here: Path) -> Iterator[None]:
    with forgotten(here):
        yield


def write(here: Path, text: str, name: str = "evals/shout.py") -> Path:
    path = here / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def test_exit_0_when_the_gate_is_passed(trunchray: CommandLine, here: Path):
    """The summary is what the evaluation itself prints."""
    write(here, PASSES)
    done = trunchray("eval", "run", "evals/shout.py")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("shout passed: every limit is kept\n")


def test_exit_1_when_the_gate_is_failed(trunchray: CommandLine, here: Path):
    """After the summary, on stderr, every broken limit with its cases."""
    write(here, FAILS)
    done = trunchray("eval", "run", "evals/shout.py")
    assert done.code == 1
    assert done.out.startswith("shout failed: 1 of 1 check broke a limit\n")
    said, broken, why = done.err.splitlines()
    assert (said, broken) == ("error: shout does not pass", "  matches: 1 miss, 0 allowed: 'two'")
    assert why.startswith("  matches — two: output")


@pytest.mark.parametrize("flags", [["--json"], ["--format", "json"], ["--format", "json", "--json"]])
def test_json_of_what_passes_is_the_report(trunchray: CommandLine, here: Path, flags: list[str]):
    """No human summary, and nothing else on either stream."""
    write(here, PASSES)
    done = trunchray("eval", "run", "evals/shout.py", *flags)
    assert (done.code, done.err) == (0, "")
    assert list(done.json) == ["name", "about", "passed", "scorers", "cases", "flips", "experiment", "run"]
    assert done.out == json.dumps(done.json, indent=2, ensure_ascii=False) + "\n"
    assert done.json["passed"] is True
    assert [case["output"] for case in done.json["cases"]] == ["A", "B"]


def test_json_of_what_fails_is_the_report_with_a_code(trunchray: CommandLine, here: Path):
    """EVAL_FAILED and the message, then all that a report has."""
    write(here, FAILS)
    done = trunchray("eval", "run", "evals/shout.py", "--json")
    assert done.code == 1
    assert list(done.json)[:4] == ["code", "message", "name", "about"]
    assert done.json["code"] == "EVAL_FAILED"
    assert done.json["message"] in done.err
    assert done.json["scorers"]["matches"]["failed"] == ["two"]


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        (None, "EVAL_NOT_FOUND", "there is no such file"),
        ("import no_such_module_x", "EVAL_IMPORT", "No module named 'no_such_module_x'"),
        ("raise SystemExit(0)", "EVAL_IMPORT", "ends the process while it is imported"),
        ("def evaluation(): raise SystemExit(0)", "EVAL_IMPORT", "evaluation() raised SystemExit: 0"),
        ("def f(:", "EVAL_IMPORT", "SyntaxError"),
        ("spec = 1", "EVAL_NO_SPEC", "exports no spec"),
        ("def evaluation(model): ...", "EVAL_NO_SPEC", "needs arguments"),
        ("def evaluation(): ...", "EVAL_NO_SPEC", "returned None"),
        ("evaluation = {'name': 'e', 'task': str, 'data': []}", "EVAL_CONFIG", "there is no case"),
        ("evaluation = {'name': 'e', 'task': 3, 'data': [{'input': 1}]}", "EVAL_CONFIG", "task"),
        ("evaluation = {'name': 'e', 'task': str, 'data': 'gone.jsonl'}", "EVAL_CONFIG", "gone.jsonl"),
        ("evaluation = {'name': 'e', 'task': str, 'data': [{'input': 1, 'expect': 2}]}", "EVAL_CONFIG", "'expect'"),
        ("evaluation = {'name': 'e', 'task': str, 'data': [{'input': 1}], 'scorer': {}}", "EVAL_CONFIG", "'scorers'"),
        (
            "evaluation = {'name': 'e', 'task': str, 'data': [{'input': 1}], 'scorers': {'good': 'Is it good?'}}",
            "EVAL_CONFIG",
            "judge",
        ),
        (
            (
                "import trunchray\nevaluation = {'name': 'e', 'task': str, 'data': [{'input': 1, 'skip': ['good']}], "
                "'judge': trunchray.system_one(), 'scorers': {'good': 'Is it good?'}}"
            ),
            "EVAL_CONFIG",
            "has no invoke",
        ),
        (
            (
                "import trunchray\nevaluation = {'name': 'e', 'task': str, 'data': [{'input': 1}], "
                "'scorers': {'good': trunchray.ask('Which?', options=['a'], pass_='a')}}"
            ),
            "EVAL_CONFIG",
            "judge",
        ),
        ("evaluation = {'name': 'e', 'task': str, 'data': (1 / n for n in [0])}", "EVAL_CONFIG", "ZeroDivisionError"),
        ("evaluation = {'name': 'e', 'task': str, 'data': [{'input': 1}], 'allow': {'x': 1}}", "EVAL_CONFIG", "'x'"),
        (
            "evaluation = {'name': 'e', 'task': str, 'data': [{'input': 1}], 'compare': {'format': 1}}",
            "EVAL_CONFIG",
            "it has format 1",
        ),
    ],
)
def test_exit_2_when_nothing_ran(trunchray: CommandLine, here: Path, text: str | None, code: str, why: str):
    """One stable word for each reason; without --json the same message, and nothing on stdout."""
    if text is not None:
        write(here, text)
    described, plain = (trunchray("eval", "run", "evals/shout.py", *flags) for flags in (["--json"], []))
    assert (described.code, plain.code) == (2, 2)
    assert set(described.json) == {"code", "message"}
    assert described.json["code"] == code
    assert why in described.json["message"]
    assert described.json["message"] in described.err
    assert (plain.out, plain.err) == ("", described.err)
    assert not (here / "runs").exists()


@pytest.mark.parametrize("words", [[], ["a.py", "b.py"], ["a.py", "--format", "toon"], ["a.py", "--bogus"]])
def test_exit_2_when_the_command_is_wrong(trunchray: CommandLine, words: list[str]):
    """1 is only for a failed gate."""
    assert "(see `trunchray eval run --help`)" in trunchray.refused("eval", "run", *words)


@pytest.mark.parametrize("words", [["--format", "json"], ["--format=json"]])
def test_a_wrong_command_is_told_as_json_in_either_way_of_asking(trunchray: CommandLine, words: list[str]):
    """`--format json` is `--json`."""
    assert trunchray("eval", "run", *words).json == trunchray("eval", "run", "--json").json


def test_what_is_printed_goes_to_stderr_under_json(trunchray: CommandLine, here: Path):
    """By the file as it is imported, by its function, its task and its checks."""
    text = """
        print("from the file")

        def task(value):
            print("from the task")
            return value

        def check(run):
            print("from the check")
            return True

        def evaluation():
            print("from the function")
            return {"name": "e", "task": task, "data": [{"input": "a"}], "scorers": {"ok": check}}
    """
    write(here, text)
    done = trunchray("eval", "run", "evals/shout.py", "--json")
    assert (done.code, done.json["passed"]) == (0, True)
    assert done.err.splitlines() == ["from the file", "from the function", "from the task", "from the check"]


def test_stdout_is_one_json_value_whoever_writes(here: Path):
    """Processes that a task starts, writes past Python's `sys.stdout`, and what is printed as the process ends."""
    text = """
        import atexit, os, subprocess, sys

        atexit.register(print, "at the end")

        def task(value):
            subprocess.run(["echo", "from a process"])
            os.write(1, b"to the descriptor\\n")
            print("to the first stdout", file=sys.__stdout__)
            return value

        evaluation = {"name": "e", "task": task, "data": [{"input": "a", "expectedOutput": "a"}]}
    """
    done = process(here, write(here, text), "--json")
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (0, True)
    said = set(done.stderr.splitlines())
    assert {"from a process", "to the descriptor", "to the first stdout", "at the end"} <= said


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("raise SystemExit(0)", "SystemExit: 0 (evals/shout.py:3)"),
        ("raise ValueError('no such customer')", "ValueError: no such customer (evals/shout.py:3)"),
        ("return (part for part in value)", "returned a generator: a task returns one output, not a stream of parts"),
    ],
)
def test_exit_1_when_runs_fail(trunchray: CommandLine, here: Path, statement: str, why: str):
    """The evaluation goes on and is judged as any other: `sys.exit(0)` in a task is a failed run of it."""
    write(here, PASSES.replace("return value.upper()", statement))
    done = trunchray("eval", "run", "evals/shout.py", "--json")
    assert (done.code, done.json["code"]) == (1, "EVAL_FAILED")
    failed = {"pass": False, "value": 0.0, "explanation": f"run failed: {why}"}
    assert [(case["error"], case["checks"]) for case in done.json["cases"]] == [(why, {"matches": failed})] * 2


def test_data_beside_the_file(trunchray: CommandLine, here: Path):
    """A relative path leads to the file's folder first, then to the current directory."""
    text = 'evaluation = {"name": "e", "task": str.upper, "data": "cases.jsonl"}'
    write(here, text)
    write(here, '{"input": "a", "expectedOutput": "?"}\n', "cases.jsonl")
    assert trunchray("eval", "run", "evals/shout.py").code == 1
    write(here, '{"input": "a", "expectedOutput": "A"}\n', "evals/cases.jsonl")
    assert trunchray("eval", "run", "evals/shout.py").code == 0


def test_an_async_function_and_the_run_share_an_event_loop(trunchray: CommandLine, here: Path):
    """A client that the function opens can be used by the task."""
    text = """
        import asyncio

        async def evaluation():
            here = asyncio.get_running_loop()

            async def task(value):
                return asyncio.get_running_loop() is here

            return {"name": "e", "task": task, "data": [{"input": "a", "expectedOutput": True}], "pool": "local"}
    """
    write(here, text)
    assert trunchray("eval", "run", "evals/shout.py").code == 0


def test_compare_and_save_under_one_path(trunchray: CommandLine, here: Path):
    """The first run has nothing to compare with, the second drops, the third compares with that: pass or fail."""
    keys = '"compare": "last.json", "save": "last.json", "allow": {"matches": 2}'
    path = write(here, PASSES.replace('"allow": {"matches": 1}', keys))
    first = trunchray("eval", "run", path)
    assert (first.code, first.out.splitlines()[-2]) == (0, "no drops were counted: there is no file 'last.json' yet")
    write(here, path.read_text().replace("value.upper()", "value"))
    broke = trunchray("eval", "run", path, "--json")
    assert (broke.code, broke.json["flips"]["broke"]) == (1, [{"case": "one", "check": "matches"}])
    assert trunchray("eval", "run", path).code == 0


def test_a_gate_that_is_failed_saves_too(trunchray: CommandLine, here: Path):
    """And a run that is refused does not."""
    write(here, FAILS.replace('"name"', '"save": "kept/last.json", "name"', 1))
    assert trunchray("eval", "run", "evals/shout.py").code == 1
    saved: Any = json.loads((here / "kept" / "last.json").read_text())
    assert {name: case["matches"]["pass"] for name, case in saved["cases"].items()} == {"one": True, "two": False}
    (here / "kept" / "last.json").unlink()
    write(here, FAILS.replace('"name"', '"save": "kept/last.json", "timeout": "soon", "name"', 1))
    assert trunchray("eval", "run", "evals/shout.py").code == 2
    assert not (here / "kept" / "last.json").exists()


def test_quiet_hides_the_summary_only(trunchray: CommandLine, here: Path):
    """A failed gate is still told."""
    write(here, FAILS.replace('"name"', '"quiet": True, "name"', 1))
    done = trunchray("eval", "run", "evals/shout.py")
    assert (done.code, done.out) == (1, "")
    assert "matches: 1 miss, 0 allowed: 'two'" in done.err


def test_workers_of_ray_find_what_is_beside_the_file(here: Path):
    """And what is in the current directory, though neither is installed; stdout is one JSON value then, too."""
    write(here, "def loud(value):\n    return value.upper()", "project_voice.py")
    write(here, "import project_voice\n\ndef shout(value):\n    return project_voice.loud(value)", "evals/beside_it.py")
    text = PASSES.replace("return value.upper()", "print('working'); return shout(value)")
    file = write(here, "    from beside_it import shout\n" + text.replace('"name"', '"pool": "ray", "name"', 1))
    done = process(here, file, "--json")
    assert (done.returncode, [case["output"] for case in json.loads(done.stdout)["cases"]]) == (0, ["A", "B"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_exit_3_when_it_is_interrupted(here: Path, number: signal.Signals):
    """What is running is ended, nothing is saved; that is no failed gate."""
    text = """
        import asyncio, sys

        async def task(value):
            print("started", file=sys.stderr, flush=True)
            await asyncio.sleep(600)

        evaluation = {"name": "e", "task": task, "data": [{"input": "a"}], "timeout": "10m", "save": "last.json"}
    """
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = command(write(here, text), "--json")
    with subprocess.Popen(words, cwd=here, env=environment(), text=True, **streams) as running:
        assert running.stderr
        assert running.stderr.readline() == "started\n"
        running.send_signal(number)
        out, err = running.communicate()
    assert (running.returncode, json.loads(out)["code"]) == (3, "EVAL_INCOMPLETE")
    assert err == "error: stopped: 0 of 1 runs of 'e' are stored; the same call continues\n"
    assert not (here / "last.json").exists()


def test_it_is_the_same_evaluation_as_the_program_itself(trunchray: CommandLine, here: Path):
    """What `python FILE` has left undone `eval run FILE` goes on with, and the other way round."""
    text = """
        from dataclasses import dataclass
        from pydantic import RootModel
        from trunchray import evaluate, fits_schema, matches

        class Word(RootModel[str]):
            pass

        @dataclass(frozen=True)
        class Loud:
            by: int = 1

            def __call__(self, run):
                return run.output.isupper()

        def task(value):
            return value.upper()

        def field(value):
            return value

        evaluation = {
            "name": "e", "task": task, "data": "cases.jsonl", "scorers": {
                "loud": Loud(), "same": matches(field),
                "word": fits_schema(Word), "either": fits_schema(Word | list[Word]),
            },
        }

        if __name__ == "__main__":
            evaluate(**evaluation)
    """
    write(here, '{"input": "a", "expectedOutput": "A"}', "evals/cases.jsonl")
    file = write(here, text)
    assert trunchray("eval", "run", str(file)).code == 0
    run = [sys.executable, file.name]
    done = subprocess.run(run, cwd=file.parent, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    agents = [json.loads(found.read_text())["agents"] for found in here.rglob("run.json")]
    names = [found.parent.name for found in here.rglob("run.json")]
    assert agents[0] == agents[1]
    assert agents[0][0]["task"] == "shout:task"
    assert names[0] == names[1]


def test_a_reader_that_goes_away_changes_no_verdict(here: Path):
    """A failed gate fails behind `| head`, too."""
    file = write(here, FAILS)
    many = ", ".join(f'{{"name": "{number:079}", "input": "b", "expectedOutput": "?"}}' for number in range(120))
    file.write_text(file.read_text().replace('{"name": "one"', many + ', {"name": "one"'))
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(file), cwd=here, env=environment(), **streams) as done:
        assert done.stdout
        done.stdout.close()
        assert done.stderr
        said = done.stderr.read().decode()
    assert (done.returncode, "Traceback" in said) == (1, False)


def command(file: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "trunchray.cli.main", "eval", "run", str(file), *flags]


def process(here: Path, file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        command(file, *flags), cwd=here, env=environment(), capture_output=True, text=True, check=False
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
