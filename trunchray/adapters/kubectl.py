"""Kubernetes, as far as `kubectl` on this machine reaches it, with the context it is set to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from trunchray.errors import UsageError

PATIENCE = 30
"""Seconds that Kubernetes may take to answer."""


def alive(name: str, namespace: str | None) -> bool | None:
    """Whether the RayJob of that name is still at work; None when there is none.

    Raises:
        UsageError: as `kubectl`.
    """
    said = _kubectl(["get", "rayjob", name, "-o", "json", "--ignore-not-found", *_in(namespace)])
    if not said.strip():
        return None
    found: dict[str, Any] = json.loads(said)
    return found.get("status", {}).get("jobDeploymentStatus") not in {"Complete", "Failed"}


def apply(manifest: str, namespace: str | None, *, anew: bool) -> None:
    """Create what a manifest describes. `anew`: there is one, which has ended and is put away first.

    Raises:
        UsageError: as `kubectl`.
    """
    verb = ["replace", "--force"] if anew else ["apply"]
    _kubectl([*verb, "-f", "-", *_in(namespace)], manifest)


def _in(namespace: str | None) -> list[str]:
    return [f"--namespace={namespace}"] if namespace else []


def _kubectl(arguments: Sequence[str], content: str = "") -> str:
    """What kubectl prints.

    Raises:
        UsageError: it is not installed, cannot reach Kubernetes, or is refused there.
    """
    command = ["kubectl", *arguments, f"--request-timeout={PATIENCE}s"]
    try:
        done = subprocess.run(command, input=content, capture_output=True, text=True, check=False)
    except OSError as e:
        raise UsageError(
            f"kubectl cannot be run ({e.strerror}); install it, or write the manifest with --output FILE and apply it "
            "where kubectl is"
        ) from e
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UsageError(f"kubectl {arguments[0]}: {said[-1]}; is its context the right one, and KubeRay installed?")
    return done.stdout
