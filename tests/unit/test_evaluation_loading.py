"""Python files as specs: which export counts, what is refused, and what the words for it are."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from support.imported import forgotten
from trunchray.errors import SpecError, UsageError
from trunchray.frontends.evaluation.loading import load

SPEC = "{'name': 'e', 'task': str, 'data': [{'input': 'a'}]}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory."""
    monkeypatch.chdir(tmp_path)
    with forgotten(tmp_path):
        yield tmp_path


def written(folder: Path, text: str, name: str = "spec_file.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).replace("SPEC", SPEC))
    return path


def loaded(folder: Path, text: str, name: str = "spec_file.py") -> dict[str, Any]:
    return asyncio.run(load(written(folder, text, name)).spec())


def refusal(folder: Path, text: str, code: str, name: str = "spec_file.py") -> str:
    """What is said of a file that is refused with that code."""
    with pytest.raises(SpecError) as refused:
        loaded(folder, text, name)
    assert (refused.value.code, refused.value.exit_code) == (code, 2)
    assert str(refused.value).startswith(repr(str(folder / name)))
    return str(refused.value)


def named(name: str) -> str:
    return f"{{'name': '{name}', 'task': str, 'data': [{{'input': 'a'}}]}}"


@pytest.mark.parametrize(
    ("exports", "chosen"),
    [
        ("evaluation = A\ndefault = B", "a"),
        ("default = B", "b"),
        ("evaluation = lambda: A\ndefault = B", "b"),
        ("evaluation = lambda: A", "a"),
        ("default = lambda: B", "b"),
        ("evaluation = lambda: A\ndefault = lambda: B", "a"),
        ("evaluation = lambda needed: A\ndefault = lambda: B", "b"),
        ("evaluation = 3\ndefault = B", "b"),
        ("evaluation = {'name': 'x'}\ndefault = lambda: B", "b"),
        ("evaluation = lambda with_default=1: A", "a"),
        ("other = B\nevaluation = A", "a"),
    ],
)
def test_which_export_counts(folder: Path, exports: str, chosen: str):
    """`evaluation` when it is a spec, else `default` when it is one, else a function without arguments on either."""
    assert loaded(folder, f"A, B = {named('a')}, {named('b')}\n{exports}")["name"] == chosen


def test_no_other_export_is_read(folder: Path):
    """Not even one that is a spec."""
    assert "assign a mapping with name, task and data to `evaluation`" in refusal(folder, "spec = SPEC", "EVAL_NO_SPEC")


def test_a_function_may_be_async(folder: Path):
    """It is awaited."""
    assert loaded(folder, "async def evaluation():\n    return SPEC")["name"] == "e"


def test_any_mapping_is_a_spec(folder: Path):
    """It need not be a dict."""
    assert loaded(folder, "import types\nevaluation = types.MappingProxyType(SPEC)")["name"] == "e"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "exports no spec; assign a mapping"),
        ("", "and do not call evaluate with it"),
        (
            "from support.evaluations import concluded; evaluation = concluded({'a': 'p'})",
            "`evaluation` is what a call has found; assign a mapping with name, task and data to",
        ),
        ("evaluation = 3", "`evaluation` is 3, not a mapping with name, task and data"),
        ("evaluation = {'name': 'e', 'task': str}", "`evaluation` is a mapping without 'data'"),
        ("evaluation = {}", "`evaluation` is a mapping without 'name', 'task', 'data'"),
        ("def evaluation(model): return SPEC", "`evaluation` is a function that needs arguments; give one that"),
        (
            "evaluation = 3\ndef default(x): ...",
            "is 3, not a mapping with name, task and data, and `default` is",
        ),
        ("def evaluation(): ...", "evaluation() returned None, not a mapping"),
        ("def default(): return {'name': 'e'}", "default() returned a mapping without 'task', 'data'"),
        ("async def evaluation(): return 'x'", "evaluation() returned 'x', not a mapping"),
        ("def evaluation(): return lambda: SPEC", "evaluation() returned a function"),
    ],
)
def test_what_exports_no_spec(folder: Path, text: str, why: str):
    """EVAL_NO_SPEC, with what is there instead."""
    assert why in refusal(folder, text, "EVAL_NO_SPEC")


