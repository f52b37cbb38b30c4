"""A cluster that is started with `ray start`, and runs that are submitted to it and need nothing of this disk."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from support.releases import make_release
from support.s3 import Bucket
from support.s3_faults import FaultyStore
from trunchray.adapters.store import Store

PROGRAMS = Path(sys.executable).parent
PORTS = (
    *("port", "dashboard-port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port", "runtime-env-agent-port"),
    *("metrics-export-port", "ray-client-server-port", "node-manager-port", "object-manager-port"),
)


class Head:
    """The head of a cluster of one node with two processors, which wants a token."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="ray-")  # a short name: Ray's sockets are in it
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self.address = f"http://127.0.0.1:{ports['dashboard-port']}"
        self.where = f"127.0.99.2:{ports['port']}"
        """What a driver connects to."""
        self.token = secrets.token_hex(16)
        self._ports = ports

    def start(self) -> None:
        command = [PROGRAMS / "ray", "start", "--head", "--node-ip-address=127.0.99.2", "--dashboard-host=127.0.0.1"]
        command += ["--num-cpus=2", "--min-worker-port=0", "--max-worker-port=0", f"--temp-dir={self._folder}"]
        command += [f"--{name}={port}" for name, port in self._ports.items()]
        environment = os.environ | {
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",  # the driver is found on it
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_TMPDIR": self._folder,
            "RAY_USAGE_STATS_ENABLED": "0",
            # A busy machine is no failure.
            "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "200",
            "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": "200",
            "RAY_raylet_start_wait_time_s": "40",
            "RAY_agent_register_timeout_ms": "200000",
        }
        started = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=250)
        if started.returncode:
            raise RuntimeError(f"the cluster does not start:\n{started.stdout}\n{started.stderr}")

    def close(self) -> None:
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _processes(self) -> Iterator[int]:
        """All that were started with our folder in their environment."""
        mark = f"RAY_TMPDIR={self._folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    found = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return found


@pytest.fixture
def head(s3: Bucket, faulty_store: FaultyStore) -> Iterator[Head]:
    """It gets the store's credentials from the environment, as every node does."""
    for last in (False, False, True):  # its node dies when an agent needs more than 15 s to start
        head = Head()
        try:
            head.start()
        except RuntimeError:
            head.close()
            if last:
                raise
            continue
        break
    try:
        yield head
    finally:
        head.close()


def trunchray(head: Head, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which knows of the cluster only its address and its token."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"RAY_API_SERVER_ADDRESS": head.address, "RAY_AUTH_TOKEN": head.token}
    done = subprocess.run(
        [PROGRAMS / "trunchray", *argv], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def submit(head: Head, folder: Path, s3: Bucket, name: str, cases: int, **model: Any) -> dict[str, Any]:
    """A run of one model that says what it is asked; the release is on this disk, and gone when this returns."""
    release = make_release(folder / "release", cases)
    said = {"release": release.uri, "run_id": name, "models": [{"id": "mock/echo", **model}], "shard_size": 8}
    (folder / "run.yaml").write_text(json.dumps(said), encoding="utf-8")
    done = trunchray(head, "submit", str(folder / "run.yaml"), "--out", f"{s3.uri}/runs", "--json")
    shutil.rmtree(folder / "release")
    return json.loads(done.stdout)


def wait_for_rows(run: Store) -> None:
    """Until some trials are stored."""
    for _ in range(600):
        if run.names("parts"):
            return
        Event().wait(0.1)
    raise AssertionError("nothing was run")


@pytest.mark.timeout(900)  # a busy machine starts Ray slowly
def test_runs_on_a_cluster(head: Head, s3: Bucket, tmp_path: Path):
    """Submitted, listed, followed to the end: complete. Stopped in the middle: what is finished counts, it goes on."""
    small = submit(head, tmp_path, s3, "small", 24)
    followed = trunchray(head, "logs", small["id"], "--follow").stdout
    assert f"{s3.uri}/runs/small/report/report.html" in followed
    (listed,) = json.loads(trunchray(head, "jobs", "--json").stdout)["jobs"]
    assert (listed["id"], listed["run"], listed["status"], listed["exit_code"]) == (
        *("small-1", f"{s3.uri}/runs/small", "succeeded", 0),
    )
    summary = json.loads(Store(small["run"]).read("report/summary.json"))
    assert (summary["planned"], summary["models"][0]["passed"]) == (24, 24)

    again = "run", small["config"], "--address", head.where
    assert "complete: all 24 trials are counted already" in trunchray(head, *again).stderr  # without a connection
    refused = trunchray(head, *again, "--attempts", "2", code=2).stderr
    assert f"the cluster at {head.where} wants a token, and Ray sends the one in RAY_AUTH_TOKEN only if" in refused

    slow = submit(head, tmp_path, s3, "slow", 200, mock={"latency": 0.5}, pacing={"max_in_flight": 2})
    wait_for_rows(Store(slow["run"]))
    stopped = trunchray(head, "stop", slow["id"]).stdout
    assert stopped == "slow-1: stopped; submitting the same again goes on from there\n"
    left = json.loads(Store(slow["run"]).read("report/summary.json"))["models"][0]
    assert 0 < left["passed"] < 200
    head.close()

    folder = Store(slow["config"].rpartition("/")[0])
    folder.write("faster.yaml", folder.read("run.yaml").replace(b"max_in_flight: 2", b"max_in_flight: 100"))
    rest = trunchray(head, "run", f"{folder.uri}/faster.yaml", "--pool", "local", "--json")
    assert f"{left['passed']} of 200 trials are counted already" in rest.stderr
    assert json.loads(rest.stdout)["models"][0]["passed"] == 200
