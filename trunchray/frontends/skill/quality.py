"""`trunchray skills run`: the cases of a skill, with it, without it, or with another version of it.

case file, skill, harness, fixtures ─▶ question ─▶ the engine ─▶ attempt folders, execution-summary.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue

from trunchray.adapters.tree import TreeError, pack
from trunchray.core.agent import HarnessAgent, Pacing, Quota, SkillTree
from trunchray.core.case import Case, CaseInput, Origin
from trunchray.core.checks import Check, Completed, RubricLine
from trunchray.core.digest import sha256
from trunchray.core.grader_spec import GraderSpec
from trunchray.core.harness import Harness
from trunchray.core.names import nearest
from trunchray.core.release import slug
from trunchray.core.staging import StagedCase
from trunchray.errors import UsageError
from trunchray.frontends.case_release import case_id
from trunchray.frontends.skill.case_file import SkillCase, check_rubrics, read_cases
from trunchray.frontends.skill.discovery import find_file, find_project
from trunchray.frontends.skill.fixtures import Fixtures, read_fixtures
from trunchray.frontends.skill.harness_file import FoundHarness, find_harness
from trunchray.frontends.skill.labels import run_label
from trunchray.frontends.skill.session import How, Question, Ran, carry_out
from trunchray.frontends.skill.skill_md import skill_folder
from trunchray.frontends.skill.summary import EXECUTION, ExecutionSummary, summarise

Mode = Literal["quality", "baseline", "variant"]
"""The skill alone; beside the bare tool; beside another version of it."""
CONFIGS: Mapping[Mode, tuple[str, ...]] = {
    "quality": ("skill",),
    "baseline": ("skill", "bare"),
    "variant": ("skill", "variant"),
}
TOGETHER = "harness"
"""The name of what bounds the runs of all configs."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked for. None: as the documented defaults say."""

    skill_path: str
    cases: str | None = None
    mode: Mode = "quality"
    variant_path: str | None = None
    project_root: str | None = None
    harness: str | None = None
    case_ids: tuple[str, ...] | None = None
    runs: int = 1
    timeout: float = 600
    """Seconds that one attempt may take."""
    workers: int = 4
    """Attempts under way at a time, of all configs together."""
    label: str | None = None
    grading: GraderSpec | None = None