def test_a_file_that_is_missing(folder: Path):
    """EVAL_NOT_FOUND; a folder is no file."""
    (folder / "evals").mkdir()
    for name, why in (("gone.py", "there is no such file"), ("evals", "it is a folder")):
        with pytest.raises(SpecError, match=f"^'{name}': {why}; name a Python file") as refused:
            load(name)
        assert refused.value.code == "EVAL_NOT_FOUND"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_module_x", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_x' ("),
        ("x = 1\nraise ValueError('no key')", "cannot be imported: ValueError: no key ("),
        ("def f(:", "cannot be imported: SyntaxError: "),
        ("import sys\nsys.exit(0)", "ends the process while it is imported (SystemExit: 0)"),
        ("raise SystemExit('bye')", "(SystemExit: 'bye')"),
        ("raise GeneratorExit", "cannot be imported: GeneratorExit"),
        ("raise ValueError", "cannot be imported: ValueError ("),
        ("def __getattr__(name):\n    raise ValueError(name)", "cannot be read: ValueError: evaluation ("),
        (
            "class Own(dict):\n    def __contains__(self, key): raise ValueError\nevaluation = Own()",
            "cannot be read: V",
        ),
    ],
)
def test_what_cannot_be_imported(folder: Path, text: str, why: str):
    """EVAL_IMPORT, with what was raised; `sys.exit(0)` is no success either."""
    assert why in refusal(folder, text, "EVAL_IMPORT")


def test_where_it_was_raised_is_told(folder: Path):
    """The innermost line of anybody's code."""
    written(folder, "def fail():\n    raise ValueError('deep')", "beside_raiser.py")
    said = refusal(folder, "import beside_raiser\nbeside_raiser.fail()", "EVAL_IMPORT")
    assert said.endswith(f"ValueError: deep ({folder / 'beside_raiser.py'}:2)")


def test_a_file_that_calls_evaluate_is_told_what_to_do_instead(folder: Path):
    """Its failed gate is no error of the file."""
    text = "from trunchray import EvalFailure\nraise EvalFailure('the gate of the evaluation is not passed')"
    assert "assign the mapping to `evaluation` instead of calling evaluate" in refusal(folder, text, "EVAL_IMPORT")


def test_an_interrupt_is_no_failed_import(folder: Path):
    """Whoever presses Ctrl-C wants to stop."""
    with pytest.raises(KeyboardInterrupt):
        load(written(folder, "raise KeyboardInterrupt"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def evaluation(): raise ValueError('no')", "evaluation() raised ValueError: no ("),
        ("async def evaluation(): raise ValueError('no')", "evaluation() raised ValueError: no ("),
        ("def default(): raise SystemExit(3)", "default() raised SystemExit: 3 ("),
    ],
)
def test_a_function_that_raises(folder: Path, text: str, why: str):
    """EVAL_IMPORT as well: the file's own code failed."""
    assert why in refusal(folder, text, "EVAL_IMPORT")


def test_a_file_that_cannot_be_imported_is_no_module(folder: Path):
    """Nobody finds half of one later."""
    refusal(folder, "raise ValueError", "EVAL_IMPORT")
    assert "spec_file" not in sys.modules


def test_what_is_beside_the_file_can_be_imported(folder: Path):
    """As for a script that Python runs."""
    written(folder, "task = str.upper", "evals/beside_task.py")
    spec = loaded(folder, "from beside_task import task\nevaluation = SPEC | {'task': task}", "evals/spec_file.py")
    assert spec["task"] is str.upper


def test_what_is_in_the_current_directory_can_be_imported(folder: Path):
    """So evaluations find the project that they are of."""
    written(folder, "task = str.lower", "project_task.py")
    spec = loaded(folder, "import project_task\nevaluation = SPEC | {'task': project_task.task}", "evals/spec_file.py")
    assert spec["task"] is str.lower


def test_other_processes_find_them_too(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Those that are started from here, such as Ray's; what was looked for before still is, and nothing twice."""
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}/elsewhere")
    for _ in range(2):
        loaded(folder, "evaluation = SPEC", "evals/spec_file.py")
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(folder / "evals"), str(folder), "/elsewhere"]


