"""Commands that run and read: run, status, report."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trunchray.cli.options import (
    AllowUnpriced,
    Attempts,
    BudgetTokens,
    BudgetUsd,
    Json,
    Models,
    Out,
    RunName,
    RunUri,
    Sample,
    Takeover,
    Target,
    Yes,
)
from trunchray.cli.output import Output
from trunchray.errors import Interrupted

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.cli.job import Job
    from trunchray.core.report import Report
    from trunchray.engine.progress import Snapshot

ENDS_WITHIN = 9.0
"""Seconds after a signal at which a run ends, finished or not: those that stop processes kill them after ten."""

Where = Literal["auto", "local", "ray"]


def register(app: typer.Typer) -> None:
    app.command()(run)
    app.command()(status)
    app.command()(report)


def run(
    target: Target,
    model: Models = None,
    out: Out = None,
    run_id: RunName = None,
    attempts: Attempts = None,
    sample: Sample = None,
    pool: Annotated[
        Where | None, typer.Option(help="Where trials run; auto takes Ray for more than 1,000 trials.")
    ] = None,
    address: Annotated[str | None, typer.Option(metavar="ADDR", help="A Ray cluster to use.")] = None,
    takeover: Takeover = False,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    allow_unpriced: AllowUnpriced = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what the run will cost; with --pilot, after the pilot.")
    ] = False,
    pilot: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Run N trials of each model, estimate the rest from them, then go on."),
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Run a benchmark against models.

    The same command continues a run that was interrupted, and extends a finished one.

    Example: trunchray run configs/quickstart.yaml

    Example: trunchray run benchmarks/arithmetic --model openai/gpt-4o-mini --sample 50
    """
    from trunchray.cli.cost import CostCheck
    from trunchray.cli.job import prepare

    output = Output(as_json=json)
    job = prepare(
        target,
        models=model or [],
        out=out,
        run_id=run_id,
        attempts=attempts,
        sample=sample,
        pool=pool,
        budget={"usd": budget_usd, "tokens": budget_tokens},
        allow_unpriced=allow_unpriced,
        note=output.note,
    )
    cost = CostCheck(output, job, yes=yes)
    drive = partial(_drive, output, job, address=address, takeover=takeover)
    if pilot is not None and cost.pilot(pilot) and drive(pilot=pilot).stopped:
        raise Interrupted("stopped during the pilot; what is finished is stored, the same command continues")
    if estimate:
        cost.show()
        return
    cost.rest(began=pilot is not None)
    driven = drive()
    _show(output, driven.report, job.run_uri)
    _judge(output, driven, job)


def status(
    run_uri: RunUri,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Look on until the run is complete, or waits for somebody to go on (exit 3)."),
    ] = False,
    json: Json = False,
) -> None:
    """Show how far a run is and what blocks it. Reads only the store, so it works from anywhere.

    Example: trunchray status runs/quickstart

    Example: trunchray status s3://bucket/runs/quickstart --watch
    """
    from trunchray.cli.states import StatusView
    from trunchray.cli.watching import Watch, described
    from trunchray.engine.status import StatusReader, read_status

    output = Output(as_json=json)
    if not watch:
        found = read_status(run_uri)
        output.result(described(found), lambda console: StatusView(console, found).show())
        return
    with suppress(KeyboardInterrupt):  # whoever has seen enough has done nothing wrong
        if Watch(output, StatusReader(run_uri))().state == "waiting":
            raise typer.Exit(3)


def report(run_uri: RunUri, json: Json = False) -> None:
    """Count a run's rows anew, rewrite its report and show it.

    Example: trunchray report runs/quickstart
    """
    from trunchray.engine.launch import report_again

    output = Output(as_json=json)
    _show(output, report_again(run_uri, output.warn), run_uri)


