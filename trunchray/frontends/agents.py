"""The models of a run config → the agents of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from trunchray.adapters.location import read_file
from trunchray.adapters.models.providers import is_mock, list_price
from trunchray.adapters.models.replay import load_replay
from trunchray.core.agent import Limits, Mock, ModelAgent, Quota
from trunchray.core.digest import sha256
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.frontends.model_config import MockConfig, ModelConfig, SomeLimits
from trunchray.frontends.run_config import QuotaConfig

Shape = TypeVar("Shape", bound=Frozen)


def read_recorded(models: Sequence[ModelConfig]) -> dict[str, bytes]:
    """The files of recorded outputs that the models name, by path or URI.

    Raises:
        UsageError: a file cannot be read or used.
    """
    paths = [model.mock.replay for model in models if model.mock and model.mock.replay]
    return {path: _recorded(path) for path in paths}


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


def _recorded(location: str) -> bytes:
    content = read_file(location, what="the recorded outputs")
    load_replay(content, location)
    return content
