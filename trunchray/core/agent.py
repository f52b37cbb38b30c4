"""What is put under test, as data: a model, a task written in Python, or a skill in a coding tool.

Two agents are the same when their digests are equal. Names, credentials, prices and the way requests are paced are not
part of the digest: they change how a run goes, not what is asked of the model.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from trunchray.core.digest import digest
from trunchray.core.frozen import Frozen, Sparse
from trunchray.core.harness import Harness
from trunchray.core.trial import FinishReason, Usage

_SHA256 = "^[0-9a-f]{64}$"

Transport = Literal["auto", "openai", "litellm"]
"""Through what a model is asked: straight at an OpenAI-compatible endpoint, or through litellm. auto: what fits."""

SystemPrompt = Literal["system", "developer", "user"]
"""The role under which a system prompt is sent; "user" puts it before the prompt, in the same message."""


class Limits(Sparse):
    """What one trial may use. The run's limits replace the release's, and a model's replace the run's."""

    unless_none = frozenset({"wall"})

    max_steps: int = Field(default=10, ge=1)
    """Model calls in one trial."""
    max_tool_calls: int = Field(default=20, ge=0)
    max_output_tokens: int = Field(default=4096, ge=1)
    """Tokens the model may write in one call."""
    wall: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds a trial may spend in model calls and tools; waits for a rate limit do not count. None: no limit."""


class Price(Frozen):
    """US dollars per million tokens."""

    input: float = Field(ge=0, le=1e6)
    output: float = Field(ge=0, le=1e6)
    cached_input: float | None = Field(default=None, ge=0, le=1e6)
    """Input that the provider still had from an earlier request; None: the same as other input."""
    reasoning: float | None = Field(default=None, ge=0, le=1e6)
    """Output that was thought and not said; None: the same as other output."""
    source: str | None = None
    """The table it was looked up in, by version and digest; None when the config gives it."""

    def cost(self, usage: Usage) -> float | None:
        """US dollars for these tokens; None when the provider did not count them."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_input_tokens or 0, usage.input_tokens)
        thought = min(usage.reasoning_tokens or 0, usage.output_tokens)
        return (
            (usage.input_tokens - cached) * self.input
            + cached * _or(self.cached_input, self.input)
            + (usage.output_tokens - thought) * self.output
            + thought * _or(self.reasoning, self.output)
        ) / 1e6


def _or(price: float | None, usual: float) -> float:
    return usual if price is None else price


class Quota(Frozen):
    """What a provider allows the models that share it, under a name of ours. None: without limit."""

    name: str = Field(min_length=1)
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Read and written."""
    max_in_flight: int | None = Field(default=None, ge=1)
    """Requests of all its models together."""


class Pacing(Frozen):
    """How requests to one model are paced and repeated. All times are in seconds."""

    max_in_flight: int = Field(default=128, ge=1)
    """Trials in flight in the whole run, shared out over the workers."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """None: without limit, or as its quota says."""
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Read and written; None likewise."""
    timeout: float = Field(default=120, gt=0)
    """One request."""
    deadline: float = Field(default=600, gt=0)
    """One model call with all its retries and waits."""
    max_retries: int = Field(default=6, ge=0)


class Latency(Frozen):
    """A mock model's time in seconds: log-normal with this median and 99th percentile; constant when they are equal."""

    p50: float = Field(ge=0, allow_inf_nan=False)
    p99: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.p99 < self.p50 or (self.p50 == 0 and self.p99 > 0):
            raise ValueError(f"p99 ({self.p99:g} s) must be at least p50 ({self.p50:g} s), and 0 when p50 is 0")
        return self


