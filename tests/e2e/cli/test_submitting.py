"""Runs that are handed to clusters: what is put where, what is refused, and what is said."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from support.commands import CommandLine
from support.dashboard import Dashboard
from trunchray.adapters.releases import StoredRelease
from trunchray.frontends.kuberay import job_name

KEY = "sk-this-is-a-secret"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    monkeypatch.delenv("RAY_API_SERVER_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:1")  # which Ray would take for the address in place of ours
    with Dashboard() as dashboard:
        yield dashboard


@pytest.fixture
def config(here: Path, release: StoredRelease) -> Path:
    """A run config with relative paths, whose one model answers as recorded."""
    folder = here / "configs"
    folder.mkdir()
    recorded = [json.dumps({"case_id": f"c{n}", "output": f"answer {n}"}) for n in range(8)]
    (folder / "recorded.jsonl").write_text("\n".join(recorded), encoding="utf-8")
    said = {
        "release": f"../{Path(release.uri).relative_to(here)}",
        "run_id": "small",
        "out": (here / "shared").as_uri(),
        "models": [
            {
                "id": "mock/replay",
                "name": "1e3",
                "mock": {"replay": "recorded.jsonl"},
                "price": {"input": 1, "output": 2},
            }
        ],
    }
    (folder / "run.yaml").write_text(json.dumps(said), encoding="utf-8")
    return folder / "run.yaml"


def stored(here: Path) -> dict[str, str]:
    """What is on the shared file system below .jobs, by its path there."""
    jobs = here / "shared" / ".jobs"
    return {str(path.relative_to(jobs)): path.read_text(encoding="utf-8") for path in jobs.glob("*/*")}


def test_a_cluster_needs_nothing_of_this_disk(
    config: Path, here: Path, cluster: Dashboard, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """The job runs one command on a config that stands beside the runs, with its release and its recorded outputs."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cluster.outcome = ("SUCCEEDED", 0)
    said = trunchray("submit", config, "--attempts", 2, "--sample", 6, "--address", cluster.address)
    assert said.code == 0, said.err
    assert said.out.splitlines()[0] == "job    small-1 (complete)"
    for follow_up in ("status", "logs small-1", "stop small-1"):
        assert f"trunchray {follow_up}" in said.out
    (job,) = cluster.jobs.values()
    command, uri, *options = shlex.split(job["entrypoint"])[1:]
    assert (command, options) == ("run", ["--address", "auto", "--yes"])
    assert job["runtime_env"] == {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "20"}}
    assert KEY not in "".join([*cluster.bodies, *stored(here).values()])
    assert len(stored(here)) == 2
    shutil.rmtree(here / "configs")
    shutil.rmtree(here / "releases")
    ran = trunchray("run", uri, "--pool", "local", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["run"], ran.json["planned"], ran.json["models"][0]["passed"]) == ("small", 12, 12)


def test_submitting_twice(config: Path, here: Path, cluster: Dashboard, trunchray: CommandLine):
    """While a job of the run is alive, the same again changes nothing and another is refused; later, it goes on."""
    submit = ("submit", config, "--address", cluster.address)
    first = trunchray(*submit, "--json")
    assert (first.code, first.json["id"], first.json["new"]) == (0, "small-1", True)
    before = stored(here)
    again = trunchray(*submit)
    assert (again.code, len(cluster.jobs), stored(here)) == (0, 1, before)
    assert "job 'small-1' does just that already; nothing was submitted" in again.err
    other = trunchray(*submit, "--attempts", 3)
    assert (other.code, len(cluster.jobs)) == (2, 1)
    assert "job 'small-1' already drives this run, with other settings" in other.err
    cluster.end("small-1", "STOPPED", None)
    cluster.outcome = ("SUCCEEDED", 0)
    third = trunchray(*submit, "--json")
    assert (third.json["id"], third.json["config"]) == ("small-2", first.json["config"])


