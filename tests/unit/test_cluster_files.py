"""What stands in cluster/ is of the form that each tool reads, and of the versions that the tests run with."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from trunchray.adapters.ray_jobs import ENDS_WITHIN, RUN
from trunchray.frontends.kuberay import RAY_VERSION, Pods, ray_job

CLUSTER = Path(__file__).parents[2] / "cluster"
MANIFESTS = sorted((CLUSTER / "kuberay").glob("*.yaml"))
RAY_UP = [CLUSTER / "aws.yaml", CLUSTER / "gcp.yaml"]
IMAGE = f"REGISTRY/trunchray:{version('trunchray')}"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def mapping(required: str, optional: str = "", **members: Any) -> dict[str, Any]:
    """The schema of a mapping that has these keys and no others."""
    keys = [*required.split(), *optional.split()]
    properties = {key: members.get(key, {}) for key in keys}
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def listed(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": item}


CONTAINER = mapping("name image resources securityContext volumeMounts", "env envFrom")
POD = mapping(
    "containers securityContext volumes",
    "restartPolicy automountServiceAccountToken terminationGracePeriodSeconds tolerations",
    containers=listed(CONTAINER),
)
PODS = {"rayStartParams": {"additionalProperties": {"type": "string"}}, "template": mapping("spec", spec=POD)}
RAY_CLUSTER = mapping(
    "rayVersion headGroupSpec workerGroupSpecs",
    "authOptions enableInTreeAutoscaling autoscalerOptions",
    headGroupSpec=mapping("rayStartParams template", **PODS),
    workerGroupSpecs=listed(mapping("groupName replicas minReplicas maxReplicas rayStartParams template", **PODS)),
)
RAY_JOB = mapping(
    "entrypoint rayClusterSpec",
    "metadata runtimeEnvYAML backoffLimit shutdownAfterJobFinishes ttlSecondsAfterFinished submitterPodTemplate",
    rayClusterSpec=RAY_CLUSTER,
    submitterPodTemplate=mapping("spec", spec=POD),
    metadata={"additionalProperties": {"type": "string"}},
)
KINDS = {"RayJob": RAY_JOB, "RayCluster": RAY_CLUSTER}
"""What KubeRay's `ray.io/v1` documents, as far as it is used here."""


def pods(found: Any) -> list[dict[str, Any]]:
    """Every pod's spec in a manifest."""
    if isinstance(found, list):
        return [pod for one in found for pod in pods(one)]
    if not isinstance(found, dict):
        return []
    here = [found] if "containers" in found else []
    return here + [pod for one in found.values() for pod in pods(one)]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_kuberay_reads_the_manifests(path: Path):
    """Each has the fields that KubeRay knows, under a name that it takes."""
    manifest = read(path)
    assert manifest["apiVersion"] == "ray.io/v1"
    assert re.fullmatch("[a-z]([a-z0-9-]{0,45}[a-z0-9])?", manifest["metadata"]["name"])
    jsonschema.validate(manifest["spec"], KINDS[manifest["kind"]])


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_pods_may_do_nothing_but_compute(path: Path):
    """No root, no further powers, no disk but a volume at /tmp, no more memory than asked for, keys from secrets."""
    found = pods(read(path)["spec"])
    assert found
    for pod in found:
        assert pod["restartPolicy"] == "Never"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["volumes"] == [{"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}}]
        for container in pod["containers"]:
            powers = container["securityContext"]
            assert (powers["allowPrivilegeEscalation"], powers["readOnlyRootFilesystem"]) == (False, True)
            assert powers["capabilities"] == {"drop": ["ALL"]}
            assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
            assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]
            assert all("valueFrom" in variable for variable in container.get("env", []))


def test_the_example_is_what_is_written():
    """cluster/kuberay/rayjob.yaml says, with its comments, what `submit --kuberay` writes."""
    example = read(CLUSTER / "kuberay" / "rayjob.yaml")
    run, command = "s3://bucket/runs/quickstart", shlex.split(example["spec"]["entrypoint"])
    ours = Pods(IMAGE, None, ["trunchray"])
    assert example == ray_job(run, command, ours, metadata={RUN: run}, ends_within=ENDS_WITHIN)


@pytest.mark.parametrize("path", RAY_UP, ids=lambda path: path.stem)
def test_ray_up_reads_its_files(path: Path):
    """Ray's own schema takes them; the head holds no worker, and the files no key."""
    spec = find_spec("ray")
    assert spec
    assert spec.origin
    schema = json.loads((Path(spec.origin).parent / "autoscaler" / "ray-schema.json").read_text(encoding="utf-8"))
    config = read(path)
    jsonschema.validate(config, schema)
    assert config["head_node_type"] in config["available_node_types"]
    assert config["available_node_types"][config["head_node_type"]]["resources"] == {"CPU": 0}
    assert "--num-cpus=0" in config["head_start_ray_commands"][-1]
    assert any("--env-file" in option for option in config["docker"]["run_options"])


def test_versions_are_the_ones_that_are_tested():
    """One version of Ray and of trunchray stands in all files, and the image installs what constraints.txt pins."""
    constraints = (CLUSTER.parent / "constraints.txt").read_text(encoding="utf-8")
    pinned = re.search(r"^ray==(.+)$", constraints, re.MULTILINE)
    assert pinned
    assert pinned[1] == RAY_VERSION
    for path in (*MANIFESTS, *RAY_UP, CLUSTER / "Dockerfile", CLUSTER / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"trunchray:([0-9.]+\d)", text)) <= {version("trunchray")}, path.name
        assert set(re.findall(r"rayVersion: (\S+)", text)) <= {RAY_VERSION}, path.name
    assert "-c /src/constraints.txt" in (CLUSTER / "Dockerfile").read_text(encoding="utf-8")


