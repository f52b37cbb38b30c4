"""The layering in the README is the layering in the code, and what is public is a list."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import trunchray
from support.layers import LAYERS

ROOT = Path(trunchray.__file__).parent
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}
OWNERS = {
    "ray": (
        "engine/cluster.py",
        "engine/ray_",
        "adapters/ray_jobs.py",
        "adapters/telemetry/ray_metrics.py",
    ),  # where trials run; jobs on somebody else's cluster
    "opentelemetry": "adapters/telemetry/traces.py",
    "fsspec": "adapters/store.py",
    "pyarrow": "adapters/parts.py",
    "duckdb": "adapters/trial_index.py",
    "aiohttp": ("adapters/models/", "adapters/web_"),
    "yarl": ("adapters/models/", "adapters/endpoint.py"),
    "litellm": "adapters/models/litellm.py",
    "httpx": "adapters/models/litellm.py",  # what litellm sends through
    "deno": "adapters/sandbox/",
    "yaml": "frontends/",  # configs and lockfiles are read by different rules
    "rfc8785": "core/digest.py",
    "platformdirs": "adapters/user_cache.py",
    "jsonschema": "evaluators/python/json_schema.py",
    "referencing": "evaluators/python/json_schema.py",  # what jsonschema finds references with
    "xllamacpp": "adapters/models/local_server.py",
    "typer": "cli/",
    "rich": "cli/",
    "numpy": "core/",
    "scipy": "core/distributions.py",
    "pytest": "frontends/evaluation/pytest_",  # what it is a plugin of
    "tenacity": "adapters/",  # stores and model calls retry by different rules
    "pydantic": "",
    "pydantic_core": "",
}
"""Each third-party package has one owner, a module or a folder; pydantic is the language of values, used anywhere."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> list[ast.stmt]:
    """All imports and functions of a file, wherever in it."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


@cache
def imports(path: Path) -> set[str]:
    """All modules that a file imports."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_imports_point_down():
    """A module imports its own layer and those below it; agents and evaluators never each other."""
    up: list[str] = []
    for path in MODULES:
        layer = name_of(path).split("/")[0].removesuffix(".py")
        tops = [module.split(".")[1] for module in imports(path) if module.startswith("trunchray.")]
        up += [
            f"{name_of(path)} imports {top}"
            for top in tops
            if top in RANK and top != layer and not RANK[top] < RANK[layer]
        ]
    assert up == []


def test_third_party_packages_have_owners():
    """Whoever replaces a package has one place to look."""
    strangers: list[str] = []
    for path in MODULES:
        tops = {module.split(".")[0] for module in imports(path)} - {"trunchray", *sys.stdlib_module_names}
        strangers += [
            f"{name_of(path)} imports {top}, which {f'belongs to {OWNERS[top]}' if top in OWNERS else 'has no owner'}"
            for top in tops
            if top not in OWNERS or not name_of(path).startswith(OWNERS[top])
        ]
    assert strangers == []


def test_the_core_does_nothing_but_think():
    """No I/O, clock, randomness or concurrency in the layer that decides."""
    banned = {
        "asyncio",
        "os",
        "random",
        "shutil",
        "socket",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "pathlib",
        "io",
    }
    for path in sorted((ROOT / "core").glob("*.py")):
        assert not {module.split(".")[0] for module in imports(path)} & banned, name_of(path)


def test_no_import_cycles():
    """Every module can be understood after those it imports."""
    names = {f"trunchray.{name_of(path).removesuffix('.py').replace('/', '.')}": path for path in MODULES}
    graph = {name: imports(path) & names.keys() for name, path in names.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as e:
        pytest.fail(f"modules import each other: {' → '.join(e.args[1])}")


def test_sub_packages_are_empty():
    """Internals import leaf modules, so packages have nothing to say."""
    for path in ROOT.rglob("__init__.py"):
        if path.parent != ROOT:
            assert not path.read_text(encoding="utf-8").strip(), name_of(path)


def test_files_and_functions_stay_readable():
    """No file over 600 lines, no function over 80."""
    for path in MODULES:
        assert path.read_text(encoding="utf-8").count("\n") <= 600, name_of(path)
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 80, f"{name_of(path)}: {node.name}"


def test_the_public_names():
    """What a program may rely on is this list, and all of it is there."""
    assert trunchray.__all__ == [
        "AuthoringError",
        "Calibration",
        "CancelSignal",
        "EvalFailure",
        "EvaluationReport",
        "Experiment",
        "Interrupted",
        "Problem",
        "ReleaseError",
        "RunRecord",
        "ScriptedJudge",
        "StepRecord",
        "StoreError",
        "TrunchrayError",
        "UsageError",
        "acalibrate",
        "aevaluate",
        "answer_relevancy",
        "ask",
        "avoids",
        "calibrate",
        "correctness",
        "evaluate",
        "faithfulness",
        "fits_schema",
        "http_endpoint",
        "includes",
        "jev",
        "judge_model",
        "langchain",
        "matches",
        "mentions",
        "model_steps",
        "openai_agents",
        "parse_prebuilt",
        "pydantic_ai",
        "ran_steps",
        "steps_at_most",
        "system_one",
        "trajectory_accuracy",
        "under",
        "workflow",
    ]
    assert all(callable(getattr(trunchray, name)) for name in trunchray.__all__)
    assert set(trunchray.__all__) <= set(dir(trunchray))
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        _ = trunchray.evalute  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_is_light():
    """`import trunchray` loads none of the heavy packages, nor does the command line until a command needs them.

    Workers, which come and go all the time, load nothing of what makes reports; looking at a run, where every second is
    waited for, starts without what reads rows one by one.
    """
    heavy = {"ray", "litellm", "pyarrow", "s3fs", "fsspec", "aiohttp", "scipy", "numpy", "duckdb"}
    reports = {
        "trunchray.evaluators.python",
        "trunchray.agents.python",
        "trunchray.engine.aggregate",
        "trunchray.core.tally",
        "trunchray.pages",
        "scipy",
        "pyarrow.compute",
    }
    code = "import sys, {}; print(*sorted({!r} & sys.modules.keys()))"
    for module, unwanted in (
        ("trunchray", heavy),
        ("trunchray.cli.main", heavy),
        ("trunchray.engine.worker", reports | {"jsonschema"}),
        ("trunchray.engine.status", reports | {"pyarrow"}),
        ("trunchray.frontends.viewer.viewer", reports | {"pyarrow"}),
    ):
        command = [sys.executable, "-c", code.format(module, unwanted)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [], module