def _show(output: Output, outcome: Report, run_uri: str) -> None:
    value: dict[str, JsonValue] = outcome.model_dump(mode="json") | {"uri": run_uri}

    def show(console: Console) -> None:
        from trunchray.cli.tables import show_report

        show_report(console, outcome)
        console.print(f"report  {run_uri}/report/report.html")

    output.result(value, show)


@dataclass
class _Driven:
    """How far one drive of a run came."""

    report: Report
    stopped: bool
    last: Snapshot | None
    """None when nothing was left to run."""


def _drive(output: Output, job: Job, *, address: str | None, takeover: bool, pilot: int | None = None) -> _Driven:
    from trunchray.cli.live import LiveProgress
    from trunchray.engine.launch import launch

    with LiveProgress(output) as observer, _stop_on_signal(output) as stop:
        how = job.launch(observer=observer, address=address, takeover=takeover, stop=stop, pilot=pilot)
        outcome = launch(job.spec, job.release, job.inputs, replace(how, command=_command(sys.argv)))
    return _Driven(outcome, stop.is_set(), observer.last)


def _judge(output: Output, driven: _Driven, job: Job) -> None:
    """Exit with 3 when trials of the models that were asked are owed, or when too many of theirs ended in errors."""
    asked, outcome, allowed = {agent.name for agent in job.spec.agents}, driven.report, job.config.max_error_share
    models = [model for model in outcome.models if model.name in asked]
    owed, planned = (sum(getattr(model, name) for model in models) for name in ("not_run", "planned"))
    errors = sum(model.error for model in models)
    if owed:
        output.note(_why_owed(driven, job, owed, planned))
        raise typer.Exit(3)
    if others := outcome.not_run:
        output.note(f"{others:,} trials of models that this command does not name are owed")
    if errors / planned > allowed:
        output.note(
            f"{errors:,} of {planned:,} trials ended in an error, which is no verdict on the model (max_error_share is "
            f"{allowed:g}); the same command asks again those whose cause may be gone"
        )
        raise typer.Exit(3)


def _why_owed(driven: _Driven, job: Job, owed: int, planned: int) -> str:
    reasons = {model.not_run_reason for model in driven.report.models}
    if "budget" in reasons and driven.last and not driven.stopped:
        from trunchray.cli.cost import budget_reached

        return budget_reached(driven.report, driven.last, job.spending)
    why = "stopped" if driven.stopped else "incomplete"
    return f"{why}: {owed:,} of {planned:,} trials are owed; the same command continues"


def _command(argv: Sequence[str]) -> str:
    """The command as it can be given again, without what nobody else should read; empty when we are part of another."""
    if Path(argv[0]).name not in {"trunchray", "main.py", "__main__.py"}:
        return ""
    words = [re.sub(r"://[^/@\s]*@", "://", word) for word in argv[1:] if word not in {"--takeover", "--json"}]
    return shlex.join(["trunchray", *words])


@contextmanager
def _stop_on_signal(output: Output) -> Generator[threading.Event]:
    """A flag that the first SIGINT or SIGTERM sets; a second one interrupts at once, and so does time."""
    stop = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        output.note("stopping: storing what is finished …")
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _last_moment(output, before.keys()):
            yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _last_moment(output: Output, numbers: Collection[int]) -> Generator[None]:
    """Give up some time after a signal, also when it comes while a library keeps us from handling it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    last = threading.Timer(ENDS_WITHIN, _give_up, (output,))
    last.daemon = True

    def watch() -> None:
        while number := os.read(reader, 1)[0]:
            if number in numbers:
                last.start()
                return

    watching = threading.Thread(target=watch, name="trunchray-signals", daemon=True)
    watching.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writer, b"\0")
        watching.join()
        last.cancel()
        for end in (reader, writer):
            os.close(end)


def _give_up(output: Output) -> None:
    """End at once: a store that does not answer would keep us for a minute, and whoever stops us does not wait."""
    output.fail(
        "Interrupted",
        f"stopped; not all that is finished could be stored within {ENDS_WITHIN:.0f} s. What is stored is kept, and "
        "the same command continues",
    )
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(3)
