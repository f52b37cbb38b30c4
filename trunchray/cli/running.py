"""Commands that run and read: run, status, report."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trunchray.cli.options import Json, RunUri
from trunchray.cli.output import Output
from trunchray.errors import Interrupted

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.cli.job import Job
    from trunchray.core.report import Report
    from trunchray.engine.progress import Snapshot

Where = Literal["auto", "local", "ray"]


def register(app: typer.Typer) -> None:
    app.command()(run)
    app.command()(status)
    app.command()(report)


def run(
    target: Annotated[
        str, typer.Argument(metavar="CONFIG|RELEASE|PATH", help="A run config (YAML), a release or a repository.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="ID", help="With a config: only these of its models. Else: the models to run."),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="URI", help="Where runs are kept; runs/ by default.")] = None,
    run_id: Annotated[str | None, typer.Option(metavar="NAME", help="The run's name.")] = None,
    attempts: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1000, help="How often each case is tried.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Run only so many cases, drawn by the seed.")
    ] = None,
    pool: Annotated[
        Where | None, typer.Option(help="Where trials run; auto takes Ray for more than 1,000 trials.")
    ] = None,
    address: Annotated[str | None, typer.Option(metavar="ADDR", help="A Ray cluster to use.")] = None,
    takeover: Annotated[bool, typer.Option("--takeover", help="Drive the run even if another process does.")] = False,
    budget_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="The most the run may cost, all its commands together.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="The most tokens it may read and write, likewise.")
    ] = None,
    allow_unpriced: Annotated[
        bool, typer.Option("--allow-unpriced", help="Run models without a price under a budget in dollars.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what the run will cost; with --pilot, after the pilot.")
    ] = False,
    pilot: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Run N trials of each model, estimate the rest from them, then go on."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Spend more than confirm_above without asking.")] = False,
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


def status(run_uri: RunUri, json: Json = False) -> None:
    """Show how far a run is; reads only the store.

    Example: trunchray status runs/quickstart
    """
    from trunchray.cli.tables import show_status
    from trunchray.engine.status import read_status

    output = Output(as_json=json)
    found = read_status(run_uri)
    output.result(found.model_dump(mode="json"), lambda console: show_status(console, found))


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
        console.print(f"report  {run_uri}/report/report.md")

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

    with LiveProgress(output, budget=job.spending.whole) as observer, _stop_on_signal(output) as stop:
        how = job.launch(observer=observer, address=address, takeover=takeover, stop=stop, pilot=pilot)
        outcome = launch(job.spec, job.release, job.inputs, how)
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


@contextmanager
def _stop_on_signal(output: Output) -> Generator[threading.Event]:
    """A flag that the first SIGINT or SIGTERM sets; a second one interrupts at once."""
    stop = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        output.note("stopping: storing what is finished …")
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
