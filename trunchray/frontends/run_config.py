"""A run config (YAML) → what a run is asked. Unknown keys are refused with the nearest known one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from trunchray.adapters.local_path import local_path
from trunchray.adapters.models.providers import Route, check_headers, check_params, is_mock, list_price, resolve
from trunchray.adapters.models.replay import load_replay
from trunchray.adapters.sandbox.launcher import Requirement
from trunchray.core.agent import (
    Faults,
    Latency,
    Limits,
    Mock,
    ModelAgent,
    Pacing,
    Price,
    Quota,
    ScriptedReply,
    SystemPrompt,
    Transport,
)
from trunchray.core.budget import Budget
from trunchray.core.digest import sha256
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.core.run import SHARD_SIZE, Attempts, RunId, Selection, ShardSize
from trunchray.errors import UsageError
from trunchray.frontends.annotations import field_names, inside
from trunchray.frontends.model_files import Location, with_included
from trunchray.frontends.yaml_file import read_yaml

Shape = TypeVar("Shape", bound=Frozen)
PoolName = Literal["auto", "local", "ray"]


class SomeLimits(Frozen):
    """Limits that replace the release's; those left out stay as they are. Units as in `Limits`."""

    max_steps: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=0)
    max_output_tokens: int | None = Field(default=None, ge=1)
    wall: float | None = Field(default=None, gt=0, allow_inf_nan=False)

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
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"p50": value, "p99": value} if number else value


