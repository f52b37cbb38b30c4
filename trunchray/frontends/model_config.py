"""What a run config says of one model."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, JsonValue, field_validator, model_validator

from trunchray.adapters.models.providers import Route, check_headers, check_params, is_mock, resolve
from trunchray.core.agent import Faults, Latency, Limits, Pacing, Price, ScriptedReply, SystemPrompt, Transport
from trunchray.core.budget import Budget
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.frontends.checked import validated

_KEY_HINT = "names an environment variable, such as OPENAI_API_KEY; the key itself does not belong into a config"


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


def model_from_id(model: str, *, option: str = "--model") -> ModelConfig:
    """A model named on the command line by this option, with every default.

    Raises:
        UsageError: it needs more than a name.
    """
    return validated(ModelConfig, {"id": model}, lambda _: f"{option} {model}")
