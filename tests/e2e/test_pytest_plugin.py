"""`pytest --trunchray-evals`: evaluations as tests, in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trunchray.frontends.evaluation.pytest_files  # noqa: F401 - once, not for each pytest in this process
from support.imported import forgotten

pytest_plugins = ["pytester"]

PLUGIN = "trunchray.frontends.evaluation.pytest_plugin"

REFUND = """
from pathlib import Path

def task(value):
    with Path("calls.txt").open("a") as file:
        file.write(value + "\\n")
    return value.upper()

evaluation = {
    "name": "refund",
    "task": task,
    "data": [
        {"name": "one", "input": "a", "expectedOutput": "A"},
        {"name": "two", "input": "b", "expectedOutput": "?"},
        {"name": "three", "input": "c", "expectedOutput": "?", "must": ["short"]},
    ],
    "scorers": {
        "equal": lambda run: {"pass": run.output == run.expected_output, "explanation": "it is " + run.output},
        "short": lambda run: len(run.output) < 2,
        "lenient": lambda run: run.output == run.expected_output,
    },
    "allow": {"equal": 1, "lenient": 2},
    "concurrency": 1,
}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with an ordinary test and an evaluation."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(**{"tests/test_ordinary": "def test_ordinary(): pass", "evals/refund": REFUND})
    return pytester


FLAGS = ("-p", PLUGIN, "-p", "no:cacheprovider")


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """A pytest in a process of its own, for what runs evaluations."""
    return project.runpytest_subprocess(*FLAGS, *words)


def run_here(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """A pytest in this process, which starts at once."""
    with forgotten(project.path):
        return project.runpytest_inprocess(*FLAGS, *words)


def collected(project: pytest.Pytester, *words: str) -> list[str]:
    """The tests that would be run, in order."""
    return [line for line in run_here(project, "--collect-only", "-q", *words).outlines if "::" in line]


def calls(project: pytest.Pytester) -> list[str]:
    """What the task was called with, sorted: cases run in any order."""
    path = project.path / "calls.txt"
    return sorted(path.read_text().split()) if path.exists() else []


def test_one_test_for_each_check_and_one_run_for_all(project: pytest.Pytester):
    """A check whose limits are kept passes, though cases fail it; a broken one tells its cases and why."""
    result = run(project, "--trunchray-evals", "-v")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "evals/refund.py::equal FAILED*",
            "evals/refund.py::short PASSED*",
            "evals/refund.py::lenient PASSED*",
            "tests/test_ordinary.py::test_ordinary PASSED*",
            "2 misses, 1 allowed: 'two', 'three'",
            "  two: it is B",
            "  three: it is C",
            "FAILED evals/refund.py::equal - 2 misses, 1 allowed: 'two', 'three'",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert calls(project) == ["a", "b", "c"]


def test_off_unless_asked_for(project: pytest.Pytester):
    """Without the option, evaluations are neither collected nor imported."""
    run_here(project).assert_outcomes(passed=1)
    (project.path / "evals" / "refund.py").write_text("raise ValueError")
    run_here(project, "tests").assert_outcomes(passed=1)
    assert calls(project) == []


def test_what_is_chosen_is_run(project: pytest.Pytester):
    """By file, by check, by keyword; a folder without evaluations chooses none of them, so all are run."""
    project.makepyfile(**{"evals/other": REFUND.replace('"refund"', '"other"')})
    for words, names in (
        (["evals/refund.py"], ["evals/refund.py::equal", "evals/refund.py::short", "evals/refund.py::lenient"]),
        (["evals/refund.py::short"], ["evals/refund.py::short"]),
        (["-k", "short"], ["evals/other.py::short", "evals/refund.py::short"]),
        (["tests", "-k", "short"], ["evals/other.py::short", "evals/refund.py::short"]),
    ):
        assert collected(project, *words, "--trunchray-evals") == names, words
    assert calls(project) == []


def test_files_are_found_wherever_tests_are(project: pytest.Pytester):
    """`testpaths` says where ordinary tests are; the pattern says where evaluations are, from the root directory."""
    project.makeini("[pytest]\ntestpaths = tests")
    files = [line.partition("::")[0] for line in collected(project, "--trunchray-evals")]
    assert files == ["tests/test_ordinary.py", *["evals/refund.py"] * 3]


def test_files_can_be_named(project: pytest.Pytester):
    """By folder, by pattern, by name; names that begin with _ are what evaluations share."""
    evals = project.path / "evals"
    (evals / "refund.py").rename(project.path / "refund_eval.py")
    (evals / "_shared.py").write_text("raise ValueError")
    (evals / "conftest.py").write_text("")
    (evals / "tiny.py").write_text("evaluation = {'name': 't', 'task': str, 'data': [{'input': 'a'}]}")
    tiny = ["evals/tiny.py::matches"]
    refund = ["refund_eval.py::equal", "refund_eval.py::short", "refund_eval.py::lenient"]
    for words, names in (
        (["--trunchray-evals", "--trunchray-evals=*_eval.py"], [*tiny, *refund]),
        (["--trunchray-evals", "evals"], tiny),
        (["--trunchray-evals", "refund_eval.py"], refund),
        (["--trunchray-evals", str(evals)], tiny),
        (["--trunchray-evals", str(project.path / "*_eval.py")], refund),
        (["--trunchray-evals", f"../{project.path.name}/evals"], tiny),
        (["--trunchray-evals", "**/tiny.py"], tiny),
    ):
        assert [line for line in collected(project, *words) if "test" not in line] == names


def test_a_pattern_without_files_is_refused(project: pytest.Pytester):
    """Tests that do not run must not look as if they passed."""
    for pattern in ("nowhere/*.py", "/nowhere/*.py", "*/", ""):
        result = run_here(project, f"--trunchray-evals={pattern}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: --trunchray-evals: no file matches '{pattern}' in *"])


