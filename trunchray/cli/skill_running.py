"""Commands that run evals of agent skills: skills run, skills triggers."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trunchray.cli.driving import command_given, nothing_begun, stop_on_signal
from trunchray.cli.graders import Grader, GraderHarness, grader_of
from trunchray.cli.options import Address, Json, Pool, Takeover, writable
from trunchray.cli.output import Output
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from trunchray.frontends.skill.session import How
    from trunchray.frontends.skill.summary import ExecutionSummary
    from trunchray.frontends.skill.triggers import TriggersResult

SkillPath = Annotated[str, typer.Option("--skill-path", metavar="DIR", help="The skill's folder, which has SKILL.md.")]
OutputDir = Annotated[
    str | None,
    typer.Option(
        "--output-dir",
        metavar="URI",
        help="Where run folders are made; else in BMad's reports folder, or ~/bmad-evals.",
    ),
]
ProjectRoot = Annotated[
    str | None,
    typer.Option(
        "--project-root", metavar="DIR", help="The project; else the skill's nearest folder with _bmad or .git."
    ),
]
HarnessFile = Annotated[
    str | None, typer.Option("--harness", metavar="JSON", help="The coding tool's keys; else those that BMad recorded.")
]
Workers = Annotated[int, typer.Option(metavar="N", min=1, help="Attempts under way at a time.")]


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise typer.BadParameter("must be a number of seconds")
    return seconds


Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, callback=_finite, help="The most that one attempt may take.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing while it runs.")]


def run(
    skill_path: SkillPath,
    cases: Annotated[
        str | None, typer.Option(metavar="FILE", help="The cases; else cases.json in the skill's or project's evals/.")
    ] = None,
    output_dir: OutputDir = None,
    mode: Annotated[
        Literal["quality", "baseline", "variant"],
        typer.Option(help="The skill alone; beside the bare tool; beside another version of it."),
    ] = "quality",
    variant_path: Annotated[
        str | None, typer.Option("--variant-path", metavar="DIR", help="The other version, with --mode variant.")
    ] = None,
    project_root: ProjectRoot = None,
    harness: HarnessFile = None,
    case_ids: Annotated[
        str | None, typer.Option("--case-ids", metavar="A,B", help="Only these cases, separated by commas.")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Attempts at each case.")] = 1,
    timeout: Timeout = 600,
    workers: Workers = 4,
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the run folder is called after the date.")
    ] = None,
    grader: Grader = None,
    grader_harness: GraderHarness = None,
    pool: Pool = None,
    address: Address = None,
    takeover: Takeover = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run the cases of a skill through a coding tool, each in a clean room, and keep what came of them.

    Without a grader nothing is graded. The same command continues a run that was interrupted, or some of whose attempts
    could not be graded, and otherwise begins another one.

    Exit codes: 0 all attempts ended well; 1 one did not, or could not be graded; 2 wrong input, nothing ran; 3 no
    harness is recorded, or the run is incomplete.

    Example: trunchray skills run --skill-path skills/brief --harness configs/harness/claude-code.json

    Example: trunchray skills run --skill-path skills/brief --mode baseline --runs 3 --grader openai/gpt-4o-mini
    """
    from trunchray.frontends.skill.quality import Options, run_cases

    output = Output(as_json=json)
    with nothing_begun():
        options = Options(
            skill_path=skill_path,
            cases=cases,
            mode=mode,
            variant_path=variant_path,
            project_root=project_root,
            harness=harness,
            case_ids=_listed(case_ids),
            runs=runs,
            timeout=timeout,
            workers=workers,
            label=_label(label),
            grading=grader_of(grader, grader_harness),
        )
        place = _place(output_dir, skill_path, project_root)
    with _how(output, place, pool, address, takeover=takeover, quiet=quiet) as how:
        _, summary = run_cases(options, how)
    if summary.unread:
        output.warn(
            "no event could be read in what the tool printed, so nobody knows its tokens, turns and tool calls; does "
            "the harness file choose a format of JSON lines?"
        )
    if summary.executed and options.grading is None and not quiet:
        graded = f"`trunchray regrade {quote(summary.run_dir)} --grader MODEL`"
        output.note(f"nothing was graded; {graded}, or with --grader-harness JSON, grades it without running it again")
    output.result(summary.model_dump(mode="json"), lambda console: _show_summary(console, summary))
    _end(summary.exit_code)


