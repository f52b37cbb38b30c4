"""Ray's cluster: connecting to one or starting it, its nodes, and how to ask for more of them.

- Where nobody answers, Ray tries for two minutes and then exits, so we knock first.
- At <host>:<port> it sends a token only with RAY_AUTH_MODE=token; the cluster of this machine that it finds by itself
  (`auto`) gets the token that is at hand.
- `ray.nodes()` does not tell which nodes are draining; only the head's own service does.
- A draining node runs what it has, to whatever deadline, and takes nothing new; when its last actor is gone, it leaves.
  A raylet that gets SIGTERM leaves at once; `ray start --block` that gets one drains for half a minute first.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

# Read by Ray while it is imported and started: no usage reports, no guessing at accelerators.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trunchray.adapters.ray_jobs import how_to_log_in
from trunchray.core.excerpt import excerpt
from trunchray.engine.seating import Node, Seating
from trunchray.errors import Interrupted, UsageError

LOST = RayError
"""What a call raises that did not come back, whyever."""
GONE = (ActorDiedError, ActorUnschedulableError)
"""When what was called will never come back."""
OWN = RayTaskError
"""When what was called raised an error of its own."""
SAME_IMAGE = "use the same image, or the same packages, on every node and where the run is driven"
CONNECT_SECONDS = 5.0
"""That a cluster has to accept a connection."""
TOKEN_WORDS = ("invalidauthtoken", "unauthenticated", "authentication token")


def _leave_signals_alone(_handler: object) -> None:
    """Ray's own handler would end a driver that is stopped while it connects, or make it forget that it was."""


def _keep_to_yourself(*_data: object, **_options: object) -> None:
    """What raylets say of deaths would be among our results on stdout, logs and all; a crew says it in a line."""


_utils: Any = import_module("ray._private.utils")
_utils.set_sigterm_handler = _leave_signals_alone
_driver: Any = import_module("ray._private.worker")
_state: Any = import_module("ray._private.state")
_driver.print_to_stdstream = _keep_to_yourself


def connect(address: str | None) -> bool:
    """Connect to Ray, or start it on this machine; True when this call did, and so has to disconnect.

    Raises:
        UsageError: there is no cluster at `address` that would have us.
        Interrupted: it did not start here.
    """
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        _start_here(options)
        return True
    if address != "auto":
        _knock(address)
    with _overheard() as heard:
        try:
            ray.init(address=address, **options)
        except (Exception, SystemExit) as e:  # what Ray raises then
            with suppress(Exception):
                ray.shutdown()
            raise UsageError(_refused(address, e, heard())) from e
    return True


def nodes() -> list[Node]:
    """The nodes that are there: the head first, which a cluster lasts as long as, then by address."""
    leaving = _draining()
    found = [
        Node(
            id=str(node["NodeID"]),
            address=str(node["NodeManagerAddress"]),
            resources=node["Resources"],
            head="node:__internal_head__" in node["Resources"],
            leaves_at=leaving.get(str(node["NodeID"])),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]
    return sorted(found, key=lambda node: (not node.head, node.address, node.id))


def on_node(node: str) -> Any:
    """The strategy that places an actor there and nowhere else; one that only prefers a node may go anywhere."""
    return NodeAffinitySchedulingStrategy(node, soft=False)


def largest() -> Mapping[str, float] | None:
    """All that an autoscaler may bring the cluster to; None when there is no autoscaler that says so."""
    with suppress(Exception):
        return _state.state.get_max_resources_from_cluster_config()
    return None


def ask_for(workers: int, seating: Seating) -> None:
    """Tell the cluster's autoscaler that there should be room for so many workers; none takes that back.

    The request stays when this process dies, until the next one that asks.
    """
    with suppress(Exception):  # a hint, which nobody may be there to hear
        from ray.autoscaler.sdk import request_resources  # noqa: PLC0415 - few need it

        request_resources(bundles=[seating.needs] * workers)


def _draining() -> dict[str, float]:
    """When each draining node will be gone, in seconds since 1970."""
    with suppress(Exception):  # not answered in time: asked again in a moment
        found: dict[str, int] = _driver.global_worker.gcs_client.get_draining_nodes(timeout=CONNECT_SECONDS)
        return {node: deadline / 1000 if deadline else inf for node, deadline in found.items()}
    return {}


def _knock(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if "://" in address:
        raise UsageError(
            f"address {address!r} is for another client of Ray; give <host>:<port> of the cluster's head, from one "
            "of its nodes, or hand the run over with `trunchray submit`"
        )
    if not (colon and host and port.isdecimal() and int(port) < 2**16):
        raise UsageError(f"address {address!r} is not <host>:<port>, such as 10.0.0.5:6379, nor auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as e:
        reason = e.strerror or str(e)
        raise UsageError(f"nobody answers at {address} ({reason}); {_ADVICE}") from e


_ADVICE = "is the cluster up? Leave out `address` (--address, or ray.address in a config) to use this machine"


@contextmanager
def _overheard() -> Generator[Callable[[], str]]:
    """Keep what Ray's own library writes to stderr, again and again, while it fails to connect: only there is why."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:

        def heard() -> str:
            return os.pread(file.fileno(), 2**20, 0).decode(errors="replace")

        os.dup2(file.fileno(), 2)
        try:
            yield heard
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _refused(address: str, error: BaseException, heard: str) -> str:
    text = str(error)
    if "ersion mismatch" in text:
        which = " ".join(excerpt(text.rpartition("ersion mismatch:")[2], 600).split())
        return f"the cluster at {address} does not go together with this machine: {which}; {SAME_IMAGE}"
    if any(word in (text + heard).lower() for word in TOKEN_WORDS):
        return how_to_log_in(address, os.environ, Path.home())
    reason = "it did not answer as Ray does" if isinstance(error, SystemExit) else excerpt(text.strip(), 300)
    return f"no Ray cluster answers at {address!r} ({reason}); {_ADVICE}"


def _start_here(options: Mapping[str, Any]) -> None:
    """A Ray of our own. On a busy machine it may start more slowly than Ray waits, so it gets a second chance."""
    for last in (False, True):
        try:
            ray.init(address="local", include_dashboard=False, **options)
            return
        except Exception as e:  # what Ray raises then
            ray.shutdown()
            if last:
                reason = str(e).partition(". ")[0]
                raise Interrupted(
                    f"Ray did not start on this machine ({reason}); the same command tries again, "
                    "and --pool local does without"
                ) from e


def absent(package: str) -> str:
    """What to say of a machine that misses a package."""
    return f"the package {package!r} is not installed there; {SAME_IMAGE}"


def told(error: BaseException) -> str:
    """What an error that crossed Ray says, without its traceback."""
    cause: object = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {cause}"
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
