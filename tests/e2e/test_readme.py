"""The README is run, block by block, as a newcomer would."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.layers import LAYERS
from trunchray.adapters import parts
from trunchray.core.agent import Limits
from trunchray.frontends.agents import build_agents
from trunchray.frontends.benchmark.compiler import compile_to
from trunchray.frontends.model_config import SomeLimits
from trunchray.frontends.run_config import read_run_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.M | re.S)
BLOCKS: list[tuple[str, str]] = BLOCK.findall(README)
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
SCRIPTS = sysconfig.get_path("scripts")


def block(language: str, containing: str) -> str:
    (found,) = [text for kind, text in BLOCKS if kind == language and containing in text]
    return found


def shell(commands: str, folder: Path, scripts: str = SCRIPTS) -> str:
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files, without what lies around beside them."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("trunchray", "benchmarks", "configs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("README.md", "LICENSE", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def quickstart(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The first command, in an environment of its own, and what it printed.

    The environment sees the packages that are installed here, so that only trunchray itself is installed anew.
    """
    environment = tmp_path_factory.mktemp("environment")
    here = find_spec("pip") is not None
    venv.create(environment, with_pip=not here)
    site = next((environment / "lib").glob("python3*")) / "site-packages"
    (site / "installed-here.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    if here:  # making another one takes longer than all the rest
        pip = environment / "bin" / "pip"
        pip.write_text(f'#!/bin/sh\nexec "{environment}/bin/python" -m pip "$@"\n', encoding="utf-8")
        pip.chmod(0o755)
    (environment / "bin" / "deno").symlink_to(Path(SCRIPTS) / "deno")
    return checkout, shell(block("sh", "quickstart.yaml"), checkout, str(environment / "bin"))


def test_the_first_command_ends_with_the_table_that_is_shown(quickstart: tuple[Path, str]):
    """Installing and running the quickstart prints the models' rows, but for measured times."""
    _, printed = quickstart
    shown = block("text", "mixed")
    for name in ("good", "mixed"):
        (expected,) = [line.split()[:-2] for line in shown.splitlines() if line.startswith(name)]
        (found,) = [line.split()[:-2] for line in printed.splitlines() if line.startswith(name)]
        assert found == expected
    for line in shown.splitlines():
        assert line.startswith(("good", "mixed")) or line.removeprefix("report  …") in printed


def test_the_result_can_be_read(quickstart: tuple[Path, str]):
    """Status, report, comparison and export work on the run that the quickstart left."""
    checkout, _ = quickstart
    printed = shell(block("sh", "trunchray status"), checkout)
    assert "complete" in printed
    assert '"release_digest"' in printed
    assert "mixed against good" in printed
    with (checkout / "results.csv").open(encoding="utf-8", newline="") as file:
        assert Counter(row["agent"] for row in csv.DictReader(file)) == {"good": 208, "mixed": 208}
    assert {"parts", "commits", "report"} <= {path.name for path in (checkout / "runs" / "quickstart").iterdir()}


def test_the_gate_on_the_page_about_configs(quickstart: tuple[Path, str]):
    """It can be pasted, and answers of the quickstart what is shown below it."""
    checkout, _ = quickstart
    page = (ROOT / "configs" / "README.md").read_text(encoding="utf-8")
    gate, answer = re.search(r"^## What a gate.*?^```yaml\n(.*?)^```.*?^```text\n(.*?)^```", page, re.M | re.S).groups()
    (checkout / "gate.yaml").write_text(gate, encoding="utf-8")
    printed = shell("trunchray gate runs/quickstart --allow gate.yaml || test $? = 3", checkout)
    for line in answer.splitlines():
        assert line.removesuffix("…") in printed


def python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_rows_can_be_read_with_what_people_have(quickstart: tuple[Path, str]):
    """What the README and the guide to results do with DuckDB, pandas and polars gives the figures of the report."""
    checkout, _ = quickstart
    assert re.search(r"good\D+1\.0\D.*mixed\D+0\.634", python(block("python", "duckdb"), checkout), flags=re.S)
    duckdb, pandas, polars = (python(code, checkout) for _, code in BLOCK.findall(RESULTS))
    assert re.search(r"mixed\W+shopping\W+200\W+0\.635", duckdb)
    assert "return-window" in pandas or "shopping" in pandas
    assert re.search(r"mixed\W+0\.634615", polars)


def test_the_guide_to_results_names_every_column():
    """The table of columns is the schema of result rows, in its order."""
    named = [
        name
        for line in RESULTS.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert sorted(named) == sorted(parts.SCHEMA.names)


def test_a_new_benchmark_runs(tmp_path: Path):
    """What `init` writes compiles and runs; the README's eval compiles beside it, and its config is understood."""
    shell(block("sh", "trunchray init"), tmp_path)
    (tmp_path / "my-benchmark" / "evals" / "readme.ts").write_text(block("ts", "export default"), encoding="utf-8")
    release = compile_to(tmp_path / "my-benchmark", str(tmp_path / "releases"))
    assert "return-window" in {entry.id for entry in release.release.evals}
    (tmp_path / "run.yaml").write_text(block("yaml", "models:"), encoding="utf-8")
    config = read_run_config(str(tmp_path / "run.yaml"))
    agents = build_agents(config.models, {}, limits=SomeLimits(), release_limits=Limits())
    assert [agent.model for agent in agents] == ["openai/gpt-4o-mini", "vllm/llama-3.1-8b"]


def test_code_of_ones_own_is_evaluated(tmp_path: Path):
    """The call that the README shows prints that it passes, and a line for each check."""
    printed = python(block("python", "evaluate("), tmp_path)
    assert printed.startswith("refunds passed: every limit is kept\n")
    assert re.search(r"^ +refunds +1/1 .*\n +fast +1/1 ", printed, flags=re.M)


def test_a_skill_is_evaluated(quickstart: tuple[Path, str]):
    """The command prints how much of the rubric is met with the skill, and how much without."""
    checkout, _ = quickstart
    printed = shell(block("sh", "skills run"), checkout)
    assert re.search(r"^skill +9 +9 +0 +88% of 24 .*\nbare +9 +9 +0 +12% of 24 ", printed, flags=re.M)


def test_the_mock_server_serves():
    """The mock server prints where it listens, and ends when it is interrupted."""
    command = block("sh", "mock-server").split()
    assert command[0] == "trunchray"
    server = subprocess.Popen(
        [sys.executable, "-m", "trunchray.cli.main", *command[1:], "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with urlopen(address.removesuffix("/v1") + "/health") as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0


def test_the_drawing_shows_the_layers():
    """The layers of the drawing are the layers that the structure test enforces."""
    drawn = re.findall(r"^[ └─]*(\w+(?: · \w+)?) {2,}", block("text", "cli "), flags=re.M)
    assert [names.replace(" · ", " ") for names in drawn if "errors" not in names][::-1] == LAYERS[1:]
    assert "└─ errors" in README


def test_the_gate_runs_the_test_command():
    """The second command is the one that the gate takes from here, and it runs these tests."""
    command = block("sh", "pytest").strip()
    pattern = re.search(r"grep -m 1 -E '(.*)' README.md", (ROOT / ".ci" / "test").read_text(encoding="utf-8"))
    assert pattern
    assert re.search(pattern[1], command)


def test_no_block_is_left_out():
    """Every block of the README is one of those that are run above."""
    assert len(BLOCKS) == 12
    assert README.count("\n") <= 205
