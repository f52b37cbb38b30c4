"""The command line. Commands live beside this file; here they are gathered and their errors become exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from trunchray.adapters.signals import here_alone
from trunchray.cli import (
    authoring,
    check,
    comparing,
    evaluating,
    exporting,
    models,
    regrading,
    running,
    serving,
    skills,
    submitted,
    submitting,
    transform,
    viewing,
)
from trunchray.cli.output import Output, heard, silence
from trunchray.errors import TrunchrayError

app = typer.Typer(
    name="trunchray",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it fits any width, can be copied, and starts in half the time
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for module in (
    authoring,
    check,
    transform,
    evaluating,
    running,
    regrading,
    submitting,
    submitted,
    comparing,
    viewing,
    exporting,
    serving,
    models,
    skills,
):
    module.register(app)


_HELP = frozenset({"-h", "--help", "--version"})


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"trunchray {version('trunchray')}\n")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compile benchmarks into releases, run them against models, read and judge what came out.

    Exit codes: 0 done; 1 a gate or check failed; 2 the input is wrong, nothing ran; 3 incomplete, the same command
    continues; 4 internal error.
    """


def main() -> None:
    """Run one command and exit with its code; SIGTERM ends it as Ctrl-C does."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what scripts put into the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, here_alone(_interrupt))
    _open_missing()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    raise SystemExit(run_command(sys.argv[1:]))


def _open_missing() -> None:
    """Standard streams that were closed before we began: what is said there is said to nobody."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _interrupt(_number: int, _frame: object) -> None:
    """An event loop takes SIGINT as a wish to end in order, and SIGTERM not at all."""
    signal.raise_signal(signal.SIGINT)


def run_command(argv: Sequence[str]) -> int:
    """Run one command; its exit code. Expected errors are one message; a bug shows where to look."""
    output = Output(as_json=_asks_for_json(argv))
    try:
        return _invoke(argv) if argv and not _HELP.intersection(argv) else _help(argv)
    except TrunchrayError as error:
        output.refuse(error)
        return error.exit_code
    except typer.TyperException as error:
        output.fail("UsageError", f"{_message(error)} (see {_help_for(error)})")
        return 2
    except BrokenPipeError:
        silence(sys.stdout)  # whoever reads the help has read enough
        return 0
    except KeyboardInterrupt:
        output.fail("Interrupted", "interrupted")
        return 3
    except Exception as error:
        if os.environ.get("TRUNCHRAY_DEBUG"):
            traceback.print_exc()
        where = f"internal error: {type(error).__name__}: {error}\nset TRUNCHRAY_DEBUG=1 to see where"
        output.fail("InternalError", where)
        return 4


def _asks_for_json(argv: Sequence[str]) -> bool:
    return not {"--json", "--format=json"}.isdisjoint(argv) or ("--format", "json") in pairwise(argv)


def _help(argv: Sequence[str]) -> int:
    """Help and the version are written by typer, which would take a full disk for a bug."""
    text = io.StringIO()
    with redirect_stdout(text):
        code = _invoke(argv)
    with heard():
        sys.stdout.write(text.getvalue())
    return code


def _invoke(argv: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context("trunchray", [*argv] or ["--help"]) as context:
            command.invoke(context)
            sys.stdout.flush()
    except typer.Exit as e:
        return e.exit_code
    return 0


def _message(error: typer.TyperException) -> str:
    """What is wrong with the arguments, with the value where it is known."""
    from pydantic import ValidationError

    message = error.format_message().replace("Value error, ", "").replace("Input should be", "must be").rstrip(".")
    if isinstance(cause := error.__cause__, ValidationError):
        value = cause.errors()[0]["input"]
        message += "" if repr(value) in message else f" (got {value!r})"
    return message


def _help_for(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"`{context.command_path if context else 'trunchray'} --help`"


if __name__ == "__main__":
    main()