def test_a_finished_run_is_not_submitted(config: Path, here: Path, cluster: Dashboard, trunchray: CommandLine):
    """It is said where its report is, no job is begun, and nothing is put on the store."""
    assert trunchray("run", config).code == 0
    report = (here / "shared" / "small" / "report" / "report.html").as_posix()
    submit = ("submit", config, "--address", cluster.address)
    said = trunchray(*submit)  # which copies the release to where the run is, as it always does first
    assert said.code == 0, said.err
    before = trunchray.listing()
    for options in ((), ("--kuberay", "--apply")):
        target = submit if not options else ("submit", config, *options)
        again = trunchray(*target, "--json")
        assert (again.code, again.json["report"], again.json["new"]) == (0, report, False), again.err
        assert "complete: all its trials are counted already, nothing was submitted" in again.err
    assert (trunchray.listing(), cluster.jobs) == (before, {})
    trunchray(*submit, "--attempts", 2)
    assert len(cluster.jobs) == 1


@pytest.mark.parametrize(
    ("status", "code", "exits", "says"),
    [
        ("FAILED", 127, 2, "no command `trunchray` on the cluster's head. It said:\nit said\nthis"),
        ("FAILED", 2, 2, "refused, nothing ran"),
        ("FAILED", 3, 3, "incomplete, or complete with errors; the same command continues"),
        ("FAILED", None, 3, "lost with its node"),
        ("FAILED", -9, 3, "failed with exit code -9"),
    ],
)
def test_jobs_that_end_at_once(
    status: str, code: int | None, exits: int, says: str, config: Path, cluster: Dashboard, trunchray: CommandLine
):
    """What is wrong with a cluster is said while somebody still looks on, with an exit code that means the same."""
    cluster.outcome = (status, code)
    said = trunchray("submit", config, "--address", cluster.address)
    assert (said.code, says in said.err) == (exits, True), said.err


