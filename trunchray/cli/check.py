"""Commands for authors at work: check what would be compiled, try an evaluator on an answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import BenchmarkPath, ConfigFile, Json
from trunchray.cli.output import Output
from trunchray.errors import TrialError, TrunchrayError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trunchray.core.trial import ToolCall, Verdict
    from trunchray.frontends.benchmark.compiler import Compiled
    from trunchray.frontends.benchmark.watch import Watch


def register(app: typer.Typer) -> None:
    app.command()(check)
    app.command("try")(try_)


def check(
    path: BenchmarkPath,
    config: ConfigFile = None,
    watch: Annotated[bool, typer.Option("--watch", help="Check again whenever a file changes, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Find what is wrong with a benchmark. Nothing is written; without problems, what would be frozen is shown.

    Problems that others may come of are told first: where packages, the config or a module cannot be read, what else is
    wrong shows once that is mended.

    Example: trunchray check benchmarks/arithmetic --watch
    """
    output = Output(as_json=json)
    if watch:
        repeat(lambda: _check(output, path, config), _watch(path, config), output)
    else:
        _check(output, path, config)


def repeat(once: Callable[[], None], watch: Watch, output: Output) -> None:
    """Do it now and after every change, until Ctrl-C; a refusal is told and waited out."""
    try:
        while True:
            try:
                once()
            except TrunchrayError as error:
                output.refuse(error)
            output.note("waiting for a change; Ctrl-C ends")
            watch.wait()
    except KeyboardInterrupt:
        output.note("stopped")


def try_(
    path: BenchmarkPath,
    case: Annotated[str, typer.Option(metavar="ID", help="The case whose evaluator shall grade.")],
    answer: Annotated[str, typer.Option("--output", metavar="TEXT", help="The final answer; - reads it from stdin.")],
    tool_calls: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help='A JSON array of {"toolName", "input", "output"?, "error"?}, in their order.'
        ),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Grade an answer with a case's own evaluator. No model is asked.

    Exit codes: 0 passed, 1 failed, 2 the input is wrong, 3 the evaluator failed.

    Example: trunchray try benchmarks/support-policy --case greeting --output Hi
    """
    from trunchray.frontends.benchmark.compiler import compile_benchmark
    from trunchray.frontends.benchmark.tryout import graded

    output = Output(as_json=json)
    text = sys.stdin.read() if answer == "-" else answer
    calls = _calls(tool_calls)
    compiled = compile_benchmark(path, config=config)
    try:
        verdict = asyncio.run(graded(compiled, case, text, calls))
    except TrialError as error:
        output.fail(type(error).__name__, f"{error} ({error.type})")
        raise typer.Exit(3) from error
    output.result({"case": case, **verdict.model_dump(mode="json")}, lambda console: _show_verdict(console, verdict))
    if not verdict.passed:
        raise typer.Exit(1)


def _check(output: Output, path: str, config: str | None) -> None:
    from trunchray.frontends.benchmark.compiler import compile_benchmark
    from trunchray.frontends.benchmark.preview import preview

    compiled = compile_benchmark(path, config=config)
    for warning in compiled.warnings:
        output.warn(warning)
    output.result(preview(compiled), lambda console: _show(console, compiled))


def _watch(path: str, config: str | None) -> Watch:
    from trunchray.frontends.benchmark.checkout import is_git_address
    from trunchray.frontends.benchmark.site import locate
    from trunchray.frontends.benchmark.watch import Watch

    if is_git_address(path):
        raise UsageError("--watch: a commit never changes, so there is nothing to wait for; check it without --watch")
    return Watch(locate(Path(path), config).root)


def _calls(file: Path | None) -> tuple[ToolCall, ...]:
    from trunchray.frontends.benchmark.tryout import read_calls

    if file is None:
        return ()
    try:
        content = file.read_bytes()
    except OSError as e:
        raise UsageError(f"--tool-calls {str(file)!r}: {e.strerror}") from e
    return read_calls(content, f"--tool-calls {str(file)!r}")


def _show(console: Console, compiled: Compiled) -> None:
    from trunchray.cli.preview import show_preview

    show_preview(console, compiled)


def _show_verdict(console: Console, verdict: Verdict) -> None:
    import json

    console.print(f"{'passed' if verdict.passed else 'failed'}  score {verdict.score:g}")
    if verdict.message:
        console.print(verdict.message)
    if verdict.details is not None:
        console.print(json.dumps(verdict.details, ensure_ascii=False, indent=2))
