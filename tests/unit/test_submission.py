"""What a run that is handed to a cluster is turned into."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters.store import Store
from trunchray.core.agent import Limits
from trunchray.core.run import RunSpec, Selection
from trunchray.errors import UsageError
from trunchray.frontends.agents import build_agents, read_recorded
from trunchray.frontends.kuberay import NAME, Pods, job_name, ray_job
from trunchray.frontends.run_config import RunConfig, read_run_config
from trunchray.frontends.submission import refuse_local, store_config

CONFIG = {
    "release": ".",
    "models": [
        {"id": "mock/replay", "name": "1e3", "mock": {"replay": "r.jsonl", "latency": 0.05}, "budget": {"usd": 1}},
        {"id": "mock/script", "mock": {"script": [{"text": "yes"}, {"text": "a: b #\n\u2028é\x7f"}], "faults": {}}},
        {"id": "openai/gpt-4o-mini", "params": {"stop": "0x1", "seed": 1e-7, "big": 2**53 - 1}, "headers": {"X": "on"}},
        {"id": "vllm/x", "base_url": "http://h/v1", "api_key_env": ["A_KEY", "B_KEY"], "quota_per_key": True},
        {"id": "vllm/y", "base_url": "http://h/v1", "limits": {"wall": 3}, "quota": "null"},
    ],
    "quotas": {"null": {"requests_per_minute": 60}},
    "attempts": 2,
    "limits": {"max_steps": 2},
    "budget": {"usd": 5, "tokens": 1000},
    "max_error_share": 0.5,
    "seed": 7,
    "shard_size": 32,
    "ray": {"address": "head:6379", "workers": 3, "cpus": 0.5, "resources": {"eval": 0.25}},
    "sandbox": {"require": "landlock"},
    "observe": {"log": {}, "metrics": True},
    "confirm_above": 0,
}
PLACES = {"release", "models", "select", "out", "run_id", "cache"}
"""What the stored config says anew."""
RECORDED = b'{"case_id": "a", "output": "o"}\n'


def asked(config: RunConfig, recorded: dict[str, bytes]) -> RunSpec:
    agents = build_agents(config.models, recorded, limits=config.limits, release_limits=Limits(), quotas=config.quotas)
    return RunSpec(run_id="r", title="T", release="s3://b/rel", release_digest="d", agents=agents, attempts=2)


def test_a_config_that_needs_nothing_else(tmp_path: Path):
    """What is read from the store asks the same of the same models; the same twice is one object."""
    (tmp_path / "run.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "r.jsonl").write_bytes(RECORDED)
    config = read_run_config(str(tmp_path / "run.yaml"))
    recorded = read_recorded(config.models)
    spec = asked(config, recorded).model_copy(update={"selection": Selection(evals=("e",), sample=3)})
    out = f"memory://{uuid.uuid4().hex}"
    uri = store_config(config, spec, recorded, out=out, cache="s3://b/cache")
    assert store_config(config, spec, recorded, out=out, cache="s3://b/cache") == uri
    assert re.search(r"/\.jobs/[0-9a-f]{16}/run\.yaml$", uri)
    assert len(Store(out).find()) == 2
    again = read_run_config(uri)
    assert asked(again, read_recorded(again.models)).agents == spec.agents
    assert (again.release, again.select, again.run_id) == ("s3://b/rel", spec.selection, "r")
    assert (again.out, again.cache) == (out, "s3://b/cache")
    assert again.model_dump(exclude=PLACES) == config.model_dump(exclude=PLACES)
    assert config.model_fields_set - PLACES == CONFIG.keys() - PLACES
    assert [model.budget for model in again.models] == [model.budget for model in config.models]


@pytest.mark.parametrize("location", ["s3://bucket/runs", "gs://bucket", "file:///shared/runs", None])
def test_places_that_a_cluster_sees(location: str | None):
    """Object stores, and a shared file system that is named by its URI."""
    refuse_local("out", location)


@pytest.mark.parametrize("location", ["runs", "/shared/runs", "~/runs", "memory://runs"])
def test_places_that_it_does_not_see(location: str):
    """A plain path may be on this disk alone, and memory is this process's."""
    with pytest.raises(UsageError, match=f"^cache {location!r} is on this machine.* file:///shared/runs$"):
        refuse_local("cache", location)


@pytest.mark.parametrize("run", ["quickstart", "2024.run_1", "a" * 120, "x--y.", "0"])
def test_names_that_kubernetes_takes(run: str):
    """Short, of letters, digits and hyphens, and of a run's whole URI, so that two of one name do not meet."""
    name = job_name(f"s3://a/{run}")
    assert re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])", name)
    assert len(name) <= NAME
    assert name != job_name(f"s3://b/{run}")


def test_a_rayjob_offers_what_workers_ask_for():
    """Resources of a worker are offered by each pod once for each of its processors."""
    pods = Pods("image", None, resources={"eval": 1})
    job = ray_job("s3://b/r", ["trunchray", "run", "s3://b/r.yaml"], pods, metadata={}, ends_within=20)
    (workers,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (offered,) = shlex.split(workers["rayStartParams"]["resources"])
    assert json.loads(offered) == {"eval": 4}


def test_what_kuberay_would_change():
    """It hands the command through two shells, so a place that needs quotes is refused."""
    with pytest.raises(UsageError, match=r"^'s3://b/\$x/run\.yaml' cannot be handed to KubeRay"):
        ray_job("s3://b/r", ["trunchray", "run", "s3://b/$x/run.yaml"], Pods("i", None), metadata={}, ends_within=20)


@pytest.mark.parametrize(
    "given", [{"namespace": "BAD NS"}, {"namespace": ""}, {"namespace": "a.b"}, {"secrets": ["fine", "Bad_Name"]}]
)
def test_names_that_kubernetes_would_refuse_are_refused(given: dict[str, Any]):
    """Before a RayJob is written that cannot be applied."""
    Pods("i", "evals", ["model-keys", "store.keys"])
    with pytest.raises(UsageError, match=r"^--(namespace|secret) '.*': Kubernetes takes names of small letters"):
        Pods("i", **({"namespace": None} | given))
