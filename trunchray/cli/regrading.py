"""Commands that mend what a run has: retry asks again, regrade grades again."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trunchray.cli.driving import command_given, nothing_begun, stop_on_signal, tell, ungraded
from trunchray.cli.graders import Grader, GraderHarness, grader_of
from trunchray.cli.options import (
    Address,
    AllowUnpriced,
    BudgetUsd,
    Json,
    OfModels,
    Pool,
    Require,
    RunUri,
    Takeover,
    Yes,
    located,
)
from trunchray.cli.output import Output
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pydantic import JsonValue

    from trunchray.core.grader_spec import GraderSpec
    from trunchray.core.report import Report
    from trunchray.engine.launch import Launch
    from trunchray.engine.progress import Snapshot
    from trunchray.engine.regrade import Regrade, Regraded
    from trunchray.engine.retrying import Retry
    from trunchray.engine.run import Observer


def register(app: typer.Typer) -> None:
    app.command()(retry)
    app.command()(regrade)


def retry(
    run: RunUri,
    model: OfModels = None,
    pool: Pool = None,
    address: Address = None,
    require: Require = "none",
    takeover: Takeover = False,
    budget_usd: BudgetUsd = None,
    allow_unpriced: AllowUnpriced = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Run the errors of a run again, and nothing else.

    Those whose cause may be gone: a provider that did not answer, a key that was refused. Needs no config: what was
    asked is stored with the run, and the budget of its last command holds; keys come from the environment. An answer
    that is stored already, because only grading failed, is graded again and not asked for.

    Exit codes: 0 no such error is left; 3 some are, the same command asks again.

    Example: trunchray retry runs/quickstart
    """
    from dataclasses import replace

    output = Output(as_json=json)
    with nothing_begun():
        from trunchray.cli.live import LiveProgress
        from trunchray.engine.launch import report_again
        from trunchray.engine.retrying import prepare_retry

        run = _summed_up(located(run))
        job = prepare_retry(run, model or ())
    if not job.count:
        report = report_again(run, output.warn)
        output.note(f"nothing to retry: {_why_nothing(report, model)}")
        tell(output, report, run)
        _tell_ungraded(output, job, report, run, model)
        return
    spending = job.spending(budget_usd, allow_unpriced=allow_unpriced)
    spending.refuse_unpriced(job.spec.agents)
    _confirm(output, job, spending.whole.usd, yes=yes)
    with LiveProgress(output) as observer, stop_on_signal(output) as stop:
        how = _how(observer, pool, address, require, takeover=takeover)
        report = job(replace(how, spending=spending, stop=stop))
    _sum_up(run)
    tell(output, report, run)
    _tell_ungraded(output, job, report, run, model)
    if left := job.left():
        how_on = _how_on(job, observer.last)
        output.note(f"{left:,} of {job.count:,} errors are left whose cause may be gone; {how_on}")
        raise typer.Exit(3)


def _why_nothing(report: Report, models: Collection[str] | None) -> str:
    asked = [each for each in report.models if not models or each.name in models]
    errors = sum(each.error for each in asked)
    if not errors:
        return "no trial that counts ended in an error"
    if failed := sum(found.count for each in asked for found in each.errors if found.kind.startswith("harness/")):
        attempts = "1 attempt" if failed == 1 else f"{failed:,} attempts"
        return (
            f"the tool failed in {attempts}, and what has ended is never run again; once it is mended, the same "
            "`skills` command makes a new run"
        )
    return f"{errors:,} that count ended in an error, but with none would asking the same again end otherwise"


def _tell_ungraded(output: Output, job: Retry, report: Report, run: str, models: Collection[str] | None) -> None:
    """Name the way on for errors that no retry mends, if there are any of these models, or of all."""
    from trunchray.core.wording import way_to_grade

    source = job.plan.spec.regrades
    if found := ungraded(each for each in report.models if not models or each.name in models):
        output.note(way_to_grade(found, source.run if source else run))


def _how_on(job: Retry, last: Snapshot | None) -> str:
    if source := job.spec.regrades:
        return f"no model is asked for a regrade: retry {source.run}, then give the regrade command again"
    limited = last and "budget" in last.closed.values()
    return "the budget is reached, a larger one goes on" if limited else "the same command asks them again"