def triggers(
    skill_path: SkillPath,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The queries; else triggers.json in the skill's or project's evals/."),
    ] = None,
    output_dir: OutputDir = None,
    project_root: ProjectRoot = None,
    harness: HarnessFile = None,
    runs_per_query: Annotated[
        int, typer.Option("--runs-per-query", metavar="N", min=1, max=1000, help="Runs of each query.")
    ] = 3,
    threshold: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of runs from which on a query counts as triggering.")
    ] = 0.5,
    timeout: Timeout = 180,
    workers: Workers = 4,
    pool: Pool = None,
    address: Address = None,
    takeover: Takeover = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure how often a coding tool loads a skill for queries that should, and should not, load it.

    Exit codes: 0 all queries were measured, whatever came out; 1 one was not; 2 wrong input, nothing ran; 3 no harness
    is recorded, or the run is incomplete.

    Example: trunchray skills triggers --skill-path skills/brief --harness configs/harness/claude-code.json
    """
    from trunchray.frontends.skill.triggers import Options, run_triggers

    output = Output(as_json=json)
    with nothing_begun():
        options = Options(
            skill_path=skill_path,
            queries=queries,
            project_root=project_root,
            harness=harness,
            runs_per_query=runs_per_query,
            threshold=threshold,
            timeout=timeout,
            workers=workers,
        )
        place = _place(output_dir, skill_path, project_root)
    with _how(output, place, pool, address, takeover=takeover, quiet=quiet) as how:
        ran, result = run_triggers(options, how)
    output.result(result.to_json(), lambda console: _show_triggers(console, result, ran.folder.uri))
    _end(result.exit_code)


@contextmanager
def _how(output: Output, place: str, pool: Pool, address: str | None, *, takeover: bool, quiet: bool) -> Generator[How]:
    from trunchray.adapters.store import Store
    from trunchray.cli.live import LiveProgress
    from trunchray.frontends.skill.session import How

    with LiveProgress(output, quiet=quiet) as observer, stop_on_signal(output) as stop:
        yield How(
            out=Store(place),
            observer=observer,
            now=datetime.now,  # people know their runs by the time of their own clock
            pool=pool or "auto",
            address=address,
            takeover=takeover,
            command=command_given(sys.argv),
            stop=stop,
        )


def _place(given: str | None, skill_path: str, project_root: str | None) -> str:
    from trunchray.frontends.skill.bmad import output_folder
    from trunchray.frontends.skill.project import project_of
    from trunchray.frontends.skill.skill_md import skill_folder

    if given is not None:
        return writable(given, "--output-dir")
    folder: Path = output_folder(project_of(skill_folder(skill_path), project_root))
    return writable(str(folder), "--output-dir")


def _listed(ids: str | None) -> tuple[str, ...] | None:
    if ids is None:
        return None
    found = tuple(id_.strip() for id_ in ids.split(",") if id_.strip())
    if not found:
        raise UsageError("--case-ids: names no case; separate ids by commas, or leave it out")
    return found


def _label(given: str | None) -> str | None:
    from trunchray.frontends.skill.labels import MOST, safe_name

    if given and len(given) > MOST:
        raise UsageError(f"--label: has {len(given)} characters, and a folder's name takes {MOST}; give a shorter one")
    return safe_name(given) if given else None


def _show_summary(console: Console, summary: ExecutionSummary) -> None:
    from trunchray.cli.skill_tables import show_attempts

    show_attempts(console, summary)


def _show_triggers(console: Console, result: TriggersResult, folder: str) -> None:
    from trunchray.cli.skill_tables import show_queries

    show_queries(console, result, folder)


def _end(code: int) -> None:
    if code:
        raise typer.Exit(code)