def test_a_file_without_an_evaluation_is_an_error(project: pytest.Pytester):
    """As it is collected, with what the command line would say."""
    files = {
        "import no_such_module_x": "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_x'",
        "evaluation = {}": "exports no spec: `evaluation` is a mapping without",
        "evaluation = {'name': 'e', 'task': str, 'data': [], 'scorers': {}}": "scorers",
        "evaluation = {'name': 'e', 'task': str, 'data': [], 'alow': {}}": "unknown key 'alow'",
    }
    for number, text in enumerate(files):
        (project.path / "evals" / f"wrong_{number}.py").write_text(text)
    result = run_here(project, "evals", "--trunchray-evals=evals/wrong*")
    result.assert_outcomes(errors=len(files))
    for why in files.values():
        assert why in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_a_file_without_a_spec_is_passed_over(project: pytest.Pytester):
    """Where it is in the folder of evaluations, with a warning: they may share it. One that is named needs one."""
    (project.path / "evals" / "helpers.py").write_text("x = 1")
    result = run(project, "evals", "--trunchray-evals", "-k", "lenient")
    result.assert_outcomes(passed=1, deselected=2, warnings=1)
    result.stdout.fnmatch_lines(["*passed over: '*helpers.py' exports no spec; assign a mapping*"])
    run_here(project, "--trunchray-evals=evals/helpers.py").assert_outcomes(errors=1)


def test_an_evaluation_that_cannot_be_run_fails_every_check(project: pytest.Pytester):
    """With the same words for each, and no traceback."""
    path = project.path / "evals" / "refund.py"
    path.write_text(path.read_text().replace('"concurrency": 1', '"concurrency": 0'))
    result = run_here(project, "evals", "--trunchray-evals")
    result.assert_outcomes(failed=3)
    assert result.stdout.str().count("\nconcurrency: ") == 3
    assert calls(project) == []


def test_an_async_function_makes_the_evaluation(project: pytest.Pytester):
    """On the event loop that it runs on."""
    (project.path / "evals" / "refund.py").write_text(
        """
import asyncio

async def evaluation():
    here = asyncio.get_running_loop()

    async def task(value):
        return asyncio.get_running_loop() is here

    return {"name": "e", "task": task, "data": [{"input": "a", "expectedOutput": True}], "pool": "local"}
"""
    )
    run(project, "evals", "--trunchray-evals").assert_outcomes(passed=1)


def test_processes_of_one_test_run_share_the_evaluation(project: pytest.Pytester):
    """pytest-xdist spreads the checks; what they cost is paid once."""
    result = run(project, "-p", "xdist", "-n", "2", "--dist", "load", "evals", "--trunchray-evals")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["2 misses, 1 allowed: 'two', 'three'"])
    assert calls(project) == ["a", "b", "c"]


def test_without_the_option_it_costs_nothing():
    """pytest imports the plugin in every project, so the plugin imports next to nothing."""
    code = f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("trunchray")}
    assert ours == {
        "trunchray",
        "trunchray.errors",
        "trunchray.frontends",
        "trunchray.frontends.evaluation",
        PLUGIN,
    }
    assert set(done.stdout.split()) - ours <= sys.stdlib_module_names


def test_it_is_registered_with_pytest():
    """Installed projects need no `-p`."""
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'[project.entry-points.pytest11]\ntrunchray = "{PLUGIN}"\n' in declared
