"""The guide for authors is true: what it shows compiles and is read, and it leaves no key out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trunchray.adapters.parts import SCHEMA
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import Pacing, Price
from trunchray.core.budget import Budget
from trunchray.core.frozen import Frozen
from trunchray.core.gate import Gate, Limit
from trunchray.core.run import Selection
from trunchray.core.telemetry import LogConfig, Observe
from trunchray.frontends.benchmark.cases import AuthoredCase
from trunchray.frontends.benchmark.compiler import compile_to
from trunchray.frontends.benchmark.config import AuthoredConfig
from trunchray.frontends.benchmark.evals import AuthoredEval
from trunchray.frontends.gate_file import read_gate
from trunchray.frontends.model_config import MockConfig, ModelConfig, SomeLimits
from trunchray.frontends.run_config import QuotaConfig, RayConfig, RunConfig, read_run_config

GUIDE = (Path(__file__).parents[3] / "benchmarks" / "README.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, flags=re.M | re.S)
CONFIGS = (Path(__file__).parents[3] / "configs" / "README.md").read_text(encoding="utf-8")
RUN, GATE = re.findall(r"^```yaml\n(.*?)^```", CONFIGS, flags=re.M | re.S)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRelease:
    """The release that all files of the guide together make."""
    folder = tmp_path_factory.mktemp("guide")
    for _, path, content in re.findall(
        r"(^// ([\w./]+)\n)(.*?)(?=^// [\w./]+\n|\Z)",
        "".join(text for kind, text in BLOCKS if kind == "ts"),
        re.M | re.S,
    ):
        (folder / "b" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "b" / path).write_text(content, encoding="utf-8")
    return compile_to(folder / "b", str(folder / "out"))


def test_the_examples_compile(stored: StoredRelease):
    """Every file that the guide shows is part of one benchmark, which compiles."""
    release = stored.release
    assert [entry.id for entry in release.evals] == ["function", "kinds", "made", "orders", "rows", "table"]
    assert [tool.name for tool in release.tools] == ["get_order"]
    assert (release.title, release.cases.count) == ("Guide", 10)


def test_the_run_config_is_read(tmp_path: Path):
    """The run config on the page about them is one, and shows the defaults where it says so."""
    (tmp_path / "run.yaml").write_text(RUN, encoding="utf-8")
    config = read_run_config(str(tmp_path / "run.yaml"))
    assert set(RunConfig.model_fields) == config.model_fields_set
    for name in ("attempts", "limits", "seed", "shard_size", "pool", "confirm_above", "max_error_share", "sandbox"):
        assert getattr(config, name) == RunConfig.model_fields[name].default
    assert config.models[0].pacing == Pacing()
    given = {name for model in config.models for name in model.model_fields_set}
    assert given == set(ModelConfig.model_fields)


def test_the_gate_is_read(tmp_path: Path):
    """The gate on the page is one, shows every key, and the one beside it is one, too."""
    (tmp_path / "gate.yaml").write_text(GATE, encoding="utf-8")
    gate = read_gate([str(tmp_path / "gate.yaml")])
    assert gate.model_fields_set == set(Gate.model_fields)
    assert gate.evals["greeting"] == Limit(miss=1)
    assert [name for name in Limit.model_fields if f"{name}:" not in GATE] == []
    assert read_gate([str(Path(__file__).parents[3] / "configs" / "gate.yaml")]).evals


@pytest.mark.parametrize(
    "shape",
    [*(SomeLimits, Price, Pacing, QuotaConfig, Budget, MockConfig, Selection), *(RayConfig, Observe, LogConfig)],
    ids=lambda shape: shape.__name__,
)
def test_every_key_is_shown(shape: type[Frozen]):
    """No key of a run config has to be guessed."""
    operator = {"source"}  # of a price that was looked up
    assert [name for name in shape.model_fields if name not in operator and f"{name}:" not in CONFIGS] == []


def test_every_field_and_column_is_named():
    """Every field that an author may write, and every column of the results, is in the guide."""
    fields = {
        field.alias or name
        for shape in (AuthoredConfig, AuthoredEval, AuthoredCase)
        for name, field in shape.model_fields.items()
    }
    assert [name for name in fields if name not in GUIDE] == []
    assert [name for name in SCHEMA.names if f"`{name}`" not in GUIDE] == []


def test_no_block_is_left_out():
    """Every block is one of those above, and the guide stays short."""
    assert {kind for kind, _ in BLOCKS} == {"ts"}
    assert GUIDE.count("```") == 2 * len(BLOCKS)
    assert GUIDE.count("\n") <= 150