class Faults(Frozen):
    """The share of a mock model's requests that go wrong, by kind; each from 0 to 1, at most 1 together."""

    rate_limited: float = Field(default=0, ge=0, le=1)
    """429 with `Retry-After`."""
    rate_limited_silently: float = Field(default=0, ge=0, le=1)
    """429 without it."""
    server_error: float = Field(default=0, ge=0, le=1)
    """500, 502 or 503."""
    timeout: float = Field(default=0, ge=0, le=1)
    """No answer until the request's own timeout."""
    malformed: float = Field(default=0, ge=0, le=1)
    """200 with a body that is not JSON."""
    retry_after: float = Field(default=1, ge=0, allow_inf_nan=False)
    """Seconds named by `rate_limited`."""

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        share = self.rate_limited + self.rate_limited_silently + self.server_error + self.timeout + self.malformed
        if share > 1 + 1e-9:
            raise ValueError(f"the shares add up to {share:g}; together they may be at most 1")
        return self


class ScriptedCall(Frozen):
    """One tool call of a scripted reply; a string is sent as the raw argument text."""

    name: str
    arguments: dict[str, JsonValue] | str = {}


class ScriptedReply(Frozen):
    """One reply of a scripted mock: its n-th model call in a trial gets the n-th reply, the last one from then on."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    finish_reason: FinishReason | None = None
    """None: "tool-calls" when there are any, else "stop"."""


class Mock(Frozen):
    """How a model that lives inside trunchray behaves: offline, deterministic, the same from any number of workers."""

    replay: str | None = None
    """SHA-256 of the recorded outputs (`mock/replay`); the run keeps the file itself."""
    script: tuple[ScriptedReply, ...] = ()
    """The replies of `mock/script`."""
    latency: Latency = Latency(p50=0, p99=0)
    faults: Faults = Faults()
    seed: int = 0


class ModelAgent(Frozen):
    """A model, asked directly."""

    kind: Literal["model"] = "model"
    name: str
    """Unique in its run; what tables and rows call it."""
    model: str
    """`<provider>/<model>`, for example `openai/gpt-4o-mini`."""
    base_url: str | None = None
    """The endpoint, without a trailing slash; None for a mock, and where litellm knows the provider's own."""
    params: dict[str, JsonValue] = {}
    """Further request fields, sent as they are (temperature, top_p, seed, …); those of `extra_body` unpacked."""
    headers: dict[str, str] = {}
    """Further HTTP headers; never credentials."""
    system_prompt: SystemPrompt = "system"
    limits: Limits = Limits()
    mock: Mock | None = None

    transport: Transport = "auto"
    api_key_env: str | tuple[str, ...] | None = None
    """The environment variables that hold the keys, which take turns; they are read where requests are made."""
    price: Price | None = None
    pacing: Pacing = Pacing()
    quota: Quota | None = None
    """The quota it shares with other models; None when it has one to itself, as `pacing` says."""

    @property
    def digest(self) -> str:
        """64 hex digits of what is asked of the model."""
        return digest(self.asked)

    @property
    def asked(self) -> dict[str, JsonValue]:
        """What makes two agents the same or not, as JSON. What came later is part of it only where it is used."""
        asked = self.model_dump(mode="json", include={"kind", "model", "base_url", "params", "limits", "mock"})
        if self.headers:
            asked["headers"] = dict(self.headers)
        if self.system_prompt != "system":
            asked["system_prompt"] = self.system_prompt
        return asked

    @property
    def key_names(self) -> tuple[str, ...]:
        """The environment variables of `api_key_env`."""
        if self.api_key_env is None:
            return ()
        return (self.api_key_env,) if isinstance(self.api_key_env, str) else self.api_key_env


