"""`trunchray skills run`: the cases of a skill, with it, without it, or with another version of it.

case file, skill, harness, fixtures ─▶ question ─▶ the engine ─▶ attempt folders, execution-summary.json
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from trunchray.adapters.tree import TreeError, pack
from trunchray.core.agent import SkillTree
from trunchray.core.case import Case, CaseInput, Origin
from trunchray.core.checks import Completed
from trunchray.core.digest import sha256
from trunchray.core.grader_spec import GraderSpec
from trunchray.core.harness import SKILL_DIR
from trunchray.core.names import nearest
from trunchray.core.release import slug
from trunchray.core.staging import StagedCase
from trunchray.errors import UsageError
from trunchray.frontends.case_release import case_id
from trunchray.frontends.skill.case_file import SkillCase, check_rubrics, read_cases
from trunchray.frontends.skill.discovery import hidden_from_tools, locate
from trunchray.frontends.skill.fixtures import Fixtures, read_fixtures, roots_of
from trunchray.frontends.skill.graded_release import rubric_checks
from trunchray.frontends.skill.harness_file import FoundHarness, find_harness
from trunchray.frontends.skill.labels import run_label
from trunchray.frontends.skill.project import project_of
from trunchray.frontends.skill.session import (
    HarnessConfig,
    How,
    Question,
    Ran,
    announce,
    carry_out,
    check_outside,
    told_of,
)
from trunchray.frontends.skill.skill_md import read_skill_md, skill_folder
from trunchray.frontends.skill.summary import EXECUTION, ExecutionSummary, summarise

Mode = Literal["quality", "baseline", "variant"]
"""The skill alone; beside the bare tool; beside another version of it."""
CONFIGS: Mapping[Mode, tuple[str, ...]] = {
    "quality": ("skill",),
    "baseline": ("skill", "bare"),
    "variant": ("skill", "variant"),
}


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

    file: Path
    cases: Sequence[SkillCase]
    folders: Mapping[str, Path]
    """Of the skills, by config; the bare tool has none."""
    skills: Mapping[str, tuple[SkillTree, bytes]]
    """As workers get them."""
    found: FoundHarness
    fixtures: Fixtures

    @property
    def name(self) -> str:
        """Of the skill: that of its folder."""
        return self.folders["skill"].name


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is asked, what `run.json` says of it, and what it was read from."""

    question: Question
    about: Mapping[str, JsonValue]
    found: FoundHarness
    file: Path
    folders: Sequence[Path]
    """Of the skills."""
    notes: Sequence[str] = ()
    """What people should know before anything runs."""


def run_cases(options: Options, how: How) -> tuple[Ran, ExecutionSummary]:
    """Run what no earlier command of the same kind has, and sum up all of it.

    Raises:
        UsageError: something that was named is missing or wrong; nothing ran.
        StoreError: the store refused or lost something; finished attempts are kept.
        Interrupted: not all attempts have ended; the same command continues.
    """
    asked = prepare(options)
    check_outside(how.out, asked.folders)
    announce(how.observer, None if options.cases else asked.file, None if options.harness else asked.found)
    for note in asked.notes:
        how.observer.note(note)
    ran = carry_out(asked.question, how, asked.about)
    cases = [case.id for case in asked.question.cases]
    configs, harness = CONFIGS[options.mode], asked.found.source
    return ran, summarise(ran, cases, configs, options.mode, harness=harness, now=how.now())


def prepare(options: Options) -> Prepared:
    """Read all that is named; nothing is written.

    Raises:
        UsageError: something is missing or wrong.
    """
    read = _read(options)
    folders = [*read.folders.values()]
    return Prepared(_question(options, read), _about(options, read), read.found, read.file, folders, [*_notes(folders)])


def _notes(folders: Sequence[Path]) -> Iterator[str]:
    """What of the skills looks like a mistake. A variant is most often a version of the skill, and keeps its name."""
    names: list[str] = []
    for folder in folders:
        try:
            names.append(read_skill_md(folder).name)
        except UsageError as e:
            yield f"{e}; most coding tools load no such skill, and then it is worth nothing"
    if len(set(names)) > 1:
        yield f"the variant is another skill: it is called {names[1]!r}, and not {names[0]!r}"


def _read(options: Options) -> _Read:
    skill = skill_folder(options.skill_path)
    project = project_of(skill, options.project_root)
    file = locate("cases.json", options.cases, skill, project and project.folder)
    cases = _chosen(read_cases(file), options.case_ids)
    if options.mode == "quality":
        check_rubrics(cases)
    folders = _folders(options, skill)
    skills = {config: _packed(folder, file) for config, folder in folders.items()}
    _check_variant([tree for tree, _ in skills.values()])
    found = find_harness(options.harness, project)
    skill_dir = found.harness.skill_dir if found.harness else SKILL_DIR
    fixtures = read_fixtures(cases, roots_of(project, file, skill), skill_dir=skill_dir)
    return _Read(file, cases, folders, skills, found, fixtures)


