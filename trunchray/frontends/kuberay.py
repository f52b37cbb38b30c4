"""The RayJob that has KubeRay start a cluster for one run, drive the run on it, and take the cluster down.

The same command drives the run on each cluster, so one that KubeRay starts in place of a lost one goes on with it.
`cluster/kuberay/rayjob.yaml` is an example of what comes out; what it says of the fields is not repeated here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from trunchray.core.digest import sha256
from trunchray.errors import UsageError

RAY_VERSION = "2.60.0"
"""Of the image that `cluster/Dockerfile` makes."""
POD_CPUS = 4
"""Processors of a worker's pod."""
NAME = 47
"""Characters that KubeRay lets the name of a RayJob have."""

_SPOT = (("cloud.google.com/gke-spot", "true"), ("kubernetes.azure.com/scalesetpriority", "spot"), ("spot", "true"))
"""The taints of nodes that may be taken away at any moment; the last is for providers that set none."""

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""What names in Kubernetes are made of."""
_NAMES = "Kubernetes takes names of small letters, digits and '-', which begin and end with a letter or digit"


@dataclass(frozen=True)
class Pods:
    """What the pods of a RayJob are made of."""

    image: str
    namespace: str | None
    secrets: Sequence[str] = ()
    """Names of Kubernetes secrets whose entries become environment variables: the models' keys, the store's."""
    count: int = 2
    """Pods of workers."""
    resources: Mapping[str, float] = field(default_factory=dict[str, float])
    """What trunchray asks of a node for each processor that it takes there; each pod offers it for all of its own."""

    def __post_init__(self) -> None:
        """Refuse names that Kubernetes would.

        Raises:
            UsageError: one of them is none.
        """
        if self.namespace is not None and not re.fullmatch(_LABEL, self.namespace):
            raise UsageError(f"--namespace {self.namespace!r}: {_NAMES}, up to 63 characters")
        for name in self.secrets:
            if not re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", name):
                raise UsageError(f"--secret {name!r}: {_NAMES}, of which dots may join several")


def job_name(run: str) -> str:
    """The name of the RayJob of a run, by its URI: the same run always gets the same one."""
    slug = re.sub("[^a-z0-9]+", "-", run.rpartition("/")[2]).strip("-")
    tail = f"-{sha256(run.encode())[:8]}"
    return (slug if slug[:1].isalpha() else f"run-{slug}")[: NAME - len(tail)].rstrip("-") + tail


def ray_job(
    run: str, command: Sequence[str], pods: Pods, *, metadata: Mapping[str, str], ends_within: int
) -> dict[str, Any]:
    """The RayJob of a run; `metadata` is for those who list jobs, `ends_within` the seconds its driver may take to end.

    Raises:
        UsageError: the command holds what KubeRay, which hands it through two shells, would change.
    """
    for word in command:
        if shlex.quote(word) != word:
            raise UsageError(
                f"{word!r} cannot be handed to KubeRay: name places with letters, digits and -._~/:@+=% only"
            )
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": job_name(run),
            **({"namespace": pods.namespace} if pods.namespace else {}),
            "labels": {"app.kubernetes.io/name": "trunchray"},
        },
        "spec": {
            "entrypoint": " ".join(command),
            "metadata": dict(metadata),
            "runtimeEnvYAML": yaml.safe_dump({"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(ends_within)}}),
            "backoffLimit": 3,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 300,
            "submitterPodTemplate": {"spec": _pod(pods, "submitter", {"cpu": "1", "memory": "1Gi"})},
            "rayClusterSpec": cluster(pods),
        },
    }


def cluster(pods: Pods) -> dict[str, Any]:
    """A cluster whose head runs no trials, as the driver is there, and of a fixed number of workers' pods."""
    offered = {name: POD_CPUS * amount for name, amount in pods.resources.items()}
    worker = _pod(pods, "worker", {"cpu": str(POD_CPUS), "memory": "8Gi"})
    worker["terminationGracePeriodSeconds"] = 60
    worker["tolerations"] = [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"} for key, value in _SPOT
    ]
    return {
        "rayVersion": RAY_VERSION,
        "authOptions": {"mode": "token"},
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "template": {"spec": _pod(pods, "head", {"cpu": "2", "memory": "4Gi"})},
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": pods.count,
                "minReplicas": pods.count,
                "maxReplicas": pods.count,
                "rayStartParams": {"resources": json.dumps(json.dumps(offered))} if offered else {},
                "template": {"spec": worker},
            }
        ],
    }


def _pod(pods: Pods, name: str, room: Mapping[str, str]) -> dict[str, Any]:
    """A pod that may do nothing but compute: no root, no powers, no disk but /tmp, no word with Kubernetes."""
    container: dict[str, Any] = {
        "name": name,
        "image": pods.image,
        "resources": {"requests": dict(room), "limits": dict(room)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a volume of the pod's own
    }
    if pods.secrets:
        container["envFrom"] = [{"secretRef": {"name": secret}} for secret in pods.secrets]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}}],
    }


def text(manifest: Mapping[str, Any]) -> str:
    """A manifest as YAML."""
    return yaml.safe_dump(manifest, sort_keys=False, width=120)
