"""Handing a prepared run over: to the jobs of a cluster that is up, or to Kubernetes."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import typer

from trunchray.adapters import kubectl
from trunchray.adapters.ray_jobs import ENDS_WITHIN, RUN, RayJob, RayJobs
from trunchray.cli.cost import CostCheck
from trunchray.cli.job import Job
from trunchray.cli.output import Output, write_file
from trunchray.cli.submitted import described, exit_code, state, wait
from trunchray.engine.launch import check, is_finished
from trunchray.errors import Interrupted, UsageError
from trunchray.frontends.kuberay import Pods, job_name, ray_job, text
from trunchray.frontends.submission import command, store_config

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

BEGINS_WITHIN = 30.0
"""Seconds that `submit` looks on: most of what is wrong with a cluster shows as the job begins."""
SETTLED = 2.0
"""Seconds that a job runs before it is taken to have begun."""


class Handover(Protocol):
    """One way to hand a run over."""

    def __call__(self, job: Job, *, yes: bool, flags: Mapping[str, bool]) -> None:
        """Do it, and say what came of it. `yes`: the cost is confirmed; `flags` are options of `trunchray run`."""
        ...


class ToJobs:
    """To a cluster that is up, by its address."""

    def __init__(self, output: Output, address: str) -> None:
        self._output, self._cluster = output, RayJobs(address)

    def __call__(self, job: Job, *, yes: bool, flags: Mapping[str, bool]) -> None:
        if is_finished(job.spec, job.release, job.out):
            _show_finished(self._output, job)
            return
        if self._cluster.driving(job.run_uri) is None:
            _confirm(self._output, job, yes=yes, driven=flags["--takeover"])
        config, words = _stored(job, flags)
        submitted, new = self._cluster.submit(job.run_uri, words)
        if new:
            _say_what_nodes_need(self._output, job)
            submitted = self._begun(submitted)
        else:
            self._output.note(f"job {submitted.id!r} does just that already; nothing was submitted")
        self._show(submitted, config, new=new)
        if not submitted.alive:
            raise typer.Exit(exit_code(submitted))

    def _begun(self, job: RayJob) -> RayJob:
        """The job once it is clear that it runs, or that it does not; or as it is after a while."""
        self._output.note(f"job {job.id!r} is submitted; waiting for it to begin …")
        running_since: float | None = None

        def settled(now: RayJob) -> bool:
            nonlocal running_since
            if now.status == "running" and running_since is None:
                running_since = time.monotonic()
            return not now.alive or (running_since is not None and time.monotonic() - running_since >= SETTLED)

        try:
            now = wait(self._cluster, job.id, settled, within=BEGINS_WITHIN)
        except KeyboardInterrupt:
            at = self._at(job)
            raise Interrupted(
                f"interrupted, and job {job.id!r} goes on on the cluster: `trunchray logs {at} --follow` shows what it "
                f"says, `trunchray stop {at}` ends it"
            ) from None
        if now.status == "pending":
            self._output.warn(f"{job.id} has not begun within {BEGINS_WITHIN:.0f} s; is there room on the cluster?")
        if now.status == "failed":
            log = "\n".join(self._cluster.log(job.id).rstrip().splitlines()[-10:])
            self._output.warn(f"{job.id} has ended at once: {state(now)}. It said:\n{log}")
        return now

    def _show(self, job: RayJob, config: str, *, new: bool) -> None:
        at = self._at(job)
        lines = {"job": f"{job.id} ({state(job)})", "run": job.run, "watch": _watch(job.run)}
        lines |= {"logs": f"trunchray logs {at} --follow", "stop": f"trunchray stop {at}"}
        if job.status == "failed":  # there may be no run to watch, and there is nothing to stop
            del lines["watch"], lines["stop"]
        _show(self._output, described(job) | {"config": config, "new": new}, lines)

    def _at(self, job: RayJob) -> str:
        """How other commands name it."""
        return f"{job.id} --address {shlex.quote(self._cluster.address)}"


class ToKubernetes:
    """To KubeRay, which starts a cluster for the run; as a manifest, or at once."""

    def __init__(
        self,
        output: Output,
        image: str | None,
        namespace: str | None,
        secrets: Sequence[str],
        pods: int,
        *,
        file: Path | None,
        apply: bool,
    ) -> None:
        self._output, self._file, self._apply = output, file, apply
        self._is_default = image is None
        self._pods = Pods(image or f"trunchray:{version('trunchray')}", namespace, secrets, pods)

    def __call__(self, job: Job, *, yes: bool, flags: Mapping[str, bool]) -> None:
        run, namespace = job.run_uri, self._pods.namespace
        name = job_name(run)
        if self._apply and is_finished(job.spec, job.release, job.out):
            _show_finished(self._output, job)
            return
        alive = kubectl.alive(name, namespace) if self._apply else None
        if alive:
            raise UsageError(
                f"RayJob {name!r} is already at work on this run; `{_kubectl('delete', 'rayjob', name, namespace)}` "
                "ends it, and submitting again goes on from there"
            )
        # What is only written down may be applied when nobody drives the run any more.
        _confirm(self._output, job, yes=yes, driven=flags["--takeover"] or not self._apply)
        config, words = _stored(job, flags)
        ray = job.config.ray
        pods = replace(self._pods, resources={name: amount / ray.cpus for name, amount in ray.resources.items()})
        manifest = ray_job(run, words, pods, metadata={RUN: run}, ends_within=ENDS_WITHIN)
        written = text(manifest)
        if self._file:
            write_file(self._file, written)
        if self._apply:
            kubectl.apply(written, namespace, anew=alive is False)
        _say_what_nodes_need(self._output, job, secrets=self._pods.secrets)
        if self._is_default:
            self._output.note(f"the pods run the image {self._pods.image}; --image names the one in your registry")
        value: dict[str, JsonValue] = {"rayjob": name, "run": run, "config": config, "manifest": manifest}
        if self._file or self._apply:
            _show(self._output, value, self._lines(name, run))
        else:
            self._output.result(value, lambda console: console.print(written, end=""))

    def _lines(self, name: str, run: str) -> dict[str, str]:
        namespace = self._pods.namespace
        begin = {} if self._apply else {"begin": f"kubectl apply -f {shlex.quote(str(self._file))}"}
        return {
            "rayjob": name,
            "run": run,
            **begin,
            "watch": _watch(run),
            "logs": _kubectl("logs", "-f", f"job/{name}", namespace),
            "stop": _kubectl("delete", "rayjob", name, namespace),
        }


def _confirm(output: Output, job: Job, *, yes: bool, driven: bool) -> None:
    """Refuse what the run itself would refuse; `driven`: it may be that somebody drives it."""
    check(job.spec, job.release, job.out, takeover=driven)
    CostCheck.of(output, job, yes=yes).rest(began=False)


def _stored(job: Job, flags: Mapping[str, bool]) -> tuple[str, list[str]]:
    """The URI of the config that is put on the store, and the command that runs it. The cost is confirmed here."""
    config = store_config(job.config, job.spec, job.recorded, out=job.out, cache=job.cache)
    return config, command(config, ["--yes", *(flag for flag, given in flags.items() if given)])


def _say_what_nodes_need(output: Output, job: Job, secrets: Sequence[str] | None = None) -> None:
    """`secrets` of the pods, where the nodes are pods."""
    keys = sorted({name for agent in job.spec.agents for name in agent.key_names})
    if keys and secrets == []:
        literals = " ".join(f"--from-literal={key}=…" for key in keys)
        output.warn(
            f"the pods will lack {', '.join(keys)}, as no --secret is given; `kubectl create secret generic NAME "
            f"{literals}` makes one"
        )
    elif keys:
        where = f"the secrets {', '.join(secrets)}" if secrets else "the environment of the cluster's nodes"
        named = ", ".join(key if key in os.environ else f"{key} (not set here, which does not matter)" for key in keys)
        output.note(f"keys are read from {where}: {named}")
    for agent in job.spec.agents:
        if agent.base_url and urlsplit(agent.base_url).hostname in {"localhost", "127.0.0.1", "::1"}:
            output.warn(f"model {agent.name!r}: on a cluster, {agent.base_url} is each node itself")


def _show_finished(output: Output, job: Job) -> None:
    """Nobody has to do anything."""
    output.note("complete: all its trials are counted already, nothing was submitted")
    lines = {"run": job.run_uri, "report": f"{job.run_uri}/report/report.html"}
    _show(output, {"id": None, "new": False, **lines}, lines)


def _show(output: Output, value: dict[str, JsonValue], lines: Mapping[str, str]) -> None:
    def show(console: Console) -> None:
        for name, said in lines.items():
            console.print(f"{name:<6} {said}")

    output.result(value, show)


def _watch(run: str) -> str:
    return f"trunchray status {shlex.quote(run)} --watch"


def _kubectl(*words: str | None) -> str:
    """A command, whose last word is the namespace, None for kubectl's own."""
    *rest, namespace = words
    return " ".join(["kubectl", *(word for word in rest if word), *([f"-n {namespace}"] if namespace else [])])
