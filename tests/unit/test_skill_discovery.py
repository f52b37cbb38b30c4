"""Where cases and trigger queries are looked for, and which project a skill belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.discovery import Wanted, find_file, find_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "skills" / "writer").mkdir(parents=True)
    return tmp_path


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("[]")


def found(project: Path, wanted: Wanted = "cases.json") -> str:
    return str(find_file(wanted, project / "skills" / "writer", project).relative_to(project))


def test_the_nearest_place_wins(project: Path):
    """The skill's own evals, then the project's for the skill, then whatever one file there is below."""
    put(project, "evals/deep/er/cases.json")
    assert found(project) == "evals/deep/er/cases.json"
    put(project, "evals/writer/cases.json")
    assert found(project) == "evals/writer/cases.json"
    put(project, "skills/writer/evals/cases.json")
    assert found(project) == "skills/writer/evals/cases.json"


def test_cases_and_queries_are_looked_for_apart(project: Path):
    """Each by its own name."""
    put(project, "skills/writer/evals/cases.json", "evals/triggers.json")
    assert found(project, "triggers.json") == "evals/triggers.json"


def test_several_files_are_listed_and_none_is_taken(project: Path):
    """In a stable order, with the option that settles it."""
    put(project, "evals/b/cases.json", "evals/a/cases.json", "evals/cases.json")
    with pytest.raises(UsageError) as error:
        found(project)
    places = "".join(f"\n  {project / 'evals' / name}" for name in ("a/cases.json", "b/cases.json", "cases.json"))
    assert str(error.value) == f"which cases.json is meant? Name one with --cases; there are 3:{places}"


def test_no_file_is_ever_made_up(project: Path):
    """Where none is, it is said where it was looked for; without a project, only beside the skill."""
    with pytest.raises(UsageError, match=r"no triggers.json in .*/writer/evals and .* with --queries"):
        found(project, "triggers.json")
    put(project, "evals/cases.json")
    with pytest.raises(UsageError, match=r"no cases.json in \S*/skills/writer/evals; .* does not invent cases"):
        find_file("cases.json", project / "skills" / "writer", None)


def test_a_file_of_skill_creator_is_never_taken_for_cases(project: Path):
    """It has to be converted first, which the message says."""
    put(project, "skills/writer/evals/evals.json")
    with pytest.raises(UsageError, match=r"`trunchray skills convert .*/writer/evals/evals.json`"):
        found(project)


def test_a_project_is_where_bmad_is_set_up_or_else_where_git_is(tmp_path: Path):
    """A nearer `.git` does not hide `_bmad`; without either there is no project."""
    skill = tmp_path / "outer" / "inner" / "skill"
    skill.mkdir(parents=True)
    assert find_project(skill) is None
    (tmp_path / "outer" / "inner" / ".git").write_text("gitdir: elsewhere")
    assert find_project(skill) == tmp_path / "outer" / "inner"
    (tmp_path / "outer" / "_bmad").mkdir()
    assert find_project(skill) == tmp_path / "outer"
