"""A run that is handed to a cluster: what it needs is put where the cluster can read it, and one command drives it.

<out>/.releases/<name>        the compiled release
<out>/.jobs/<digest>/run.yaml the config, with every option and price in it; the digest is of its content
<out>/.jobs/<digest>/*.jsonl  recorded outputs

Nothing of this machine is read later, and no credential is written down: nodes have theirs in their environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from trunchray.adapters.store import Store
from trunchray.core.agent import AgentSpec
from trunchray.core.digest import sha256
from trunchray.core.run import RunSpec
from trunchray.errors import UsageError
from trunchray.frontends.model_config import ModelConfig
from trunchray.frontends.run_config import RunConfig

_PLAIN = re.compile("[a-z_]+")


def refuse_local(key: str, location: str | None) -> None:
    """Refuse a place that only this machine can see; `key` is what the config calls it.

    A shared file system, which this machine cannot tell from its own disk, has to be named by a file:// URI.

    Raises:
        UsageError: the location is a plain path, or memory.
    """
    if location is None or ("://" in location and not location.startswith("memory://")):
        return
    raise UsageError(
        f"{key} {location!r} is on this machine, where a cluster does not see it; name an object store, such as "
        "s3://bucket/runs, or, for a folder that all nodes share, its URI, such as file:///shared/runs"
    )


def store_config(
    config: RunConfig, spec: RunSpec, recorded: Mapping[str, bytes], *, out: str, cache: str | None
) -> str:
    """Write down what is to be run, and what it needs besides the release; the URI of the config.

    `recorded` holds recorded outputs by the locations that `config` gives them. Doing it again changes nothing.

    Raises:
        StoreError: the store refused it.
    """
    content = self_contained(config, spec, recorded, out=out, cache=cache)
    folder = Store(f"{out}/.jobs/{sha256(content)[:16]}")
    for outputs in recorded.values():
        folder.write(_recorded_name(outputs), outputs)
    folder.write("run.yaml", content)
    return f"{folder.uri}/run.yaml"


def self_contained(
    config: RunConfig, spec: RunSpec, recorded: Mapping[str, bytes], *, out: str, cache: str | None
) -> bytes:
    """The config as YAML, complete in itself: one that is read from it asks exactly `spec`."""
    models = [_model(model, spec.agent(model.label), recorded) for model in config.models]
    whole = config.model_copy(
        update={
            "release": spec.release,
            "models": tuple(models),
            "select": spec.selection,
            "out": out,
            "run_id": spec.run_id,
            "cache": cache,
        }
    )
    said = whole.model_dump(mode="json", exclude_defaults=True)
    text = yaml.dump(said, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return f"# Written by `trunchray submit`.\n{text}".encode()


def command(config: str, options: Sequence[str]) -> list[str]:
    """What drives the run on a node of the cluster; the same command goes on with a run that was interrupted."""
    return ["trunchray", "run", config, "--address", "auto", *options]


def _model(model: ModelConfig, agent: AgentSpec, recorded: Mapping[str, bytes]) -> ModelConfig:
    """With the price that is known here, because tables of prices differ from one installation to the next."""
    changes: dict[str, Any] = {"price": agent.price}
    if model.mock and model.mock.replay:
        changes["mock"] = model.mock.model_copy(update={"replay": _recorded_name(recorded[model.mock.replay])})
    return model.model_copy(update=changes)


def _recorded_name(outputs: bytes) -> str:
    return f"recorded-{sha256(outputs)[:16]}.jsonl"


class _Dumper(yaml.SafeDumper):
    """Puts text in quotes that could be read as something else."""


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _PLAIN.fullmatch(text) else '"')


_Dumper.add_representer(str, _text)
