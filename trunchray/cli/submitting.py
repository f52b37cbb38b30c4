"""Handing runs to clusters: submit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trunchray.cli.driving import nothing_begun
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
from trunchray.cli.submitted import Address, address_of
from trunchray.errors import UsageError


def register(app: typer.Typer) -> None:
    app.command()(submit)


def submit(
    target: Target,
    address: Address = None,
    kuberay: Annotated[
        bool, typer.Option("--kuberay", help="In place of --address: write a RayJob, which starts a cluster.")
    ] = False,
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
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="KubeRay: what cluster/Dockerfile makes, where you keep it.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="KubeRay: where the RayJob is; else kubectl's.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="KubeRay: a secret whose entries become the pods' environment."),
    ] = None,
    pods: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="KubeRay: pods of four workers each; 2 by default.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="KubeRay: where to write; else to stdout.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="KubeRay: hand the RayJob to kubectl.")] = False,
    json: Json = False,
) -> None:
    """Have a Ray cluster run a benchmark against models. This machine is not needed any more then.

    The benchmark is compiled here, and what the cluster needs is put on the store. Keys are not: the cluster's nodes
    have them in their environment. Submitting the same again goes on with a run that was interrupted.

    Example: trunchray submit run.yaml --address http://head:8265

    Example: trunchray submit run.yaml --out s3://bucket/runs --kuberay --apply
    """
    output = Output(as_json=json)
    ours = {"--image": image, "--namespace": namespace, "--secret": secret, "--pods": pods}
    _check_kind({**ours, "--output": file, "--apply": apply}, address, kuberay=kuberay)

    with nothing_begun():
        from trunchray.cli.handover import Handover, ToJobs, ToKubernetes
        from trunchray.cli.job import configured, prepare

        config = configured(
            target,
            models=model or [],
            out=out,
            run_id=run_id,
            attempts=attempts,
            pool="ray",
            budget={"usd": budget_usd, "tokens": budget_tokens},
            here=False,
        )
        handover: Handover
        if kuberay:
            handover = ToKubernetes(output, image, namespace, secret or [], pods or 2, file=file, apply=apply)
        else:
            handover = ToJobs(output, address_of(address))
        job = prepare(config, sample=sample, allow_unpriced=allow_unpriced, note=output.note, here=False)
    handover(job, yes=yes, flags={"--allow-unpriced": allow_unpriced, "--takeover": takeover})


def _check_kind(ours: dict[str, object], address: str | None, *, kuberay: bool) -> None:
    """Refuse options of the other kind of cluster."""
    if kuberay and address:
        raise UsageError("--address names a cluster that is up, and --kuberay starts one; leave one out")
    for option, value in ours.items():
        if value and not kuberay:
            raise UsageError(f"{option} belongs to --kuberay; give that, too, or leave it out")
