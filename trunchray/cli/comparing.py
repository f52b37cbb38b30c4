"""Commands that set one result against another, or against limits: compare, gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json, RunUri, located
from trunchray.cli.output import Output, write_file
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from trunchray.core.comparison import ComparisonReport
    from trunchray.core.gate import Gate

Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Also write it as Markdown.")]


def register(app: typer.Typer) -> None:
    app.command()(compare)
    app.command()(gate)


def compare(
    first: RunUri,
    second: Annotated[str | None, typer.Argument(metavar="[RUN2]", help="The run to set against it.")] = None,
    models: Annotated[
        tuple[str, str] | None,
        typer.Option("--models", metavar="X Y", help="Two models of the run, or one of each of two runs."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="RUN", help="Set RUN against this one, model by model.")
    ] = None,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """Say how far two runs or models differ, and how surely.

    Compared are the cases that both have a verdict on and whose content is the same; of a run and its regrade, or of
    two regrades, those that ask the same.

    Example: trunchray compare runs/before runs/after

    Example: trunchray compare runs/quickstart --models good mixed

    Example: trunchray compare runs/quickstart runs/quickstart/regrades/strict
    """
    from trunchray.cli.comparison_tables import show_comparison
    from trunchray.core.comparison_markdown import comparison_markdown
    from trunchray.engine.case_names import case_names

    output = Output(as_json=json)
    first, second, baseline = located(first), second and located(second), baseline and located(baseline)
    found = _compared(first, second, models, baseline)
    runs = [run for run in (second, baseline, first) if run]
    if markdown:
        write_file(markdown, comparison_markdown(found))
    output.result(found.model_dump(mode="json"), lambda console: show_comparison(console, found, case_names(*runs)))


def _compared(first: str, second: str | None, models: tuple[str, str] | None, baseline: str | None) -> ComparisonReport:
    from trunchray.engine.compare import compare_models, compare_runs

    if baseline and second:
        raise UsageError(f"--baseline {baseline!r} and a second run {second!r}: give one of them")
    if baseline:
        return compare_runs(baseline, first, models)
    return compare_runs(first, second, models) if second else compare_models(first, models or ())


def gate(
    run: RunUri,
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow", metavar="FILE|NAME=LIMITS", help="A gate file (YAML), or limits of one eval; can be repeated."
        ),
    ],
    against: Annotated[
        str | None, typer.Option("--compare", metavar="RUN", help="The run that drops are counted from.")
    ] = None,
    aa: Annotated[
        bool, typer.Option("--aa", help="Say how often the limits fail a model that is compared with itself.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write it as JUnit XML.")] = None,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """Judge a run by limits: PASS, FAIL or INCONCLUSIVE. Shows every limit that is broken, with its cases.

    Exit codes: 0 PASS; 1 FAIL; 3 INCONCLUSIVE, for lack of verdicts or of certainty; 2 the gate cannot be judged.

    Example: trunchray gate runs/quickstart --allow each=2

    Example: trunchray gate runs/after --compare runs/before --allow gate.yaml
    """
    from trunchray.frontends.gate_file import read_gate

    output = Output(as_json=json)
    limits = read_gate(allow)
    run, against = located(run), against and located(against)
    if aa:
        if against or junit:
            raise UsageError(f"--aa compares a run with itself; leave out {'--compare' if against else '--junit'}")
        _try_itself(output, run, limits, markdown)
        return
    from trunchray.cli.gate_tables import show_gate
    from trunchray.core.gate_markdown import gate_markdown
    from trunchray.core.junit import junit as as_junit
    from trunchray.engine.case_names import case_names
    from trunchray.engine.gate import judge_run

    found = judge_run(run, limits, against)
    if junit:
        write_file(junit, as_junit(found).decode())
    if markdown:
        write_file(markdown, gate_markdown(found))
    output.result(found.model_dump(mode="json"), lambda console: show_gate(console, found, case_names(run)))
    if code := {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}[found.verdict]:
        raise typer.Exit(code)


def _try_itself(output: Output, run: str, limits: Gate, markdown: Path | None) -> None:
    from trunchray.cli.gate_tables import show_false_alarms
    from trunchray.core.gate_markdown import aa_markdown
    from trunchray.engine.gate import judge_itself

    found = judge_itself(run, limits)
    if markdown:
        write_file(markdown, aa_markdown(found))
    output.result(found.model_dump(mode="json"), lambda console: show_false_alarms(console, found))
