"""Where cases and trigger queries are looked for, and which project a skill belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.discovery import Wanted, find_file, locate
from trunchray.frontends.skill.project import find_project


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


def test_a_file_is_the_same_however_it_was_named(project: Path, monkeypatch: pytest.MonkeyPatch):
    """Absolute, from the folder where one stands, by discovery, or through a link to its folder."""
    put(project, "skills/writer/evals/cases.json")
    (project / "short").symlink_to("skills/writer")
    monkeypatch.chdir(project / "skills")
    skill = project / "skills" / "writer"
    file = str(skill / "evals" / "cases.json")
    ways = (None, file, f"file://{file}", "writer/evals/cases.json", "../skills/writer/evals/cases.json")
    through = str(project / "short" / "evals" / "cases.json")
    assert {str(locate("cases.json", way, skill, project)) for way in (*ways, through)} == {file}


def test_a_case_file_in_a_store_is_refused(project: Path):
    """Its fixtures would be looked for in a folder `s3:` here."""
    for wanted, option in (("cases.json", "--cases"), ("triggers.json", "--queries")):
        with pytest.raises(UsageError, match=f"{option} 's3://b/c.json': must be a file on this machine"):
            locate(wanted, "s3://b/c.json", project, None)


@pytest.mark.parametrize("marker", ["_bmad", ".git"])
def test_the_home_folder_is_no_project_that_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str):
    """Not even with dotfiles in git: a stranger's case file could ask for all that is in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / marker).mkdir(parents=True)
    skill = tmp_path / "home" / "work" / "skill"
    skill.mkdir(parents=True)
    assert find_project(skill) is None
    (tmp_path / "home" / "work" / ".git").mkdir()
    assert find_project(skill) == tmp_path / "home" / "work"


def test_a_project_is_where_bmad_is_set_up_or_else_where_git_is(tmp_path: Path):
    """A nearer `.git` does not hide `_bmad`; without either there is no project."""
    skill = tmp_path / "outer" / "inner" / "skill"
    skill.mkdir(parents=True)
    assert find_project(skill) is None
    (tmp_path / "outer" / "inner" / ".git").write_text("gitdir: elsewhere")
    assert find_project(skill) == tmp_path / "outer" / "inner"
    (tmp_path / "outer" / "_bmad").mkdir()
    assert find_project(skill) == tmp_path / "outer"
