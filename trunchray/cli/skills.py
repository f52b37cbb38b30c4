"""Commands about evals of agent skills: skills run, skills triggers, skills aggregate, skills convert."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output
from trunchray.cli.skill_running import run, triggers
from trunchray.errors import StoreError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trunchray.core.attempt_statistics import Config
    from trunchray.frontends.skill.convert import Converted


class Format(StrEnum):
    """Of case files."""

    RUNNER = "runner"
    SKILL_CREATOR = "skill-creator"


def register(app: typer.Typer) -> None:
    skills = typer.Typer(help="Evaluate agent skills through command-line coding tools.", rich_markup_mode=None)
    skills.callback()(_group)
    skills.command()(run)
    skills.command()(triggers)
    skills.command()(aggregate)
    skills.command()(convert)
    app.add_typer(skills, name="skills")


def _group() -> None:
    """Evaluate agent skills through command-line coding tools."""


def aggregate(
    runs: Annotated[
        str | None, typer.Option(metavar="RECORDS", help="One config: a run folder, or a JSON file of records.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="RECORDS", help="The config to compare with.")] = None,
    variant: Annotated[str | None, typer.Option(metavar="RECORDS", help="The config that is compared.")] = None,
    all_statuses: Annotated[
        bool, typer.Option("--all-statuses", help="Also count attempts that failed or timed out.")
    ] = False,
    json: Json = False,
) -> None:
    """Print mean, sample standard deviation, min and max of the time, tokens and tool calls of attempts, as JSON.

    In a folder or URI every timing.json is read; give the folder of one config, such as RUN/skill. Only attempts with
    the status ok count. A result is settled once each case has three of them.

    Example: trunchray skills aggregate --baseline RUN/bare --variant RUN/skill

    Example: trunchray skills aggregate --runs RUN/skill --all-statuses
    """
    from trunchray.core.attempt_statistics import versus

    output = Output(as_json=True)
    if runs and not (baseline or variant):
        found = _summary(output, runs, all_statuses=all_statuses)
    elif baseline and variant and not runs:
        sides = [_summary(output, side, all_statuses=all_statuses) for side in (baseline, variant)]
        found = versus(*sides)
    else:
        raise UsageError("give --runs RECORDS, or both --baseline RECORDS and --variant RECORDS")
    output.result(found.model_dump(mode="json"), _nothing)


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="evals.json, or cases.json with --to skill-creator.")],
    to: Annotated[Format, typer.Option(help="The format to write.")] = Format.RUNNER,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A path or URI; without it, stdout.")
    ] = None,
    skill_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --to skill-creator; by default the folder's name.")
    ] = None,
    json: Json = False,
) -> None:
    """Convert skill-creator's evals.json into cases.json, or back, and report what has no place on the other side.

    The rubric is made of the expectations, the assertions and the expected output. Converting back restores the
    original, unless the file was edited in between.

    Example: trunchray skills convert brief-writer/evals/evals.json --output brief-writer/evals/cases.json

    Example: trunchray skills convert brief-writer/evals/cases.json --to skill-creator
    """
    from trunchray.frontends.skill.convert import to_cases, to_evals
    from trunchray.frontends.skill.json_file import read_json

    said = Output(as_json=json or output is None)
    if skill_name and to is Format.RUNNER:
        raise UsageError("--skill-name is only for --to skill-creator")
    value = read_json(file, "the file to convert")
    done = to_cases(value, file) if to is Format.RUNNER else to_evals(value, file, skill_name)
    if output is not None:
        _write(output, done)
    for note in done.notes:
        said.warn(f"{file}: {note}")
    if output is None:
        said.result(done.content, _nothing)
        return
    what = "cases" if to is Format.RUNNER else "evals"

    def show(console: Console) -> None:
        console.print(f"{output}: {done.count:,} {what}")

    said.result({"output": output, what: done.count, "notes": [*done.notes]}, show)


def _summary(output: Output, location: str, *, all_statuses: bool) -> Config:
    from trunchray.core.attempt_statistics import summarise
    from trunchray.frontends.skill.attempt_records import read_records

    found = read_records(location)
    for note in found.notes:
        output.warn(note)
    try:
        config = summarise(found.records, all_statuses=all_statuses)
    except ValueError as e:
        raise UsageError(f"{location}: {e}; mend or remove that record") from e
    if not config.runs:
        ended = ", ".join(f"{count} {status}" for status, count in config.by_status.items())
        raise UsageError(
            f"{location}: no attempt has the status ok ({ended}); add --all-statuses to count the others too"
        )
    return config


def _write(location: str, done: Converted) -> None:
    from trunchray.adapters.location import opened
    from trunchray.core.well_formed import as_file

    store, name = opened(location)
    try:
        store.write(name, as_file(done.content))
    except StoreError as e:
        raise UsageError(f"cannot write {location!r}: {e}; choose another place") from e


def _nothing(_console: Console) -> None:
    """What is always JSON is shown to nobody else."""