def test_what_is_refused_before_anything_is_submitted(
    config: Path, here: Path, cluster: Dashboard, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """Places that a cluster does not see, addresses nobody answers at, and all that `run` refuses."""
    monkeypatch.setenv("TRUNCHRAY_DEBUG", "")
    at = ("--address", cluster.address)
    cases = [
        (
            ("--out", "runs", *at),
            "out 'runs' is on this machine, where a cluster does not see it; name an object store",
        ),
        (("--out", "memory://runs", *at), "out 'memory://runs' is on this machine"),
        (("--out", "runs", "--address", "http://127.0.0.1:1"), "out 'runs' is on this machine"),
        ((), "which cluster? Give --address http://HEAD:8265"),
        (("--address", "head:8265"), "'head:8265' is not the address of a cluster's dashboard; give a URL"),
        (("--address", "http://127.0.0.1:1"), "nobody answers at http://127.0.0.1:1 (Connection refused)"),
        (("--image", "x", *at), "--image belongs to --kuberay; give that, too, or leave it out"),
        (("--kuberay", *at), "--address names a cluster that is up, and --kuberay starts one; leave one out"),
        (("--model", "none", *at), "--model none: the run config has no such model"),
        (("--budget-usd", 1e30, *at), "budget"),
    ]
    for options, message in cases:
        assert message in trunchray.refused("submit", config, *options), options
    config.write_text(config.read_text().replace('"input": 1', '"input": 1000000'))
    said = trunchray("submit", config, *at)
    assert (said.code, "more than confirm_above" in said.err) == (2, True), said.err
    assert cluster.jobs == {}


def test_addresses_of_something_else(cluster: Dashboard, trunchray: CommandLine):
    """A cluster that wants a token, and a server that is no cluster, are named with what to do."""
    cluster.token = "t" * 32
    said = trunchray.refused("jobs", "--address", cluster.address)
    assert re.search(
        "(wants a token|does not accept the token at hand); set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN", said
    )

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        said = trunchray.refused("jobs", "--address", f"http://u:{KEY}@127.0.0.1:{server.server_port}")
        assert "does not answer like the dashboard of a Ray cluster" in said
        assert KEY not in said
        server.shutdown()


def test_looking_after_jobs(config: Path, cluster: Dashboard, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """Jobs are listed, shown and stopped by their ids; the environment may say on which cluster."""
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", cluster.address)
    assert trunchray("jobs").out == f"no run was submitted to {cluster.address}\n"
    cluster.outcome = ("FAILED", 3)
    trunchray("submit", config)
    listed = trunchray("jobs").out
    assert "1:30" in listed
    assert "incomplete, or complete with errors; the same command continues" in listed
    assert trunchray("jobs", "--json").json["jobs"][0]["exit_code"] == 3
    assert trunchray("logs", "small-1").out == cluster.log
    assert trunchray("logs", "small-1", "--json").json["log"] == cluster.log
    assert "no job 'small-2'" in trunchray.refused("logs", "small-2")
    assert "it had ended before (incomplete" in trunchray("stop", "small-1").out
    cluster.jobs["small-1"] |= {"status": "RUNNING", "end_time": None, "driver_exit_code": None}
    stopped = trunchray("stop", "small-1")
    assert (stopped.code, stopped.out) == (0, "small-1: stopped; submitting the same again goes on from there\n")


KUBECTL = """#!/bin/sh
echo "$*" >> calls
case "$1" in
  get) cat state 2>/dev/null || true;;
  *) cat > "$1.yaml"; if [ -e refuses ]; then echo 'error: no matches for kind "RayJob"' >&2; exit 1; fi;;
esac
"""


@pytest.fixture
def kubectl(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that writes down how it is called, in the working directory."""
    program = here / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def test_a_rayjob_is_written(config: Path, here: Path, trunchray: CommandLine, kubectl: Path):
    """To stdout or a file, with the pods that were asked for; kubectl is not touched."""
    submit = (
        "submit",
        config,
        "--kuberay",
        "--secret",
        "keys",
        "--pods",
        3,
        "--image",
        "r/t:1",
        "--namespace",
        "evals",
    )
    manifest = yaml.safe_load(trunchray(*submit).out)
    said = trunchray(*submit, "-o", "job.yaml")
    assert yaml.safe_load((here / "job.yaml").read_text()) == manifest
    assert "begin  kubectl apply -f job.yaml" in said.out
    assert f"kubectl logs -f job/{manifest['metadata']['name']} -n evals" in said.out
    (workers,) = manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (container,) = workers["template"]["spec"]["containers"]
    assert (workers["replicas"], container["image"]) == (3, "r/t:1")
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert manifest["spec"]["entrypoint"].endswith("/run.yaml --address auto --yes")
    assert not (here / "calls").exists()


def test_a_rayjob_is_applied(config: Path, here: Path, trunchray: CommandLine, kubectl: Path):
    """A new one is applied, one that has ended is replaced, one that is at work stays alone, a refusal is told."""
    submit = ("submit", config, "--kuberay", "--apply")
    applied = trunchray(*submit, "--json")
    name = job_name((here / "shared" / "small").as_posix())
    assert (applied.code, applied.json.get("rayjob")) == (0, name), applied.err
    assert yaml.safe_load((here / "apply.yaml").read_text()) == applied.json["manifest"]
    (here / "state").write_text(json.dumps({"status": {"jobDeploymentStatus": "Failed"}}))
    assert trunchray(*submit).code == 0
    (here / "state").write_text(json.dumps({"status": {"jobDeploymentStatus": "Running"}}))
    assert f"RayJob {name!r} is already at work on this run; `kubectl delete rayjob {name}`" in trunchray(*submit).err
    (here / "state").unlink()
    (here / "refuses").touch()
    refused = trunchray(*submit)
    assert (refused.code, 'kubectl apply: error: no matches for kind "RayJob"' in refused.err) == (2, True)
    verbs = [line.split()[0] for line in (here / "calls").read_text().splitlines()]
    assert verbs == ["get", "apply", "get", "replace", "get", "get", "apply"]


def test_there_is_no_kubectl(config: Path, here: Path, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """What to do without it is said."""
    monkeypatch.setenv("PATH", str(here))
    said = trunchray("submit", config, "--kuberay", "--apply")
    assert (said.code, "kubectl cannot be run" in said.err, "--output FILE" in said.err) == (2, True, True)