def _chosen(cases: Sequence[SkillCase], ids: Sequence[str] | None) -> Sequence[SkillCase]:
    if ids is None:
        return cases
    known = [case.id for case in cases]
    for id_ in ids:
        if id_ not in known:
            raise UsageError(f"--case-ids: there is no case {id_!r}{nearest(id_, known)}")
    return [case for case in cases if case.id in ids]


def _folders(options: Options, skill: Path) -> dict[str, Path]:
    if options.mode == "variant" and options.variant_path is None:
        raise UsageError("--mode variant compares with another version of the skill; name its folder by --variant-path")
    if options.mode != "variant" and options.variant_path is not None:
        raise UsageError(f"--variant-path: nothing is compared with it in mode {options.mode!r}; give --mode variant")
    if options.variant_path is None:
        return {"skill": skill}
    return {"skill": skill, "variant": skill_folder(options.variant_path, "--variant-path")}


def _packed(folder: Path, cases: Path) -> tuple[SkillTree, bytes]:
    """A skill as workers get it: without its cases and queries, which hold what is expected of it."""
    try:
        content = pack(folder, leave_out=hidden_from_tools(folder, cases))
    except (TreeError, OSError) as e:
        raise UsageError(f"the skill {str(folder)!r} cannot be copied for each attempt: {e}") from e
    return SkillTree(name=folder.name, tree=sha256(content)), content


def _check_variant(skills: Sequence[SkillTree]) -> None:
    """Two skills of one name and one content would be one agent with two names."""
    if len(set(skills)) < len(skills):
        raise UsageError(
            "--variant-path: the skill there has the name and the files of the other one, so nothing would be "
            "compared; change it, or give --runs to repeat the same one"
        )


def _question(options: Options, read: _Read) -> Question:
    trees = {config: tree for config, (tree, _) in read.skills.items()}
    configs = [
        HarnessConfig(config, read.found.harness, options.timeout, options.workers, skill=trees.get(config))
        for config in CONFIGS[options.mode]
    ]
    packed = {tree.tree: content for tree, content in read.skills.values()}
    return Question(
        label=options.label or run_label(read.name, options.mode),
        title=f"{read.name} {options.mode}",
        source=str(read.file),
        cases=[_case(case, number, options, read) for number, case in enumerate(read.cases, 1)],
        staged={case_id(case.id): _staged(case, read) for case in read.cases},
        layout="cases",
        configs=configs,
        attempts=options.runs,
        grading=options.grading,
        inputs={**packed, **read.fixtures.contents},
        ending=EXECUTION,
    )


def _case(case: SkillCase, number: int, options: Options, read: _Read) -> Case:
    lines = rubric_checks(case.rubric)
    graded = options.grading is not None and lines
    files: list[JsonValue] = [each.model_dump(mode="json") for each in read.fixtures.of_case[case.id]]
    return Case(
        id=case_id(case.id),
        eval_id=slug(f"{read.name} {options.mode}"),
        title=case.id,
        input=CaseInput(prompt=case.prompt),
        data={"files": files, "rubric": [*case.rubric]},
        checks=lines if graded else {"completed": Completed()},
        source=Origin(path=str(read.file), row=number),
    )


def _staged(case: SkillCase, read: _Read) -> StagedCase:
    return StagedCase(
        folder=case.folder, case=case.written, fixtures=read.fixtures.of_case[case.id], timeout=case.timeout
    )


def _about(options: Options, read: _Read) -> dict[str, JsonValue]:
    """What `run.json` says."""
    trees: dict[str, JsonValue] = dict.fromkeys(CONFIGS[options.mode])
    trees |= {config: tree.tree for config, (tree, _) in read.skills.items()}
    return {
        "cases_file": str(read.file),
        "skill_path": str(read.folders["skill"]),
        "variant_path": str(read.folders["variant"]) if "variant" in read.folders else None,
        "mode": options.mode,
        "configs": [*CONFIGS[options.mode]],
        "runs_per_case": options.runs,
        **told_of(read.found),
        "case_count": len(read.cases),
        "fixtures": [{"file": entry, "sha256": sha} for entry, sha in read.fixtures.entries.items()],
        "skill_trees": trees,
        "grader": options.grading.asked if options.grading else None,
    }