class PythonAgent(Frozen):
    """A function, agent or workflow written in Python. What cannot be data, its code, workers get in another way."""

    kind: Literal["python"]
    name: str
    """Unique in its run; what tables and rows call it."""
    task: str
    """Where it is defined, for people: `<module>:<qualified name>`."""
    code: str
    """SHA-256 of the source that defines it, as far as that can be told."""
    timeout: float = Field(gt=0, allow_inf_nan=False)
    """Seconds that one run of it may take."""
    pacing: Pacing = Pacing()
    """Only `max_in_flight` concerns it: how many cases are under way at a time."""

    @property
    def digest(self) -> str:
        """64 hex digits of what is run."""
        return digest(self.asked)

    @property
    def asked(self) -> dict[str, JsonValue]:
        """What makes two of them the same or not, as JSON."""
        return self.model_dump(mode="json", include={"kind", "task", "code", "timeout"})

    @property
    def model(self) -> str:
        """What stands where a model is named."""
        return self.task

    # What those who read about agents of both kinds ask for.
    base_url: ClassVar[None] = None
    params: ClassVar[dict[str, JsonValue]] = {}
    system_prompt: ClassVar[SystemPrompt] = "system"
    limits: ClassVar[Limits] = Limits()
    mock: ClassVar[None] = None
    price: ClassVar[None] = None
    quota: ClassVar[None] = None
    key_names: ClassVar[tuple[str, ...]] = ()


class SkillTree(Frozen):
    """A skill's folder, which is copied into the workspace."""

    name: str = Field(min_length=1, pattern=r"^[^/\\\x00]+$")
    """Of the folder."""
    tree: str = Field(pattern=_SHA256)
    """SHA-256 of the tar file of its content, which is among the run's inputs."""


class TriggerSkill(Frozen):
    """A skill of which only name and description are there, to see whether a tool loads it."""

    name: str = Field(min_length=1)
    description: str


class HarnessAgent(Frozen):
    """A coding tool with a skill, or without one: a config of a skill eval."""

    kind: Literal["harness"] = "harness"
    name: str
    """Unique in its run: `skill`, `bare` or `variant`; the folder of its attempts."""
    harness: Harness | None = None
    """None: none is recorded; everything is staged and nothing runs."""
    skill: SkillTree | None = None
    """None: without a skill of its own."""
    trigger: TriggerSkill | None = None
    """Set for trigger queries, in place of `skill`."""
    timeout: float = Field(default=600, gt=0, allow_inf_nan=False)
    """Seconds that one run may take, where its case does not say otherwise."""
    staging: str = Field(pattern=_SHA256)
    """SHA-256 of the `Staging`, which is among the run's inputs."""
    pacing: Pacing = Pacing()
    """Only `max_in_flight` concerns it: how many runs are under way at a time."""
    quota: Quota | None = None
    """What bounds the runs of all configs together, by its `max_in_flight`."""

    @model_validator(mode="after")
    def _one_skill(self) -> Self:
        if self.skill and self.trigger:
            raise ValueError(f"{self.name!r} has both a skill and one to trigger; give it one of them")
        return self

    @property
    def digest(self) -> str:
        """64 hex digits of what is run."""
        return digest(self.asked)

    @property
    def asked(self) -> dict[str, JsonValue]:
        """What makes two of them the same or not, as JSON: neither where runs are kept nor what a login needs."""
        asked = self.model_dump(mode="json", include={"kind", "skill", "trigger", "timeout"})
        if self.harness:
            asked |= self.harness.model_dump(mode="json", include={"command", "skill_dir", "env"})
        return asked

    @property
    def model(self) -> str:
        """What stands where a model is named: the program."""
        return self.harness.command[0].rpartition("/")[2] if self.harness else "no harness"

    # As for Python tasks: what models have.
    base_url: ClassVar[None] = None
    params: ClassVar[dict[str, JsonValue]] = {}
    headers: ClassVar[dict[str, str]] = {}
    system_prompt: ClassVar[SystemPrompt] = "system"
    limits: ClassVar[Limits] = Limits()
    mock: ClassVar[None] = None
    price: ClassVar[None] = None
    key_names: ClassVar[tuple[str, ...]] = ()


AgentSpec = Annotated[ModelAgent | PythonAgent | HarnessAgent, Field(discriminator="kind")]
