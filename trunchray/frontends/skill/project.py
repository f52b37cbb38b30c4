"""The project that a skill belongs to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with what belongs together: skills, their evals, fixtures, what BMad keeps."""

    folder: Path
    """Absolute."""
    named: bool = False
    """Whether somebody named it. One that was only found is trusted less: its hidden files are no fixtures, and what
    other users have written there is not run."""


def project_of(skill: Path, given: str | None) -> Project | None:
    """The project that was given by `--project-root`, or else the one that the skill is in, if there is one.

    Raises:
        UsageError: the given one is no folder.
    """
    if given is None:
        found = find_project(skill)
        return Project(found) if found else None
    if not given or not (folder := Path(given).absolute()).is_dir():
        raise UsageError(f"--project-root {given!r}: there is no such folder")
    return Project(folder, named=True)


def find_project(skill: Path) -> Path | None:
    """The nearest folder around a skill with `_bmad/`, else with `.git`, else None; never one that is too wide."""
    around = [folder for folder in (skill, *skill.parents) if not is_too_wide(folder)]
    set_up = (folder for folder in around if (folder / "_bmad").is_dir())
    return next(set_up, None) or next((folder for folder in around if (folder / ".git").exists()), None)


def is_too_wide(folder: Path) -> bool:
    """Whether it is the home folder, which some keep in git for their dotfiles, or the root.

    A case file of a stranger could ask for logins and keys there.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - it is no error to have none
    return folder.resolve() in {home.resolve(), Path(folder.absolute().anchor)}