def regrade(
    run: RunUri,
    release: Annotated[
        str | None,
        typer.Option("--release", metavar="RELEASE|PATH", help="Grades by this release or repository; else the run's."),
    ] = None,
    only: Annotated[
        Literal["errors"] | None,
        typer.Option("--only", help="errors: what only grading failed on, and within the run itself."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The regrade's name; one for each release by default.")
    ] = None,
    model: OfModels = None,
    grader: Grader = None,
    grader_harness: GraderHarness = None,
    pool: Pool = None,
    address: Address = None,
    require: Require = "none",
    takeover: Takeover = False,
    json: Json = False,
) -> None:
    """Grade stored answers anew, and ask for no new ones.

    Says which verdicts changed. The rows go to RUN/regrades/NAME, which is a run like others: compare, gate, export and
    report take it. Only cases that ask the same in both releases are graded. Given again, the command goes on where it
    stopped.

    Attempts of a skill eval are graded by the grader of their run, or by the one that is named here, also when nobody
    has graded them so far.

    Exit codes: 0 all is graded; 3 stopped, or the evaluator failed on some.

    Example: trunchray regrade runs/quickstart --release benchmarks/arithmetic

    Example: trunchray regrade runs/quickstart --only errors

    Example: trunchray regrade ~/bmad-evals/20261130-090507-brief-quality --grader openai/gpt-4o-mini
    """
    output = Output(as_json=json)
    _refuse_together(release, only, grader or grader_harness)
    if only and (release or name):
        raise UsageError(
            f"--only errors grades within the run, by its release; leave out {'--release' if release else '--name'} "
            "(without --only errors all answers are graded anew, which asks no model either)"
        )
    with nothing_begun():
        grading, run = grader_of(grader, grader_harness), _summed_up(located(run))
        job = None if only else _prepared(output, run, release, name, model or [], grading)
    how = partial(_how, pool=pool, address=address, require=require, takeover=takeover)
    done = _graded(output, job, run, model or [], how)
    if done is None:
        from trunchray.engine.launch import report_again

        output.note("nothing to grade again: no row that counts is an error of an evaluator or its sandbox")
        tell(output, report_again(run, output.warn), run)
        return
    _sum_up(run, done.uri if job else None)
    _show_regraded(output, done, job)
    _judge(output, done, job)


def _refuse_together(release: str | None, only: str | None, grader: str | None) -> None:
    if grader and (release or only):
        raise UsageError(
            f"{'--release' if release else '--only errors'} and a grader: a skill's rubrics are part of its run, and "
            "what its own grader failed on only that one grades again; leave one of them out"
        )


def _prepared(
    output: Output, run: str, release: str | None, name: str | None, models: list[str], grading: GraderSpec | None
) -> Regrade:
    """What is to be graded, once it is said what is not."""
    from trunchray.adapters.runs import RunFolder
    from trunchray.adapters.store import Store
    from trunchray.cli.job import release_for
    from trunchray.cli.regrade_tables import left_out_lines
    from trunchray.engine.regrade import prepare_regrade, regrades_of
    from trunchray.engine.stored import stored_spec
    from trunchray.frontends.benchmark.checkout import is_git_address

    folder = RunFolder(run)
    stored_spec(folder)  # nothing is compiled for a run that is not there
    if release and not is_git_address(release) and Store(release).exists("run.json"):
        raise UsageError(f"--release {release!r} is a run; give a release or a repository")
    wanted = release_for(release, regrades_of(folder.uri), "neither") if release else None
    if grading:
        from trunchray.frontends.skill.graded_release import graded_release

        wanted = graded_release(run)
    job = prepare_regrade(run, wanted, name=name, models=models, grading=grading)
    for line in left_out_lines(job.left_out):
        output.note(line)
    if job.lacking:
        output.note(job.lacking)
    return job


def _graded(
    output: Output, job: Regrade | None, run: str, models: list[str], how: Callable[[Observer], Launch]
) -> Regraded | None:
    """Grade what the job says, or else the errors of the run itself; None when there are none."""
    from dataclasses import replace

    from trunchray.cli.live import LiveProgress
    from trunchray.engine.regrade import regrade_errors

    with LiveProgress(output) as observer, stop_on_signal(output) as stop:
        launch = replace(how(observer), stop=stop)
        return job(launch) if job else regrade_errors(run, models, launch)


def _summed_up(run: str) -> str:
    """The run, of which it is known, before anybody is paid, that its summary can be brought up to date."""
    from trunchray.frontends.skill.summary import about_skill_run

    about_skill_run(run)
    return run


def _sum_up(run: str, regrade: str | None = None) -> None:
    """Bring the summary of a skill eval up to date with its rows, or with those of a regrade; other runs have none."""
    from datetime import datetime

    from trunchray.frontends.skill.summary import summarise_again

    summarise_again(run, datetime.now().astimezone(), regrade)


def _how(
    observer: Observer,
    pool: Literal["auto", "local", "ray"] | None,
    address: str | None,
    require: Literal["none", "landlock"],
    *,
    takeover: bool,
) -> Launch:
    from trunchray.engine.launch import Launch

    return Launch(
        "",
        observer,
        pool=pool or "auto",
        address=address,
        require=require,
        takeover=takeover,
        command=command_given(sys.argv),
    )


def _confirm(output: Output, job: Retry, budget_usd: float | None, *, yes: bool) -> None:
    from trunchray.cli.cost import CostCheck
    from trunchray.frontends.run_config import CONFIRM_ABOVE

    free = yes or not any(agent.price for agent in job.spec.agents)
    CostCheck(
        output,
        lambda _: job.estimate(),
        most=budget_usd,
        unasked=None if free else CONFIRM_ABOVE,
        remedies=f"give --yes to go on, or limit it with --budget-usd {CONFIRM_ABOVE:g}",
    ).rest(began=False)


def _show_regraded(output: Output, done: Regraded, job: Regrade | None) -> None:
    more: dict[str, JsonValue] = {
        "flips": done.flips.model_dump(mode="json") if done.flips else None,
        "left_out": job.left_out.model_dump(mode="json") if job else None,
    }
    tell(output, done.report, done.uri, more=more, flips=done.flips)


def _judge(output: Output, done: Regraded, job: Regrade | None) -> None:
    if done.flips is None:
        output.note("stopped: what is graded is stored, and the same command continues")
        raise typer.Exit(3)
    if count := done.flips.ungraded:
        output.note(f"{count:,} answers could not be graded; the report says why")
        raise typer.Exit(3)
    if job and not job.lacking and (owed := job.owed(done.report)):
        output.note(f"{owed:,} answers are not graded: they, or workers, were lost; the same command continues")
        raise typer.Exit(3)
