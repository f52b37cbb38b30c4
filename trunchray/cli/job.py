"""From the arguments of `trunchray run` to a question and a way to carry it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import Any, cast, get_args

from pydantic import ValidationError

from trunchray.adapters.releases import StoredRelease, open_release
from trunchray.adapters.store import Store
from trunchray.core.names import nearest
from trunchray.core.run import RunSpec, Selection, default_run_id
from trunchray.engine.launch import Launch
from trunchray.engine.run import Observer
from trunchray.errors import UsageError
from trunchray.frontends.benchmark.compiler import compile_to
from trunchray.frontends.run_config import (
    ModelConfig,
    PoolName,
    RunConfig,
    build_agents,
    model_from_id,
    read_run_config,
)


@dataclass(frozen=True)
class Job:
    """A question, the release it is about, the files it needs, and where it runs."""

    spec: RunSpec
    release: StoredRelease
    inputs: Mapping[str, bytes]
    out: str
    pool: PoolName
    max_error_share: float

    @property
    def run_uri(self) -> str:
        return f"{self.out}/{self.spec.run_id}"

    def launch(self, *, observer: Observer, address: str | None, takeover: bool, stop: Flag) -> Launch:
        return Launch(self.out, observer, pool=self.pool, address=address, takeover=takeover, stop=stop)


def prepare(
    target: str,
    *,
    models: Sequence[str],
    out: str | None,
    run_id: str | None,
    attempts: int | None,
    sample: int | None,
    pool: str | None,
) -> Job:
    """Read the config, compile or open the release, and put the question together; options replace the config's.

    Raises:
        UsageError: something asked for is impossible.
        AuthoringError: the repository does not compile.
        ReleaseError: the release is damaged or missing.
    """
    config, folder = _config(target, models)
    place = out or config.out or "runs"
    release = _release(config.release, place)
    agents, inputs = build_agents(
        config.models, limits=config.limits, release_limits=release.release.limits, folder=folder
    )
    selection = config.select.model_copy(update={"sample": sample} if sample else {})
    name = run_id or config.run_id or _default_name(release, selection, config)
    spec = _spec(
        run_id=name,
        title=release.release.title,
        release=release.uri,
        release_digest=release.release.digest,
        agents=agents,
        attempts=attempts or config.attempts,
        selection=selection,
        seed=config.seed,
        shard_size=config.shard_size,
    )
    return Job(spec, release, inputs, Store(place).uri, _pool(pool or config.pool), config.max_error_share)


def _config(target: str, models: Sequence[str]) -> tuple[RunConfig, Path]:
    """The run config, and the folder that its paths are relative to."""
    if target.endswith((".yaml", ".yml")):
        config = read_run_config(Path(target))
        chosen = _chosen(config.models, models) if models else config.models
        return config.model_copy(update={"models": chosen}), Path(target).parent
    if not models:
        raise UsageError(f"which models? Name them with --model, or give a run config instead of {target!r}")
    return RunConfig(release=target, models=tuple(model_from_id(model) for model in models)), Path()


def _chosen(known: Sequence[ModelConfig], names: Sequence[str]) -> tuple[ModelConfig, ...]:
    for name in names:
        if not any(name in (model.name, model.id) for model in known):
            everything = [label for model in known for label in (model.name, model.id) if label]
            raise UsageError(f"--model {name}: the run config has no such model{nearest(name, everything)}")
    return tuple(model for model in known if model.name in names or model.id in names)


def _release(location: str, out: str) -> StoredRelease:
    """The release at a location; a repository is compiled to `<out>/.releases` first."""
    if "://" in location or Store(location).exists("release.json"):
        return open_release(location)
    if not Path(location).exists():
        raise UsageError(f"{location!r} is neither a run config (.yaml), nor a release, nor a folder")
    return compile_to(Path(location), f"{out}/.releases")


def _default_name(release: StoredRelease, selection: Selection, config: RunConfig) -> str:
    slug = release.release.folder.rpartition("-")[0].lower()
    return default_run_id(slug, release.release.digest, selection, config.seed, config.shard_size)


def _spec(**fields: Any) -> RunSpec:
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as e:
        first = e.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{place}: {message} (got {first['input']!r})" if place else message) from e


def _pool(name: str) -> PoolName:
    if name not in get_args(PoolName):
        raise UsageError(f"--pool {name}: must be one of {', '.join(get_args(PoolName))}")
    return cast("PoolName", name)