class ModelConfig(Frozen):
    """One model of a run."""

    id: str
    """`<provider>/<model>`, for example `openai/gpt-4o-mini` or `mock/echo`."""
    name: str | None = None
    """What tables and rows call it; the id when left out."""
    transport: Transport = "auto"
    """Straight at an OpenAI-compatible endpoint, or through litellm; auto takes what fits the id and base_url."""
    base_url: str | None = None
    api_version: str | None = Field(default=None, min_length=1)
    """Azure's, such as 2024-10-21; without one its undated interface is used."""
    api_key_env: tuple[str, ...] = ()
    """One environment variable, or several whose keys take turns."""
    quota_per_key: bool = False
    """Each key has the whole quota: requests and tokens per minute, and in flight, count once for each key."""
    headers: dict[str, str] = {}
    params: dict[str, JsonValue] = {}
    system_prompt: SystemPrompt = "system"
    """The role under which system prompts are sent; "user" puts them before the prompt."""
    limits: SomeLimits = SomeLimits()
    price: Price | None = None
    pacing: Pacing = Pacing()
    quota: str | None = None
    """The name of the entry of the run's `quotas` that it shares with other models."""
    budget: Budget = Budget()
    """What may be spent on this model, within the run's budget."""
    mock: MockConfig | None = None

    @property
    def label(self) -> str:
        return self.name or self.id

    @field_validator("id", "name")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        if value is not None and not (0 < len(value) <= 200 and value.isprintable() and value == value.strip()):
            raise ValueError("must be 1 to 200 printable characters on one line, without blanks around them")
        return value

    @field_validator("api_key_env", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value

    @field_validator("api_key_env")
    @classmethod
    def _variables(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in names):
            raise ValueError(_KEY_HINT)
        if len(set(names)) < len(names):
            raise ValueError("names a variable twice")
        return names

    def route(self) -> Route:
        """How it is asked.

        Raises:
            UsageError: it cannot be.
        """
        return resolve(self.id, self.base_url, self.api_key_env, transport=self.transport, api_version=self.api_version)

    @model_validator(mode="after")
    def _can_be_asked(self) -> ModelConfig:
        try:
            self.route()
            check_params(self.id, self.params)
            check_headers(self.id, self.headers)
        except UsageError as e:
            raise ValueError(str(e)) from e
        return self

    @model_validator(mode="after")
    def _mock_fits(self) -> ModelConfig:
        if self.mock and not is_mock(self.id):
            raise ValueError(f"model {self.id!r}: mock: is only for the models mock/echo, mock/replay and mock/script")
        if self.id == "mock/replay" and not (self.mock and self.mock.replay):
            raise ValueError("mock/replay needs mock: {replay: <file of recorded outputs>}")
        if self.id == "mock/script" and not (self.mock and self.mock.script):
            raise ValueError("mock/script needs mock: {script: [{text: …}, …]}")
        return self

    @model_validator(mode="after")
    def _one_rate(self) -> ModelConfig:
        own = [name for name in ("requests_per_minute", "tokens_per_minute") if getattr(self.pacing, name) is not None]
        if self.quota is not None and own:
            raise ValueError(
                f"model {self.label!r} has both quota {self.quota!r} and pacing.{own[0]}; say rates in one of them"
            )
        return self


_KEY_HINT = "names an environment variable, such as OPENAI_API_KEY; the key itself does not belong into a config"


class QuotaConfig(Frozen):
    """What a provider allows all models together that name this quota; what is left out is not limited."""

    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_in_flight: int | None = Field(default=None, ge=1)


class SandboxConfig(Frozen):
    """What must stand around author code, evaluators above all, wherever it runs."""

    require: Requirement = "none"
    """With "landlock", a machine without Landlock and seccomp runs nothing; the walls in force are in every row."""


class RunConfig(Frozen):
    """A whole run config. Paths are relative to the file it stands in."""

    release: str = Field(min_length=1)
    """A release's URI, or the path of an authoring repository."""
    models: tuple[ModelConfig, ...]
    quotas: dict[str, QuotaConfig] = {}
    """Limits that models share, by a name that models give as their `quota`."""
    attempts: Attempts = 1
    select: Selection = Selection()
    limits: SomeLimits = SomeLimits()
    seed: int = 0
    shard_size: ShardSize = SHARD_SIZE
    out: str | None = Field(default=None, min_length=1)
    """Where runs are kept; `runs` in the current directory when left out."""
    run_id: RunId | None = None
    pool: PoolName = "auto"
    cache: str | None = Field(default=None, min_length=1)
    """Where answers of models are kept and looked up: any run that asks the same again gets the same answer, free."""
    sandbox: SandboxConfig = SandboxConfig()
    budget: Budget = Budget()
    """What may be spent on the run, by all its commands together; the next command may name another one."""
    confirm_above: float = Field(default=10, ge=0, allow_inf_nan=False)
    """US dollars: a command that is expected to spend more runs nothing until that is confirmed."""
    max_error_share: float = Field(default=0, ge=0, le=1)
    """The share of error rows up to which a finished run exits 0."""

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
        if not models:
            raise ValueError("name at least one model")
        for name, count in Counter(model.label for model in models).items():
            if count > 1:
                raise ValueError(f"{count} models are named {name!r}; give each its own name")
        return models

    @model_validator(mode="after")
    def _quotas_are_known(self) -> RunConfig:
        for model in self.models:
            if model.quota is not None and model.quota not in self.quotas:
                known = nearest(model.quota, self.quotas) or "; write it under quotas, beside models"
                raise ValueError(f"model {model.label!r}: there is no quota {model.quota!r}{known}")
        return self


def read_run_config(path: Path) -> RunConfig:
    """Read and check a run config. The locations in the returned one do not depend on where the file stands.

    Raises:
        UsageError: the file cannot be read, is not YAML, or says something impossible; with file, line and value.
    """
    file = read_yaml(path)
    if not isinstance(file.value, dict):
        raise UsageError(f"{path}: a run config is a mapping with the keys release and models")
    return _located(validated(RunConfig, *with_included(file, file.value)), path.parent)


def read_models(path: Path) -> tuple[ModelConfig, ...]:
    """The models of a run config, or of a file of models that run configs include.

    Raises:
        UsageError: as `read_run_config`.
    """
    file = read_yaml(path)
    if not isinstance(file.value, dict) or set(file.value) != {"models"}:
        return read_run_config(path).models
    config = validated(RunConfig, *with_included(file, {"release": ".", **file.value}))
    return _located(config, path.parent).models


def validated(shape: type[Shape], content: Mapping[str, Any], place: Callable[[Location], str]) -> Shape:
    """The content, which has only JSON's types, as a value of that shape; `place` says where messages place a value.

    Raises:
        UsageError: naming every field that is wrong.
    """
    try:
        # As JSON, because only there is strict validation what people expect: true is no number, "3" is none either.
        return shape.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as e:
        problems = [f"{place(error['loc'])}: {explain(error, shape)}" for error in e.errors()]
        raise UsageError("\n".join(dict.fromkeys(problems))) from e


def model_from_id(model: str) -> ModelConfig:
    """A model named on the command line, with every default.

    Raises:
        UsageError: it needs more than a name.
    """
    return validated(ModelConfig, {"id": model}, lambda _: f"--model {model}")


def read_recorded(models: Sequence[ModelConfig]) -> dict[str, bytes]:
    """The files of recorded outputs that the models name, by path.

    Raises:
        UsageError: a file cannot be read or used.
    """
    paths = [model.mock.replay for model in models if model.mock and model.mock.replay]
    return {path: _recorded(Path(path)) for path in paths}


def build_agents(
    models: Sequence[ModelConfig],
    recorded: Mapping[str, bytes],
    *,
    limits: SomeLimits,
    release_limits: Limits,
    quotas: Mapping[str, QuotaConfig] | None = None,
) -> tuple[ModelAgent, ...]:
    """The agents of a run: a model's limits replace the run's, which replace the release's."""
    named = {name: Quota(name=name, **dict(quota)) for name, quota in (quotas or {}).items()}
    agents = tuple(_agent(model, recorded, limits.over(release_limits), named) for model in models)
    _same_quotas(agents)
    return agents


def _agent(
    model: ModelConfig, recorded: Mapping[str, bytes], limits: Limits, quotas: Mapping[str, Quota]
) -> ModelAgent:
    route = model.route()
    keys = max(1, len(route.key_names)) if model.quota_per_key else 1
    quota = quotas[model.quota] if model.quota is not None else None
    return ModelAgent(
        name=model.label,
        model=model.id,
        transport="auto" if route.transport == "mock" else route.transport,
        base_url=route.base_url,
        api_key_env=route.key_names if len(route.key_names) > 1 else next(iter(route.key_names), None),
        headers=model.headers,
        params=model.params,
        system_prompt=model.system_prompt,
        limits=model.limits.over(limits),
        price=model.price or list_price(model.id, route),
        pacing=_times(keys, model.pacing, "requests_per_minute", "tokens_per_minute"),
        quota=_times(keys, quota, "requests_per_minute", "tokens_per_minute", "max_in_flight") if quota else None,
        mock=_mock(model.mock or MockConfig(), recorded) if is_mock(model.id) else None,
    )


def _times(keys: int, limits: Shape, *names: str) -> Shape:
    """The limits of so many keys."""
    many = {name: keys * value for name in names if (value := getattr(limits, name)) is not None}
    return limits.model_copy(update=many) if keys > 1 else limits


def _same_quotas(agents: Sequence[ModelAgent]) -> None:
    """Models that share a quota must count it for the same number of keys."""
    first: dict[str, tuple[str, Quota]] = {}
    for agent in agents:
        if agent.quota is None:
            continue
        other, quota = first.setdefault(agent.quota.name, (agent.name, agent.quota))
        if quota != agent.quota:
            raise UsageError(
                f"models {other!r} and {agent.name!r} share quota {quota.name!r}, which quota_per_key counts for "
                "different numbers of keys; give each a quota of its own"
            )


def _mock(config: MockConfig, recorded: Mapping[str, bytes]) -> Mock:
    replay = sha256(recorded[config.replay]) if config.replay else None
    return Mock(replay=replay, script=config.script, latency=config.latency, faults=config.faults, seed=config.seed)


def _recorded(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as e:
        raise UsageError(f"cannot read the recorded outputs {str(path)!r}: {e.strerror}") from e
    load_replay(content, str(path))
    return content


def _located(config: RunConfig, folder: Path) -> RunConfig:
    """The config with every path in it taken from `folder`."""

    def at(location: str) -> str:
        return location if "://" in location else str(folder / local_path(location))

    models = [
        model.model_copy(update={"mock": model.mock.model_copy(update={"replay": at(model.mock.replay)})})
        if model.mock and model.mock.replay
        else model
        for model in config.models
    ]
    places = {"out": config.out, "cache": config.cache}
    located = {name: at(location) for name, location in places.items() if location}
    return config.model_copy(update={"release": at(config.release), "models": tuple(models)} | located)


def explain(error: ErrorDetails, shape: type[Frozen]) -> str:
    """What is wrong with a field of `shape`, with its value and, for an unknown key, what may have been meant."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).removeprefix(".")
    match error["type"]:
        case "extra_forbidden":
            return f"{place}: unknown key{_meant(error['loc'], shape)}"
        case "missing":
            return f"{place}: is missing"
        case "dict_type" | "model_type" if error["loc"][:1] == ("models",) and isinstance(error["input"], str):
            return f"{place}: must be a mapping (got {_shown(error['input'])}); write `- id: {error['input'][:60]}`"
        case "value_error" if isinstance(error["input"], dict | list):
            reason = _reason(error)  # a rule between fields, which names their values itself
            return f"{place}: {reason}" if place else reason
        case "value_error" if error["loc"][-1:] == ("api_key_env",):
            return f"{place}: {_reason(error)}"  # what stands there may be a key
        case _:
            return f"{place}: {_reason(error)} (got {_shown(error['input'])})"


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "string_type":
            return "must be text" + (", in quotes" if isinstance(error["input"], bool | int | float) else "")
        case "dict_type" | "model_type":
            return "must be a mapping"
        case "tuple_type":
            return "must be a list"
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return "may hold a–z, 0–9, '.', '_' and '-', begins with a letter or digit, has at most 120 characters"
        case _:
            return error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)


def _shown(value: object) -> str:
    return excerpt(repr(value), 60)


def _meant(location: Location, shape: type[Frozen]) -> str:
    """What may have been meant by the unknown key at a location."""
    key, known = str(location[-1]), _known(location[:-1], shape)
    if shape is RunConfig and len(location) == 1 and key in set(ModelConfig.model_fields) - set(known):
        return "; it belongs under a model, beside its id"
    return nearest(key, known)


def _known(place: Location, shape: type[Frozen]) -> list[str]:
    """The keys that may stand at a place of a value of that shape."""
    annotation: Any = shape
    for step in place:
        annotation = inside(annotation, step)
    return field_names(annotation)
