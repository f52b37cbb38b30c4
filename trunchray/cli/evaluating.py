"""Commands for evaluations that are written in Python: eval run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trunchray.cli.diversion import divert_for_good, diverted
from trunchray.cli.options import Json
from trunchray.cli.output import Output
from trunchray.errors import EvalFailure, SpecError, TrunchrayError, UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from trunchray.core.evaluation import EvaluationReport

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="json is the same as --json.")]


def register(app: typer.Typer) -> None:
    evaluations = typer.Typer(help="Evaluate functions, agents and workflows in Python.", rich_markup_mode=None)
    evaluations.callback()(_group)
    evaluations.command()(run)
    app.add_typer(evaluations, name="eval")


def _group() -> None:
    """Evaluate functions, agents and workflows in Python."""


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Python file that exports `evaluation` or `default`.")],
    format: Format = "text",
    json: Json = False,
) -> None:
    """Run the evaluation that a Python file exports, and judge it by what it allows.

    The file's `evaluation`, or else its `default`, is what `trunchray.evaluate` takes, as a mapping; or a function
    without arguments, which may be async, that returns such a mapping.

    Exit codes: 0 it passes; 1 a check misses or drops more than allowed; 2 nothing ran: there is no such file, it
    cannot be imported, or the evaluation cannot be run as asked; 3 incomplete, the same command continues.

    Example: trunchray eval run evals/refund.py

    Example: trunchray eval run evals/refund.py --json
    """
    if not (json or format == "json"):
        _evaluated(file)
        return
    output = Output(as_json=True)
    try:
        with diverted():
            report = _evaluated(file, quiet=True)
    except TrunchrayError as error:
        output.refuse_as(_refusal(error), str(error))
        divert_for_good()
        raise typer.Exit(error.exit_code) from error
    output.result(report.to_json(), lambda _: None)
    divert_for_good()


def _evaluated(file: str, **options: Any) -> EvaluationReport:
    """Load and run on one event loop: what a file's async function makes may belong to it."""
    from trunchray.adapters.loops import own_loop
    from trunchray.frontends.evaluation.evaluate import aevaluate, found_by_then
    from trunchray.frontends.evaluation.loading import load

    try:
        exported = load(file)
        with own_loop() as runner:
            spec: Mapping[str, Any] = runner.run(exported.spec())
            return runner.run(aevaluate(**{**spec, **options}))
    except SystemExit as e:
        raise UsageError(f"{file!r} ended the process (SystemExit: {e.code!r}) before there was a result") from e
    except KeyboardInterrupt as e:
        return found_by_then(e)


def _refusal(error: TrunchrayError) -> JsonValue:
    """What programs are told: a stable word, the message, and of an evaluation that ran all that it found."""
    said: dict[str, JsonValue] = {"code": _code(error), "message": str(error)}
    return said | error.report.to_json() if isinstance(error, EvalFailure) else said


def _code(error: TrunchrayError) -> str:
    match error:
        case EvalFailure():
            return "EVAL_FAILED"
        case SpecError():
            return error.code
        case _:
            return "EVAL_CONFIG" if error.exit_code == UsageError.exit_code else "EVAL_INCOMPLETE"
