"""From a model's spec to a client. The only place where keys are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trunchray.adapters.models import providers
from trunchray.adapters.models.base import ModelClient
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.mock import MockClient
from trunchray.adapters.models.replay import load_replay
from trunchray.core.agent import AgentSpec, ModelAgent
from trunchray.core.digest import sha256
from trunchray.errors import UsageError

_LONG = 20
"""Characters; keys are at least that long."""


def build_client(spec: ModelAgent, *, environ: Mapping[str, str], replay: bytes | None = None) -> ModelClient:
    """A client that has not connected yet. `replay` is the file of recorded outputs of a `mock/replay`.

    Raises:
        UsageError: the model cannot be reached this way, its key is not in `environ`, or the recorded outputs are
            not the ones the spec names.
    """
    route = providers.resolve(spec.model, spec.base_url, spec.key_names, transport=spec.transport)
    if route.transport == "mock":
        return _mock(spec, replay)
    providers.check_params(spec.model, spec.params)
    providers.check_headers(spec.model, spec.headers)
    keys = [Key(name, _key(spec.model, name, environ)) for name in route.key_names]
    spec = spec.model_copy(update={"base_url": route.base_url})
    # What loads aiohttp is imported where requests are made.
    if route.transport == "litellm":
        from trunchray.adapters.models.litellm import LiteLLMClient  # noqa: PLC0415

        return LiteLLMClient(spec, keys=keys, environ=environ)
    from trunchray.adapters.models.openai import OpenAIClient  # noqa: PLC0415

    return OpenAIClient(spec, keys=keys)


def load_clients(specs: Iterable[AgentSpec]) -> None:
    """Import now what the clients of these models need: litellm takes seconds, which are no part of a model's time.

    Not in a thread that runs an event loop. A model that cannot be asked here is left to whoever asks it.
    """
    if any(_needs_litellm(spec) for spec in specs if isinstance(spec, ModelAgent)):
        from trunchray.adapters.models.litellm import prepare  # noqa: PLC0415

        prepare()


def _needs_litellm(spec: ModelAgent) -> bool:
    try:
        route = providers.resolve(spec.model, spec.base_url, spec.key_names, transport=spec.transport)
    except UsageError:
        return False
    return route.transport == "litellm"


def _mock(spec: ModelAgent, content: bytes | None) -> MockClient:
    if content is None:
        return MockClient(spec)
    expected = spec.mock.replay if spec.mock else None
    if expected is not None and sha256(content) != expected:
        raise UsageError(f"agent {spec.name!r}: the recorded outputs have changed since the run began ({expected})")
    return MockClient(spec, replay=load_replay(content, f"recorded outputs of {spec.name!r}"))


def _key(model: str, name: str, environ: Mapping[str, str]) -> str:
    key = environ.get(name, "").strip()
    if not key and _looks_like_a_key(name):
        raise UsageError(
            f"model {model!r}: api_key_env names a variable, but what stands there looks like a key itself "
            "(it is not repeated here); set a variable to the key where the workers run, and name that variable"
        )
    if not key:
        raise UsageError(f"model {model!r} needs a key: set the environment variable {name} where the workers run")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(f"model {model!r}: the key in {name} has blanks or characters that no header can carry")
    return key


def _looks_like_a_key(name: str) -> bool:
    return len(name) >= _LONG and (name != name.upper() or not name.replace("_", "").isalnum())