def test_a_file_of_a_package_is_a_part_of_it(folder: Path):
    """Relative imports work, and the package comes first."""
    written(folder, "first = True", "pkg_of_evals/__init__.py")
    written(folder, "task = str.title", "pkg_of_evals/tasks.py")
    spec = loaded(folder, "from .tasks import task\nevaluation = SPEC | {'task': task}", "pkg_of_evals/spec_file.py")
    assert spec["task"] is str.title
    assert "pkg_of_evals.spec_file" in sys.modules


def test_the_module_can_be_found_by_its_name(folder: Path):
    """Dataclasses with postponed annotations look themselves up there."""
    text = """
        from __future__ import annotations
        from dataclasses import dataclass

        @dataclass
        class Answer:
            text: str

        evaluation = SPEC | {'task': lambda value: Answer(value)}
    """
    spec = loaded(folder, text)
    assert spec["task"]("a").text == "a"
    assert sys.modules["spec_file"].__file__ == str(folder / "spec_file.py")


@pytest.mark.parametrize("name", ["json.py", "pytest.py", "antigravity.py"])
def test_no_other_module_is_replaced(folder: Path, name: str):
    """A file may be called as a module that others use, or will."""
    before = sys.modules.get(name.removesuffix(".py"))
    assert loaded(folder, "evaluation = SPEC", name)["name"] == "e"
    assert sys.modules.get(name.removesuffix(".py")) is before


def test_the_name_of_a_file_need_not_be_one_of_python(folder: Path):
    """It is loaded by its path."""
    assert loaded(folder, "evaluation = SPEC", "refund-agent.v2.py")["name"] == "e"
    assert loaded(folder, "evaluation = SPEC", "no_ending")["name"] == "e"


def test_a_file_is_executed_anew_each_time(folder: Path):
    """What changed in it counts."""
    assert loaded(folder, f"evaluation = {named('first')}")["name"] == "first"
    assert loaded(folder, f"evaluation = {named('another')}")["name"] == "another"


def test_main_is_not_run(folder: Path):
    """A file can be run by itself as well."""
    loaded(folder, "evaluation = SPEC\nif __name__ == '__main__':\n    raise ValueError")


def test_a_relative_path_of_data_leads_beside_the_file_first(folder: Path):
    """Then to the current directory."""
    (folder / "evals").mkdir()
    (folder / "cases.jsonl").touch()
    text = "evaluation = SPEC | {'data': 'cases.jsonl'}"
    assert loaded(folder, text, "evals/spec_file.py")["data"] == "cases.jsonl"
    (folder / "evals" / "cases.jsonl").touch()
    assert loaded(folder, text, "evals/spec_file.py")["data"] == str(folder / "evals" / "cases.jsonl")


@pytest.mark.parametrize("data", ["s3://bucket/cases.jsonl", "gone.jsonl", "/abs/gone.jsonl"])
def test_other_data_stays_as_it_is(folder: Path, data: str):
    """URIs, absolute paths, and what is nowhere, which is told later."""
    assert loaded(folder, f"evaluation = SPEC | {{'data': {data!r}}}")["data"] == data


def test_a_path_object_will_do(folder: Path):
    """As data, too."""
    (folder / "cases.jsonl").touch()
    text = "from pathlib import Path\nevaluation = SPEC | {'data': Path('cases.jsonl')}"
    assert loaded(folder, text)["data"] == str(folder / "cases.jsonl")


def test_an_unknown_key_is_refused(folder: Path):
    """With the one that was meant: a typing error must not lift a limit."""
    with pytest.raises(UsageError, match=r"unknown key 'alow' in the spec — did you mean 'allow'\?"):
        loaded(folder, "evaluation = SPEC | {'alow': 1}")
