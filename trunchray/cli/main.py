"""The command line. Commands live beside this file; here they are gathered and their errors become exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from importlib.metadata import version
from typing import Annotated

import typer

from trunchray.cli import authoring, models, running
from trunchray.cli.output import Output
from trunchray.errors import TrunchrayError

app = typer.Typer(
    name="trunchray",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (authoring, running, models):
    module.register(app)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"trunchray {version('trunchray')}\n")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compile benchmarks into releases, run them against models, read what came out.

    Exit codes: 0 done; 2 the input is wrong and nothing ran; 3 incomplete, the same command continues; 4 a bug.
    """


def main() -> None:
    """Run one command and exit with its code. Expected errors are one message; a bug shows where to look."""
    output = Output(as_json="--json" in sys.argv[1:])
    try:
        app()
    except TrunchrayError as error:
        output.error(error)
        code = error.exit_code
    except KeyboardInterrupt:
        output.note("interrupted")
        code = 3
    except Exception as error:
        if os.environ.get("TRUNCHRAY_DEBUG"):
            traceback.print_exc()
        output.note(f"internal error: {type(error).__name__}: {error}\nset TRUNCHRAY_DEBUG=1 to see where")
        code = 4
    else:
        return
    raise SystemExit(code)


if __name__ == "__main__":
    main()
