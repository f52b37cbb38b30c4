"""A run config (YAML) → what a run is asked. Unknown keys are refused with the nearest known one."""

from __future__ import annotations

from collections import Counter

from pydantic import Field, field_validator, model_validator

from trunchray.adapters.location import beside
from trunchray.adapters.sandbox.launcher import Requirement
from trunchray.core.budget import Budget
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.core.run import SHARD_SIZE, Attempts, RunId, Selection, ShardSize
from trunchray.core.telemetry import Observe
from trunchray.engine.seating import PoolName, Seating
from trunchray.errors import UsageError
from trunchray.frontends.checked import validated
from trunchray.frontends.model_config import ModelConfig, SomeLimits
from trunchray.frontends.model_files import with_included
from trunchray.frontends.yaml_file import read_yaml


class QuotaConfig(Frozen):
    """What a provider allows all models together that name this quota; what is left out is not limited."""

    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_in_flight: int | None = Field(default=None, ge=1)


class SandboxConfig(Frozen):
    """What must stand around author code, evaluators above all, wherever it runs."""

    require: Requirement = "none"
    """With "landlock", a machine without Landlock and seccomp runs nothing; the walls in force are in every row."""


class RayConfig(Seating):
    """The Ray cluster, and what of it workers take. On this machine, no `resources` are asked for."""

    address: str | None = Field(default=None, min_length=1)
    """`<host>:<port>` of its head, or auto for the one that this machine belongs to; None for a Ray of our own."""


CONFIRM_ABOVE = 10.0
"""US dollars that a command spends unasked where no config says otherwise."""


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
    ray: RayConfig = RayConfig()
    cache: str | None = Field(default=None, min_length=1)
    """Where answers of models are kept and looked up: any run that asks the same again gets the same answer, free."""
    sandbox: SandboxConfig = SandboxConfig()
    observe: Observe = Observe()
    """What is told of the run, and to whom."""
    budget: Budget = Budget()
    """What may be spent on the run, by all its commands together; the next command may name another one."""
    confirm_above: float = Field(default=CONFIRM_ABOVE, ge=0, allow_inf_nan=False)
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


def read_run_config(location: str) -> RunConfig:
    """Read and check the run config at a path or URI. Locations in the returned one do not depend on where it stands.

    Raises:
        UsageError: the file cannot be read, is not YAML, or says something impossible; with file, line and value.
    """
    file = read_yaml(location)
    if not isinstance(file.value, dict):
        raise UsageError(f"{location}: a run config is a mapping with the keys release and models")
    return _located(validated(RunConfig, *with_included(file, file.value)), location)


def read_models(location: str) -> tuple[ModelConfig, ...]:
    """The models of a run config, or of a file of models that run configs include.

    Raises:
        UsageError: as `read_run_config`.
    """
    file = read_yaml(location)
    if not isinstance(file.value, dict) or set(file.value) != {"models"}:
        return read_run_config(location).models
    config = validated(RunConfig, *with_included(file, {"release": ".", **file.value}))
    return _located(config, location).models


def _located(config: RunConfig, file: str) -> RunConfig:
    """The config with every path in it taken from where its file stands."""

    def at(location: str) -> str:
        return beside(file, location)

    models = [
        model.model_copy(update={"mock": model.mock.model_copy(update={"replay": at(model.mock.replay)})})
        if model.mock and model.mock.replay
        else model
        for model in config.models
    ]
    places = {"out": config.out, "cache": config.cache}
    located = {name: at(location) for name, location in places.items() if location}
    return config.model_copy(update={"release": at(config.release), "models": tuple(models)} | located)
