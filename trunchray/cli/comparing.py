"""Commands that set one result against another, or against limits: compare, gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from trunchray.core.comparison import ComparisonReport

Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Also write it as Markdown.")]


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URI.")],
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
    """Say how far two runs or models differ, and how sure that is.

    Compared are the cases that both have a verdict on and whose content is the same.

    Example: trunchray compare runs/before runs/after

    Example: trunchray compare runs/quickstart --models good mixed
    """
    from trunchray.cli.comparison_tables import show_comparison
    from trunchray.core.comparison_markdown import comparison_markdown

    output = Output(as_json=json)
    found = _compared(first, second, models, baseline)
    if markdown:
        write(markdown, comparison_markdown(found))
    output.result(found.model_dump(mode="json"), lambda console: show_comparison(console, found))


def _compared(first: str, second: str | None, models: tuple[str, str] | None, baseline: str | None) -> ComparisonReport:
    from trunchray.engine.compare import compare_models, compare_runs

    if baseline and second:
        raise UsageError(f"--baseline {baseline!r} and a second run {second!r}: give one of them")
    if baseline:
        return compare_runs(baseline, first, models)
    return compare_runs(first, second, models) if second else compare_models(first, models or ())


def write(path: Path, content: str) -> None:
    """Write a file that was asked for.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"cannot write {str(path)!r}: {e.strerror}; choose another place") from e
