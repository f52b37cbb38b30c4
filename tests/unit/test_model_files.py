"""Models that run configs take from files of their own, and the ready ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.core.agent import Limits
from trunchray.errors import UsageError
from trunchray.frontends.agents import build_agents
from trunchray.frontends.model_config import SomeLimits
from trunchray.frontends.run_config import RunConfig, read_models, read_run_config

READY = sorted((Path(__file__).parents[2] / "configs" / "models").glob("*.yaml"))
SHARED = """
models:
- {id: mock/echo, name: a}
- {id: mock/replay, name: b, mock: {replay: out.jsonl}}
- {id: openai/gpt-4o-mini}
"""


def read(folder: Path, models: str, shared: str = SHARED) -> RunConfig:
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "shared" / "m.yaml").write_text(shared, encoding="utf-8")
    (folder / "run.yaml").write_text(f"release: r\nmodels:\n{models}", encoding="utf-8")
    return read_run_config(str(folder / "run.yaml"))


def refused(folder: Path, models: str, shared: str = SHARED) -> str:
    with pytest.raises(UsageError) as error:
        read(folder, models, shared)
    return str(error.value).replace(f"{folder}/", "")


def test_included_models_take_the_place_of_the_entry(tmp_path: Path):
    """Before, between and after others, in their own order."""
    config = read(tmp_path, "- {id: mock/echo, name: z}\n- include: shared/m.yaml\n- {id: mock/echo, name: y}\n")
    assert [model.label for model in config.models] == ["z", "a", "b", "openai/gpt-4o-mini", "y"]


def test_only_some_of_them(tmp_path: Path):
    """By name or id."""
    config = read(tmp_path, "- {include: shared/m.yaml, only: [openai/gpt-4o-mini, a]}")
    assert [model.label for model in config.models] == ["a", "openai/gpt-4o-mini"]


def test_their_paths_are_relative_to_their_own_file(tmp_path: Path):
    """A file of models means the same from everywhere."""
    (model,) = read(tmp_path, "- {include: shared/m.yaml, only: [b]}").models
    assert model.mock
    assert model.mock.replay == str(tmp_path / "shared" / "out.jsonl")


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("- include: nope.yaml", "no such file: 'nope.yaml'"),
        ("- include: 7", "run.yaml:3: models[0].include: must be the path of a file (got 7)"),
        ("- {include: shared/m.yaml, onyl: [a]}", "run.yaml:3: models[0].onyl: unknown key beside include — did you"),
        ("- {include: shared/m.yaml, only: a}", "run.yaml:3: models[0].only: must be a list of names or ids (got 'a')"),
        ("- {include: shared/m.yaml, only: [c]}", "models[0].only: shared/m.yaml has no model 'c'; known: a, b, mock/"),
        ("- include: shared/m.yaml\n- include: shared/m.yaml", "2 models are named 'a'; give each its own name"),
        ("- include: ~nosuchuser/m.yaml", "'~nosuchuser/m.yaml' is no path: there is no home folder of that name"),
        ('- include: "a\\0b"', r"'a\x00b' is no path: it holds a NUL character"),
        ('- include: "\\ud800"', r"'\ud800' is no path: surrogates not allowed"),
        ("- include: /dev/zero", "cannot read '/dev/zero': it is larger than 8 MiB"),
        ("- {id: mock/replay, mock: {replay: ~nosuchuser/m.jsonl}}", "there is no home folder of that name"),
        ("- include: run.yaml", "run.yaml: a file of models is a mapping with the one key models, a list"),
    ],
)
def test_what_cannot_be_included(models: str, message: str, tmp_path: Path):
    """The message says where, and what there is."""
    assert message in refused(tmp_path, models)


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ("", "shared/m.yaml: a file of models is a mapping with the one key models, a list"),
        ("[a]", "shared/m.yaml: a file of models is a mapping with the one key models, a list"),
        ("models: x", "shared/m.yaml: a file of models is a mapping with the one key models, a list"),
        ("models:\n- include: m.yaml", "shared/m.yaml:2: models[0]: an included file includes no others"),
        ("models:\n- {id: mock/echo}\n- {id: openai/x, nam: y}", "shared/m.yaml:3: models[2].nam: unknown key — did"),
        ("models:\n- id: [1]\n  mock: 3", "shared/m.yaml:2: models[1].id: must be text"),
        ("models:\n- mock/echo", "shared/m.yaml:2: models[1]: must be a mapping (got 'mock/echo'); write `- id: mo"),
    ],
)
def test_what_is_wrong_in_an_included_file(shared: str, message: str, tmp_path: Path):
    """It is placed in the file where it stands."""
    assert message in refused(tmp_path, "- {id: mock/echo, name: z}\n- include: shared/m.yaml", shared)


def test_models_alone(tmp_path: Path):
    """A file of models can be read by itself, and so can the models of a run config."""
    read(tmp_path, "- include: shared/m.yaml")
    named = ["a", "b", "openai/gpt-4o-mini"]
    assert [model.label for model in read_models(str(tmp_path / "run.yaml"))] == named
    assert [model.label for model in read_models(str(tmp_path / "shared" / "m.yaml"))] == named
    (tmp_path / "none.yaml").write_text("models: []")
    with pytest.raises(UsageError, match="name at least one model"):
        read_models(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_the_ready_ones(path: Path, tmp_path: Path):
    """Each file stands on its own and can be included; what they cost is known but where it is yours to say."""
    (tmp_path / "run.yaml").write_text(f"release: r\nmodels: [{{include: {path}}}]\n", encoding="utf-8")
    models = read_models(str(path))
    assert read_run_config(str(tmp_path / "run.yaml")).models == models
    agents = build_agents(models, {}, limits=SomeLimits(), release_limits=Limits())
    assert all(agent.price for agent in agents) or path.stem == "openrouter"
    assert all(agent.api_key_env for agent in agents) or path.stem == "local"


def test_there_are_ready_ones():
    """For the common providers and servers."""
    hosted = {"anthropic", "azure", "deepseek", "fireworks", "google", "groq", "mistral", "openai", "openrouter"}
    assert {path.stem for path in READY} == hosted | {"together", "local"}
