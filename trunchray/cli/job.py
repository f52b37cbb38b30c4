"""From the arguments of `trunchray run` to a question and a way to carry it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event as Flag
from typing import Any

from pydantic import ValidationError

from trunchray.adapters.releases import StoredRelease, copy_release
from trunchray.adapters.sandbox.launcher import require
from trunchray.adapters.store import Store
from trunchray.cli.opening import is_release, release_at
from trunchray.cli.options import writable
from trunchray.core.budget import Budget
from trunchray.core.digest import sha256
from trunchray.core.names import nearest
from trunchray.core.run import RunSpec, Selection, default_run_id
from trunchray.engine.launch import Launch
from trunchray.engine.run import Observer
from trunchray.engine.seating import PoolName
from trunchray.engine.spending import Spending
from trunchray.errors import UsageError
from trunchray.frontends.agents import build_agents, read_recorded
from trunchray.frontends.benchmark.checkout import is_git_address
from trunchray.frontends.checked import explain
from trunchray.frontends.model_config import ModelConfig, model_from_id
from trunchray.frontends.run_config import RunConfig, read_run_config
from trunchray.frontends.submission import refuse_local


@dataclass(frozen=True)
class Job:
    """A question, the release it is about, the files it needs, and where it runs."""

    config: RunConfig
    """What was asked for, with the options that replace parts of it."""
    spec: RunSpec
    release: StoredRelease
    recorded: Mapping[str, bytes]
    """The files of recorded outputs, by the locations that the config gives them."""
    out: str
    cache: str | None
    spending: Spending

    @property
    def run_uri(self) -> str:
        return f"{self.out}/{self.spec.run_id}"

    @property
    def inputs(self) -> dict[str, bytes]:
        """The files that agents need, by SHA-256."""
        return {sha256(content): content for content in self.recorded.values()}

    def launch(
        self, *, observer: Observer, address: str | None, takeover: bool, stop: Flag, pilot: int | None = None
    ) -> Launch:
        """How the job is carried out; of a `pilot`, only so many trials of each model."""
        pool, ray = self.config.pool, self.config.ray
        address = address or (ray.address if pool != "local" else None)
        small = pilot is not None and address is None and pool == "auto"
        return Launch(
            self.out,
            observer,
            pool="local" if small else pool,
            address=address,
            seating=ray,
            spending=replace(self.spending, pilot=pilot),
            takeover=takeover,
            require=self.config.sandbox.require,
            cache=self.cache,
            observe=self.config.observe,
            stop=stop,
        )


def configured(
    target: str,
    *,
    models: Sequence[str],
    out: str | None,
    run_id: str | None,
    attempts: int | None,
    pool: PoolName | None,
    budget: Mapping[str, float | None],
    here: bool = True,
) -> RunConfig:
    """Read the config; options replace its own. Nobody is asked anything yet.

    `budget` holds the parts of the run's budget that were given as options. `here`: trials run on this
    machine, too; otherwise they need nothing of it.

    Raises:
        UsageError: something asked for is impossible.
    """
    written = _config(target, models)
    most = _replaced(written.budget, budget)
    config = _overridden(written, out=out, run_id=run_id, attempts=attempts, pool=pool, budget=most)
    if here:
        require(config.sandbox.require)
    else:
        refuse_local("out", config.out or "runs")
        refuse_local("cache", config.cache)
    return config


def prepare(
    config: RunConfig,
    *,
    sample: int | None,
    allow_unpriced: bool,
    note: Callable[[str], None],
    here: bool = True,
) -> Job:
    """Compile or open the release and put the question together. `here` as in `configured`.

    What can be found wrong without the release is found before it is compiled.

    Raises:
        UsageError: something asked for is impossible.
        AuthoringError: the repository does not compile.
        ReleaseError: the release is damaged or missing.
    """
    recorded = read_recorded(config.models)
    place = writable(config.out or "runs")
    cache = Store(config.cache).uri if config.cache else None
    release = release_for(config.release, place)
    if not here and "://" not in config.release:
        release = copy_release(release, Store(f"{place}/.releases"))
    agents = build_agents(
        config.models, recorded, limits=config.limits, release_limits=release.release.limits, quotas=config.quotas
    )
    spending = Spending(config.budget, _budgets(config), allow_unpriced=allow_unpriced)
    spending.refuse_unpriced(agents)
    selection = config.select.model_copy(update={"sample": sample} if sample else {})
    _note_small(selection, release, note)
    spec = _spec(
        run_id=config.run_id or _default_name(release, selection, config),
        title=release.release.title,
        release=release.uri,
        release_digest=release.release.digest,
        agents=agents,
        attempts=config.attempts,
        selection=selection,
        seed=config.seed,
        shard_size=config.shard_size,
    )
    return Job(config, spec, release, recorded, out=Store(place).uri, cache=cache, spending=spending)


def _config(target: str, models: Sequence[str]) -> RunConfig:
    if target.endswith((".yaml", ".yml")):
        config = read_run_config(target)
        return config.model_copy(update={"models": chosen(config.models, models) if models else config.models})
    if not (target and models):
        raise UsageError(f"which models? Name them with --model, or give a run config instead of {target!r}")
    return RunConfig(release=target, models=tuple(model_from_id(model) for model in dict.fromkeys(models)))


def _overridden(config: RunConfig, **options: Any) -> RunConfig:
    """The config with the options that were given in place of its own."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return RunConfig.model_validate(dict(config) | given)
    except ValidationError as e:
        raise UsageError("\n".join(explain(error, RunConfig) for error in e.errors())) from e


