"""A run config (YAML) → what a run is asked. Unknown keys are refused with the nearest known one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import yaml
from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from trunchray.adapters.models.providers import is_mock, resolve
from trunchray.adapters.models.replay import load_replay
from trunchray.core.agent import Faults, Latency, Limits, Mock, ModelAgent, Pacing, Price, ScriptedReply
from trunchray.core.digest import sha256
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.core.run import Selection
from trunchray.errors import UsageError

Shape = TypeVar("Shape", bound=Frozen)
PoolName = Literal["auto", "local", "ray"]


class SomeLimits(Frozen):
    """Limits that replace the release's; those left out stay as they are. Units as in `Limits`."""

    max_steps: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=0)
    max_output_tokens: int | None = Field(default=None, ge=1)

    def over(self, limits: Limits) -> Limits:
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class MockConfig(Frozen):
    """How a mock model behaves."""

    replay: str | None = None
    """A JSONL file of recorded outputs, relative to the config file."""
    script: tuple[ScriptedReply, ...] = ()
    latency: Latency = Latency(p50=0, p99=0)
    faults: Faults = Faults()
    seed: int = 0

    @field_validator("latency", mode="before")
    @classmethod
    def _seconds(cls, value: Any) -> Any:
        """A bare number is a constant latency in seconds."""
        return {"p50": value, "p99": value} if isinstance(value, int | float) else value


class ModelConfig(Frozen):
    """One model of a run."""

    id: str
    """`<provider>/<model>`, for example `openai/gpt-4o-mini` or `mock/echo`."""
    name: str | None = None
    """What tables and rows call it; the id when left out."""
    base_url: str | None = None
    api_key_env: str | None = None
    params: dict[str, JsonValue] = {}
    limits: SomeLimits = SomeLimits()
    price: Price | None = None
    pacing: Pacing = Pacing()
    mock: MockConfig | None = None

    @model_validator(mode="after")
    def _mock_fits(self) -> ModelConfig:
        if self.mock and not is_mock(self.id):
            raise ValueError("mock: is only for the models mock/echo, mock/replay and mock/script")
        if self.id == "mock/replay" and not (self.mock and self.mock.replay):
            raise ValueError("mock/replay needs mock: {replay: <file of recorded outputs>}")
        if self.id == "mock/script" and not (self.mock and self.mock.script):
            raise ValueError("mock/script needs mock: {script: [{text: …}, …]}")
        return self


class RunConfig(Frozen):
    """A whole run config. Paths are relative to the file it stands in."""

    release: str
    """A release's URI, or the path of an authoring repository."""
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    attempts: int = Field(default=1, ge=1, le=1000)
    select: Selection = Selection()
    limits: SomeLimits = SomeLimits()
    seed: int = 0
    shard_size: int = Field(default=128, ge=1, le=1024)
    out: str | None = None
    """Where runs are kept; `runs` in the current directory when left out."""
    run_id: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9._-]{0,119}$")
    pool: PoolName = "auto"
    max_error_share: float = Field(default=0, ge=0, le=1)
    """The share of error rows up to which a finished run exits 0."""


def read_run_config(path: Path) -> RunConfig:
    """Read and check a run config.

    Raises:
        UsageError: the file cannot be read, is not YAML, or says something impossible; with file, field and value.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a run config is a mapping with the keys release and models")
    config = validated(RunConfig, cast("dict[str, Any]", content), str(path))
    return config.model_copy(update=_absolute(config, path.parent))


def read_yaml(path: Path) -> object:
    """What a YAML file says.

    Raises:
        UsageError: the file cannot be read, or is not YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no such file: {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"cannot read {str(path)!r}: {e}") from e
    except (yaml.YAMLError, RecursionError) as e:
        raise UsageError(f"{path}: not YAML: {' '.join(str(e).split())}") from e


def validated(shape: type[Shape], content: Mapping[str, Any], place: str) -> Shape:
    """The content as a value of that shape; `place` is what messages call it.

    Raises:
        UsageError: naming every field that is wrong.
    """
    try:
        return shape.model_validate(content)
    except ValidationError as e:
        raise UsageError("\n".join(f"{place}: {_explain(error, shape)}" for error in e.errors())) from e


def model_from_id(model: str) -> ModelConfig:
    """A model named on the command line, with every default.

    Raises:
        UsageError: it needs more than a name.
    """
    return validated(ModelConfig, {"id": model}, f"--model {model}")


def build_agents(
    models: tuple[ModelConfig, ...], *, limits: SomeLimits, release_limits: Limits, folder: Path
) -> tuple[tuple[ModelAgent, ...], dict[str, bytes]]:
    """The agents of a run, and the content of each file they need, by its SHA-256. `folder` is the config's.

    Raises:
        UsageError: a model cannot be reached by what is said of it, or a file of recorded outputs cannot be used.
    """
    inputs: dict[str, bytes] = {}
    agents = [_agent(model, limits.over(release_limits), folder, inputs) for model in models]
    return tuple(agents), inputs


def _agent(model: ModelConfig, limits: Limits, folder: Path, inputs: dict[str, bytes]) -> ModelAgent:
    base_url, api_key_env = resolve(model.id, model.base_url, model.api_key_env)
    return ModelAgent(
        name=model.name or model.id,
        model=model.id,
        base_url=base_url,
        api_key_env=api_key_env,
        params=model.params,
        limits=model.limits.over(limits),
        price=model.price,
        pacing=model.pacing,
        mock=_mock(model.mock or MockConfig(), folder, inputs) if is_mock(model.id) else None,
    )


def _mock(config: MockConfig, folder: Path, inputs: dict[str, bytes]) -> Mock:
    replay = None
    if config.replay:
        content = _recorded(folder / config.replay)
        replay = sha256(content)
        inputs[replay] = content
    return Mock(replay=replay, script=config.script, latency=config.latency, faults=config.faults, seed=config.seed)


def _recorded(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as e:
        raise UsageError(f"cannot read the recorded outputs {str(path)!r}: {e.strerror}") from e
    load_replay(content, str(path))
    return content


def _absolute(config: RunConfig, folder: Path) -> dict[str, str]:
    """The locations in a config, from where it stands."""
    named = {"release": config.release} | ({"out": config.out} if config.out else {})
    return {key: value if "://" in value else str(folder / value) for key, value in named.items()}


def _explain(error: ErrorDetails, shape: type[Frozen]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: unknown key{nearest(str(error['loc'][-1]), _known(error['loc'][:-1], shape))}"
    if error["type"] == "missing":
        return f"{place}: is missing"
    return f"{place}: {_reason(error)} (got {_cut(error['input'])})" if place else _reason(error)


def _reason(error: ErrorDetails) -> str:
    return error["msg"].removeprefix("Value error, ")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _known(place: tuple[int | str, ...], shape: type[Frozen]) -> list[str]:
    """The keys that may stand at a place of the config."""
    models: dict[str, type[Frozen]] = {
        "select": Selection, "limits": SomeLimits, "price": Price, "pacing": Pacing, "mock": MockConfig,
        "latency": Latency, "faults": Faults, "script": ScriptedReply, "models": ModelConfig,
    }  # fmt: skip
    names = [part for part in place if isinstance(part, str)]
    return list(models.get(names[-1], shape).model_fields if names else shape.model_fields)
