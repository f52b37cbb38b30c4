"""Handing runs to clusters: submit."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from trunchray.cli.options import (
    AllowUnpriced,
    Attempts,
    BudgetTokens,
    BudgetUsd,
    Json,
    Models,
    RunName,
    Sample,
    Takeover,
    Target,
    Yes,
)
from trunchray.cli.output import Output
from trunchray.cli.submitted import Address, address_of, described, exit_code, state, wait

if TYPE_CHECKING:
    from rich.console import Console

    from trunchray.adapters.ray_jobs import RayJob, RayJobs
    from trunchray.cli.job import Job

BEGINS_WITHIN = 30.0
"""Seconds that `submit` looks on: most of what is wrong with a cluster shows as the job begins."""
SETTLED = 2.0
"""Seconds that a job runs before it is taken to have begun."""


def register(app: typer.Typer) -> None:
    app.command()(submit)


def submit(
    target: Target,
    address: Address = None,
    model: Models = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="Where runs are kept: s3://…, or file://… for a file system that nodes share."
        ),
    ] = None,
    run_id: RunName = None,
    attempts: Attempts = None,
    sample: Sample = None,
    takeover: Takeover = False,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    allow_unpriced: AllowUnpriced = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Have a Ray cluster run a benchmark against models. This machine is not needed any more then.

    The benchmark is compiled here, and what the cluster needs is put on the store. Keys are not: the cluster's nodes
    have them in their environment. Submitting the same again goes on with a run that was interrupted.

    Example: trunchray submit run.yaml --out s3://bucket/runs --address http://head:8265
    """
    from trunchray.adapters.ray_jobs import RayJobs
    from trunchray.cli.cost import CostCheck
    from trunchray.cli.job import prepare
    from trunchray.engine.launch import check
    from trunchray.frontends.submission import command, store_config

    output = Output(as_json=json)
    where = address_of(address)
    cluster = RayJobs(where)
    job = prepare(
        target,
        models=model or [],
        out=out,
        run_id=run_id,
        attempts=attempts,
        sample=sample,
        pool="ray",
        budget={"usd": budget_usd, "tokens": budget_tokens},
        allow_unpriced=allow_unpriced,
        note=output.note,
        here=False,
    )
    if cluster.driving(job.run_uri) is None:
        check(job.spec, job.release, job.out, takeover=takeover)
        CostCheck(output, job, yes=yes).rest(began=False)
    flags = {"--yes": True, "--allow-unpriced": allow_unpriced, "--takeover": takeover}
    config = store_config(job.config, job.spec, job.recorded, out=job.out, cache=job.cache)
    submitted, new = cluster.submit(job.run_uri, command(config, [flag for flag, given in flags.items() if given]))
    if new:
        _say_what_nodes_need(output, job)
        submitted = _begun(output, cluster, submitted)
    else:
        output.note(f"job {submitted.id!r} does just that already; nothing was submitted")
    _show_submitted(output, submitted, config, where, new=new)
    if not submitted.alive:
        raise typer.Exit(exit_code(submitted))


def _say_what_nodes_need(output: Output, job: Job) -> None:
    keys = sorted({name for agent in job.spec.agents for name in agent.key_names})
    if keys:
        named = ", ".join(
            name if name in os.environ else f"{name} (not set here, which does not matter)" for name in keys
        )
        output.note(f"the cluster's nodes have to have in their environment: {named}")
    for agent in job.spec.agents:
        if agent.base_url and _is_loopback(agent.base_url):
            output.warn(f"model {agent.name!r}: {agent.base_url} is another machine on each node of a cluster: itself")


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}


def _begun(output: Output, cluster: RayJobs, job: RayJob) -> RayJob:
    """The job once it is clear that it runs, or that it does not; or as it is after a while."""
    output.note(f"job {job.id!r} is submitted; waiting for it to begin …")
    running_since: float | None = None

    def settled(now: RayJob) -> bool:
        nonlocal running_since
        if now.status == "running" and running_since is None:
            running_since = time.monotonic()
        return not now.alive or (running_since is not None and time.monotonic() - running_since >= SETTLED)

    now = wait(cluster, job.id, settled, within=BEGINS_WITHIN)
    if now.status == "pending":
        output.warn(f"job {job.id!r} has not begun within {BEGINS_WITHIN:.0f} s; does the cluster have room for it?")
    if now.status == "failed":
        output.warn(f"job {job.id!r} has ended at once: {state(now)}. It said:\n{_tail(cluster.log(job.id))}")
    return now


def _tail(log: str, lines: int = 10) -> str:
    return "\n".join(log.rstrip().splitlines()[-lines:])


def _show_submitted(output: Output, job: RayJob, config: str, address: str, *, new: bool) -> None:
    run, at = shlex.quote(job.run), f"{job.id} --address {shlex.quote(address)}"
    lines = {
        "job": f"{job.id} ({state(job)})",
        "run": job.run,
        "watch": f"trunchray status {run} --watch",
        "logs": f"trunchray logs {at} --follow",
        "stop": f"trunchray stop {at}",
    }

    def show(console: Console) -> None:
        for name, text in lines.items():
            console.print(f"{name:<6} {text}")

    output.result(described(job) | {"config": config, "new": new}, show)
