"""Commands about runs that were handed to clusters: jobs, logs, stop."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output, heard
from trunchray.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.adapters.ray_jobs import RayJob, RayJobs

ADDRESS = "RAY_API_SERVER_ADDRESS"
"""The environment variable that names a cluster where --address does not."""
LOOK_EVERY = 0.5
"""Seconds between two questions to a cluster."""
ENDED_WITHIN = 10.0
"""Seconds after the last line of a log in which a job is said to have ended."""

_FAILED = {
    2: "refused, nothing ran",
    3: "incomplete, or complete with errors; the same command continues",
    126: "no command `trunchray` on the cluster's head",
    127: "no command `trunchray` on the cluster's head",
    None: "lost with its node, the same command continues",
}
"""What became of a job that failed, by its exit code; None when it has none."""

Address = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help=f"The dashboard of the cluster's head, http://HEAD:8265; by default what {ADDRESS} holds."
    ),
]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, as `submit` and `jobs` show it.")]


def register(app: typer.Typer) -> None:
    for command in (jobs, logs, stop):
        app.command()(command)


def jobs(address: Address = None, json: Json = False) -> None:
    """List the runs that were submitted to a cluster. The oldest comes first.

    Example: trunchray jobs --address http://head:8265
    """
    from trunchray.adapters.ray_jobs import RayJobs

    output = Output(as_json=json)
    where = address_of(address)
    found = RayJobs(where).all()
    value: list[JsonValue] = [described(job) for job in found]

    def show(console: Console) -> None:
        if found:
            _show_jobs(console, found)
        else:
            console.print(f"no run was submitted to {where}")

    output.result({"jobs": value}, show)


def logs(
    job: JobId,
    address: Address = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    json: Json = False,
) -> None:
    """Show what a job says. With --follow, exit as its run does: 0 done, 2 refused, 3 incomplete.

    Example: trunchray logs quickstart-1 --follow --address http://head:8265
    """
    from trunchray.adapters.ray_jobs import RayJobs
    from trunchray.core.printable import printable

    output = Output(as_json=json)
    cluster = RayJobs(address_of(address))
    found = cluster.find(job)
    if not follow:
        text = cluster.log(found.id)
        output.result(described(found) | {"log": text}, lambda _: _write(printable(text)))
        return
    text = asyncio.run(_followed(cluster, found.id, None if json else _write))
    found = wait(cluster, found.id, lambda job: not job.alive, within=ENDED_WITHIN)
    if json:
        output.result(described(found) | {"log": text}, lambda _: None)
    if code := exit_code(found):
        output.note(f"job {found.id!r}: {state(found)}")
        raise typer.Exit(code)


def stop(job: JobId, address: Address = None, json: Json = False) -> None:
    """End a job in order. What is finished is stored, and submitting the same again goes on from there.

    Example: trunchray stop quickstart-1 --address http://head:8265
    """
    from trunchray.adapters.ray_jobs import ENDS_WITHIN, RayJobs

    output = Output(as_json=json)
    cluster = RayJobs(address_of(address))
    found = cluster.find(job)
    if found.alive:
        output.note(f"stopping {found.id!r}: its driver stores what is finished …")
        cluster.stop(found.id)
        ended = wait(cluster, found.id, lambda job: not job.alive, within=2 * ENDS_WITHIN)
        if ended.alive:
            raise Interrupted(f"job {ended.id!r} has not ended within {2 * ENDS_WITHIN} s; `trunchray jobs` shows it")
        said = f"{ended.id}: {state(ended)}; submitting the same again goes on from there"
    else:
        ended, said = found, f"{found.id}: it had ended before ({state(found)})"
    output.result(described(ended), lambda console: console.print(said))


def address_of(given: str | None) -> str:
    address = given or os.environ.get(ADDRESS)
    if not address:
        raise UsageError(f"which cluster? Give --address http://HEAD:8265, the dashboard of its head, or set {ADDRESS}")
    return address


def wait(cluster: RayJobs, job_id: str, done: Callable[[RayJob], bool], *, within: float) -> RayJob:
    until = time.monotonic() + within
    while not done(job := cluster.find(job_id)) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
    return job


def state(job: RayJob) -> str:
    """What became of it, in the words that `status` has of runs, as far as exit codes tell."""
    if job.status == "succeeded":
        return "complete"
    if job.status != "failed":
        return job.status
    return _FAILED.get(job.exit_code, f"failed with exit code {job.exit_code}")


def exit_code(job: RayJob) -> int:
    """Of the contract: a driver's own, where it has one."""
    if job.exit_code in {126, 127}:
        return 2
    if job.exit_code is not None and 0 <= job.exit_code <= 4:
        return job.exit_code
    return 0 if job.status == "succeeded" else 3


def described(job: RayJob) -> dict[str, JsonValue]:
    return job.model_dump(mode="json")


async def _followed(cluster: RayJobs, job_id: str, show: Callable[[str], None] | None) -> str:
    from trunchray.core.printable import printable

    pieces: list[str] = []
    async for text in cluster.follow(job_id):
        pieces.append(text)
        if show:
            show(printable(text))
    return "".join(pieces)


def _write(text: str) -> None:
    with heard():
        sys.stdout.write(text)


def _show_jobs(console: Console, found: list[RayJob]) -> None:
    from trunchray.cli.screen import Line, fitted

    now = datetime.now(UTC)
    columns = [("began", 2), ("took", 1), ("run", 3), ("state", 0)]
    console.print(fitted(console, "job", columns, [Line(job.id, _cells(job, now)) for job in found]))


def _cells(job: RayJob, now: datetime) -> list[str]:
    from trunchray.core.wording import duration

    began = job.began.astimezone().strftime("%Y-%m-%d %H:%M") if job.began else "–"
    took = duration(((job.ended or now) - job.began).total_seconds()) if job.began else "–"
    return [began, took, job.run, state(job)]