def test_the_image():
    """It is built of pinned parts, for any processor, runs as nobody in particular, and keeps all it writes in /tmp."""
    text = re.sub(r"\\\n", " ", (CLUSTER / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    known = {"FROM", "COPY", "ARG", "RUN", "ENV", "USER", "WORKDIR", "CMD"}
    assert {word for word, _ in lines} <= known
    bases = {rest.split()[0] for word, rest in lines if word == "FROM"}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.1[1-3]-slim-\w+", bases.pop())
    assert [rest for word, rest in lines if word == "USER"] == ["1000:1000"]
    env = dict(pair.split("=", 1) for word, rest in lines if word == "ENV" for pair in rest.split())
    assert (env["HOME"], env["TMPDIR"]) == ("/tmp", "/tmp")
    sources = [name for word, rest in lines if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    ignored = (CLUSTER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    for name in sources:
        assert (CLUSTER.parent / name).exists(), name
        assert f"!{name}" in ignored


STUB = """#!/bin/bash
echo "${0##*/} $*" >> "$CALLS"
case "${0##*/} $*" in
  "scontrol show"*) printf 'n1\\nn2\\nn3\\n';;
  srun*) while (($# )) && [ "$1" != bash ]; do shift; done; exec "$@";;
  "trunchray run"*) trap 'exit 3' TERM; touch "$CALLS.begun"; if [ "$2" = hangs ]; then sleep 30 & wait; fi;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The environment of a Slurm job of three nodes, on none: its commands write down how they are called."""
    for name in ("scontrol", "srun", "ray", "trunchray"):
        (tmp_path / name).write_text(STUB, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_NUM_NODES": "3", "SLURM_CPUS_PER_TASK": "4"}
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"), "HOME": str(tmp_path), **job}


def test_the_slurm_script(slurm: dict[str, str]):
    """A head with one processor less, workers on the other nodes, one driver, whose exit code is the job's."""
    command = ["bash", CLUSTER / "slurm.sh", "run.yaml"]
    done = subprocess.run(command, env=slurm, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    calls = Path(slurm["CALLS"]).read_text(encoding="utf-8")
    assert "ray start --head --port=20007 --num-cpus=3 --include-dashboard=false --block\n" in calls
    assert "ray start --address=n1:20007 --num-cpus=4 --block\n" in calls
    assert "srun --nodes=2 --ntasks=2 --exclude=n1 bash" in calls
    assert "trunchray run run.yaml --address n1:20007\n" in calls


def test_a_slurm_job_that_is_stopped(slurm: dict[str, str]):
    """SIGTERM reaches the driver, which ends in order and says that the run is incomplete."""
    job = subprocess.Popen(["bash", CLUSTER / "slurm.sh", "hangs"], env=slurm, start_new_session=True)
    begun = Path(slurm["CALLS"] + ".begun")
    while not begun.exists():
        assert job.poll() is None
        threading.Event().wait(0.02)  # the job is another process: there is nothing to wait on but its files
    job.terminate()
    assert job.wait(30) == 3
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
