"""Commands that run and read: run, status, report."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.driving import command_given, nothing_begun, stop_on_signal, tell, ungraded
from trunchray.cli.options import (
    Address,
    AllowUnpriced,
    Attempts,
    BudgetTokens,
    BudgetUsd,
    Json,
    Models,
    Out,
    Pool,
    RunName,
    RunUri,
    Sample,
    Takeover,
    Target,
    Yes,
    located,
)
from trunchray.cli.output import Output
from trunchray.errors import Interrupted, ReleaseError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunchray.cli.job import Job
    from trunchray.core.estimate import ModelEstimate
    from trunchray.core.report import Report
    from trunchray.engine.progress import Snapshot


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
    pool: Pool = None,
    address: Address = None,
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
    output = Output(as_json=json)
    with nothing_begun():
        from trunchray.cli.cost import CostCheck
        from trunchray.cli.job import configured, prepare

        config = configured(
            target,
            models=model or [],
            out=out,
            run_id=run_id,
            attempts=attempts,
            pool=pool,
            budget={"usd": budget_usd, "tokens": budget_tokens},
        )
        job = prepare(config, sample=sample, allow_unpriced=allow_unpriced, note=output.note)
        cost = CostCheck.of(output, job, yes=yes)
    drive = partial(_drive, output, job, address=address, takeover=takeover)
    if pilot is not None and cost.pilot(pilot) and drive(pilot=pilot).stopped:
        raise Interrupted("stopped during the pilot; what is finished is stored, the same command continues")
    if estimate:
        cost.show()
        return
    cost.rest(began=pilot is not None)
    driven = drive()
    tell(output, driven.report, job.run_uri)
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

    output, run_uri = Output(as_json=json), located(run_uri)
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

    output, run_uri = Output(as_json=json), located(run_uri)
    tell(output, report_again(run_uri, output.warn), run_uri)


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

    with LiveProgress(output) as observer, stop_on_signal(output) as stop:
        how = job.launch(observer=observer, address=address, takeover=takeover, stop=stop, pilot=pilot)
        outcome = launch(job.spec, job.release, job.inputs, replace(how, command=command_given(sys.argv)))
    return _Driven(outcome, stop.is_set(), observer.last)


def _judge(output: Output, driven: _Driven, job: Job) -> None:
    """Exit with 3 when trials of the models that were asked are owed, or when too many of theirs ended in errors."""
    from trunchray.core.wording import way_to_grade

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
        unmended = ungraded(models)
        again = _asked_again(job, asked)
        output.note(
            f"{errors:,} of {planned:,} trials ended in an error, which is no verdict on the model (max_error_share is "
            f"{allowed:g}); {again}"
        )
        if unmended:
            output.note(way_to_grade(unmended, job.run_uri))
        raise typer.Exit(3)


def _asked_again(job: Job, asked: set[str]) -> str:
    """What comes of giving the command again, where trials of these models ended in errors."""
    from trunchray.adapters.runs import RunFolder
    from trunchray.engine.progress import Snapshot

    last = Snapshot.read(RunFolder(job.run_uri).progress())
    again = sum(agent.counted.retryable for agent in last.agents if agent.name in asked) if last else 0
    if not again:
        return "asking the same again mends none of them"
    return f"the same command, and `trunchray retry`, asks again {again:,} of them, whose cause may be gone"


def _why_owed(driven: _Driven, job: Job, owed: int, planned: int) -> str:
    reasons = {model.not_run_reason for model in driven.report.models}
    if "budget" in reasons and driven.last and not driven.stopped:
        from trunchray.cli.cost import budget_reached

        return budget_reached(driven.report, driven.last, job.spending, _estimates(driven.report, driven.last, job))
    why = "stopped" if driven.stopped else "incomplete"
    return f"{why}: {owed:,} of {planned:,} trials are owed; the same command continues"


def _estimates(report: Report, last: Snapshot, job: Job) -> Sequence[ModelEstimate]:
    """What models may cost, if that explains why some were not begun; to know it is to read the run again."""
    from trunchray.cli.cost import not_begun
    from trunchray.engine.launch import estimate_cost

    if not not_begun(report, last):
        return ()
    with suppress(ReleaseError, StoreError):  # the run itself was in order
        return estimate_cost(job.spec, job.release, job.run_uri, inputs=job.inputs)
    return ()