@dataclass(frozen=True, slots=True)
class _Read:
    """All that was read before anything runs."""

    file: str
    cases: Sequence[SkillCase]
    skills: Mapping[str, tuple[SkillTree, bytes] | None]
    """By config; None for the bare tool."""
    found: FoundHarness
    fixtures: Fixtures


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is asked, and what `run.json` says of it."""

    question: Question
    about: Mapping[str, JsonValue]
    found: FoundHarness


def run_cases(options: Options, how: How) -> tuple[Ran, ExecutionSummary]:
    """Run what no earlier command of the same kind has, and sum up all of it.

    Raises:
        UsageError: something that was named is missing or wrong; nothing ran.
        StoreError: the store refused or lost something; finished attempts are kept.
        Interrupted: not all attempts have ended; the same command continues.
    """
    asked = prepare(options)
    ran = carry_out(asked.question, how, asked.about)
    cases = [case.id for case in asked.question.cases]
    return ran, summarise(ran, cases, CONFIGS[options.mode], options.mode, asked.found)


def prepare(options: Options) -> Prepared:
    """Read all that is named; nothing is written.

    Raises:
        UsageError: something is missing or wrong.
    """
    read = _read(options)
    return Prepared(_question(options, read), _about(options, read), read.found)


def _read(options: Options) -> _Read:
    if options.mode not in get_args(Mode):
        raise UsageError(f"--mode {options.mode!r}: choose one of {', '.join(get_args(Mode))}")
    skill = skill_folder(options.skill_path)
    project = project_of(skill, options.project_root)
    file = options.cases or str(find_file("cases.json", skill, project))
    cases = _chosen(read_cases(file), options.case_ids)
    if options.mode == "quality":
        check_rubrics(cases)
    skills = _skills(options, skill)
    found = find_harness(options.harness, project)
    roots = [*([project] if project else []), Path(file).absolute().parent]
    fixtures = read_fixtures(cases, roots, skill_dir=(found.harness or Harness(command=("{prompt}",))).skill_dir)
    return _Read(file, cases, skills, found, fixtures)


def project_of(skill: Path, given: str | None) -> Path | None:
    """The project's folder: the given one, or the one that the skill is in.

    Raises:
        UsageError: the given one is no folder.
    """
    if given is None:
        return find_project(skill)
    if not (folder := Path(given).absolute()).is_dir():
        raise UsageError(f"--project-root {given!r}: there is no such folder")
    return folder


def _chosen(cases: Sequence[SkillCase], ids: Sequence[str] | None) -> Sequence[SkillCase]:
    if ids is None:
        return cases
    known = [case.id for case in cases]
    for id_ in ids:
        if id_ not in known:
            raise UsageError(f"--case-ids: there is no case {id_!r}{nearest(id_, known)}")
    return [case for case in cases if case.id in ids]


def _skills(options: Options, skill: Path) -> dict[str, tuple[SkillTree, bytes] | None]:
    if options.mode == "variant" and options.variant_path is None:
        raise UsageError("--mode variant compares with another version of the skill; name its folder by --variant-path")
    if options.mode != "variant" and options.variant_path is not None:
        raise UsageError(f"--variant-path: nothing is compared with it in mode {options.mode!r}; give --mode variant")
    folders = {"skill": skill, "bare": None}
    if options.variant_path is not None:
        folders["variant"] = skill_folder(options.variant_path, "--variant-path")
    return {config: packed(folders[config]) for config in CONFIGS[options.mode]}


def packed(folder: Path | None) -> tuple[SkillTree, bytes] | None:
    """A skill as workers get it.

    Raises:
        UsageError: it holds what cannot be copied.
    """
    if folder is None:
        return None
    try:
        content = pack(folder)
    except (TreeError, OSError) as e:
        raise UsageError(f"the skill cannot be copied: {e}") from e
    return SkillTree(name=folder.name, tree=sha256(content)), content


def _question(options: Options, read: _Read) -> Question:
    skill = Path(options.skill_path).absolute().name
    quota = Quota(name=TOGETHER, max_in_flight=options.workers)
    agents = [
        HarnessAgent(
            name=config,
            harness=read.found.harness,
            skill=found[0] if found else None,
            timeout=options.timeout,
            staging="",
            pacing=Pacing(max_in_flight=options.workers),
            quota=quota,
        )
        for config, found in read.skills.items()
    ]
    trees = {tree.tree: content for tree, content in filter(None, read.skills.values())}
    return Question(
        label=options.label or run_label(skill, options.mode),
        title=f"{skill} {options.mode}",
        source=read.file,
        cases=[_case(case, number, options, read) for number, case in enumerate(read.cases, 1)],
        staged={case_id(case.id): _staged(case, read) for case in read.cases},
        layout="cases",
        agents=agents,
        attempts=options.runs,
        grading=options.grading,
        inputs={**trees, **read.fixtures.contents},
        ending=EXECUTION,
    )


def _case(case: SkillCase, number: int, options: Options, read: _Read) -> Case:
    skill = Path(options.skill_path).absolute().name
    lines: dict[str, Check] = {f"rubric-{place}": RubricLine(text=line) for place, line in enumerate(case.rubric, 1)}
    graded = options.grading is not None and lines
    files: list[JsonValue] = [each.model_dump(mode="json") for each in read.fixtures.of_case[case.id]]
    return Case(
        id=case_id(case.id),
        eval_id=slug(f"{skill} {options.mode}"),
        title=case.id,
        input=CaseInput(prompt=case.prompt),
        data={"files": files, "rubric": [*case.rubric]},
        checks=lines if graded else {"completed": Completed()},
        source=Origin(path=read.file, row=number),
    )


def _staged(case: SkillCase, read: _Read) -> StagedCase:
    return StagedCase(
        folder=case.folder, case=case.written, fixtures=read.fixtures.of_case[case.id], timeout=case.timeout
    )


def _about(options: Options, read: _Read) -> dict[str, JsonValue]:
    """What `run.json` says."""
    trees: dict[str, JsonValue] = {config: found[0].tree if found else None for config, found in read.skills.items()}
    command: list[JsonValue] | None = [*read.found.harness.command] if read.found.harness else None
    return {
        "cases_file": read.file,
        "skill_path": options.skill_path,
        "variant_path": options.variant_path,
        "mode": options.mode,
        "configs": [*CONFIGS[options.mode]],
        "runs_per_case": options.runs,
        "harness": read.found.source,
        "command": command,
        "case_count": len(read.cases),
        "fixtures": [{"file": entry, "sha256": sha} for entry, sha in read.fixtures.entries.items()],
        "skill_trees": trees,
        "grader": options.grading.asked if options.grading else None,
        "trunchray": version("trunchray"),
    }