def _replaced(budget: Budget, options: Mapping[str, float | None]) -> dict[str, Any] | None:
    """The budget with the options that were given in place of its own; None when none was."""
    given = {name: value for name, value in options.items() if value is not None}
    return dict(budget) | given if given else None


def _budgets(config: RunConfig) -> dict[str, Budget]:
    return {model.label: model.budget for model in config.models if model.budget.limits()}


def chosen(known: Sequence[ModelConfig], names: Sequence[str]) -> tuple[ModelConfig, ...]:
    """The models that --model names, by name or id.

    Raises:
        UsageError: there is none of that name.
    """
    for name in names:
        if not any(name in (model.name, model.id) for model in known):
            everything = [label for model in known for label in (model.name, model.id) if label]
            raise UsageError(f"--model {name}: the run config has no such model{nearest(name, everything)}")
    return tuple(model for model in known if model.name in names or model.id in names)


def release_for(location: str, out: str, forms: str = "neither a run config (.yaml), nor") -> StoredRelease:
    """The release at a location; a benchmark is compiled to `<out>/.releases`, where it stays if the run is refused.

    `forms`: what else than a release or a folder could have been given, for the message that there is nothing.
    """
    if not is_git_address(location) and not is_release(location):
        if not Path(location).exists():
            raise UsageError(f"{location!r} is {forms} a release, nor a folder")
        if Store(location).exists("run.json"):
            raise UsageError(f"{location!r} is a run; to continue it, give the config that it was started with")
    return release_at(location, compiled_to=f"{out}/.releases")


def _note_small(selection: Selection, release: StoredRelease, note: Callable[[str], None]) -> None:
    """Say so when a sample asks for more cases than there are: all of them are run."""
    if selection.sample and selection.sample > release.release.cases.count:
        note(f"the sample of {selection.sample:,} holds all {release.release.cases.count:,} cases")


def _default_name(release: StoredRelease, selection: Selection, config: RunConfig) -> str:
    slug = release.release.folder.rpartition("-")[0].lower()
    return default_run_id(slug, release.release.digest, selection, config.seed, config.shard_size)


def _spec(**fields: Any) -> RunSpec:
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as e:
        raise UsageError("\n".join(explain(error, RunSpec) for error in e.errors())) from e
