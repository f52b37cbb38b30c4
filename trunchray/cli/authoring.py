"""Commands for authors: init, compile, inspect, verify."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import BenchmarkPath, ConfigFile, Json, writable
from trunchray.cli.output import Output
from trunchray.errors import ReleaseError

if TYPE_CHECKING:
    from collections import Counter

    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.adapters.releases import StoredRelease


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.command("compile")(compile_)
    app.command()(inspect)
    app.command()(verify)


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet, or is empty.")],
    json: Json = False,
) -> None:
    """Start a benchmark from small examples.

    One of each way to write cases; they compile as they stand.

    Example: trunchray init my-benchmark
    """
    from trunchray.frontends.benchmark.scaffold import scaffold

    output = Output(as_json=json)
    files = scaffold(directory)

    def show(console: Console) -> None:
        for name in files:
            console.print(f"  {directory / name}")
        console.print(f"next: trunchray compile {quote(str(directory))}")

    output.result({"directory": str(directory), "files": [*files]}, show)


def compile_(
    path: BenchmarkPath,
    config: ConfigFile = None,
    out: Annotated[str, typer.Option(metavar="URI", help="Where releases are kept.")] = "releases",
    json: Json = False,
) -> None:
    """Compile a repository into an immutable release.

    Example: trunchray compile benchmarks/arithmetic --out s3://bucket/releases
    """
    from trunchray.frontends.benchmark.compiler import compile_to
    from trunchray.frontends.benchmark.preview import kinds

    output = Output(as_json=json)
    stored = compile_to(path, writable(out), config=config)
    for warning in stored.release.warnings:
        output.warn(str(warning))

    def show(console: Console) -> None:
        _show_release(console, stored, kinds(stored.cases()))
        console.print(f"next: trunchray run {quote(stored.uri)} --model mock/echo")

    output.result(_described(stored), show)


def inspect(
    target: Annotated[str, typer.Argument(metavar="RELEASE|PATH", help="A release, or an authoring repository.")],
    cases: Annotated[bool, typer.Option("--cases", help="List every case.")] = False,
    json: Json = False,
) -> None:
    """Show what a release, or an authoring repository, holds.

    A repository is compiled, but nothing is written.

    Example: trunchray inspect benchmarks/arithmetic --cases
    """
    from trunchray.cli.opening import release_at
    from trunchray.cli.screen import one_line
    from trunchray.frontends.benchmark.preview import kinds

    output = Output(as_json=json)
    stored = release_at(target, compiled_to="memory://trunchray-inspect")
    value, graded_by = _described(stored), kinds(stored.cases())
    if cases:
        value["case_list"] = [case.model_dump(mode="json", by_alias=True) for case in stored.cases()]

    def show(console: Console) -> None:
        _show_release(console, stored, graded_by)
        for case in stored.cases() if cases else ():
            graded = ", ".join(check.kind for check in case.checks.values())
            console.print(f"{case.id}  [{graded}]  {one_line(case.input.prompt, 100)}")

    output.result(value, show)


def verify(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A release's folder or URI.")],
    json: Json = False,
) -> None:
    """Recompute every hash of a release and name what differs.

    Example: trunchray verify releases/arithmetic-1.0.0-3f2a9c1b77d0
    """
    from trunchray.adapters.releases import verify_release
    from trunchray.frontends.benchmark.site import is_benchmark

    output = Output(as_json=json)
    differences = verify_release(release)
    if differences and is_benchmark(Path(release)):
        raise ReleaseError(
            f"{release!r} is a repository, not a release; `trunchray compile {quote(release)}` makes one"
        )
    if differences:
        raise ReleaseError("\n".join([f"{release} is not a whole release:", *differences]))
    output.result({"release": release, "ok": True}, lambda console: console.print(f"{release}: whole"))


def _described(stored: StoredRelease) -> dict[str, JsonValue]:
    release = stored.release
    return {
        "release": stored.uri,
        "digest": release.digest,
        "title": release.title,
        "version": release.version,
        "cases": release.cases.count,
        "evals": [{"id": entry.id, "cases": entry.cases} for entry in release.evals],
        "warnings": [str(warning) for warning in release.warnings],
    }


def _show_release(console: Console, stored: StoredRelease, kinds: Mapping[str, Counter[str]]) -> None:
    from trunchray.cli.preview import show_evals

    show_evals(console, stored.release, kinds)
    console.print(f"digest   {stored.release.digest}")
    if not stored.uri.startswith("memory://"):
        console.print(f"release  {stored.uri}")
