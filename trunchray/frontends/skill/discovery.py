"""Where the cases and the trigger queries of a skill are looked for when nobody names the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from trunchray.core.excerpt import excerpt
from trunchray.errors import UsageError

Wanted = Literal["cases.json", "triggers.json"]

_OPTIONS = {"cases.json": "--cases", "triggers.json": "--queries"}
_FOREIGN = "evals.json"


def find_project(skill: Path) -> Path | None:
    """The project that a skill belongs to: the nearest folder around it with `_bmad/`, else with `.git`, else None."""
    around = (skill, *skill.parents)
    set_up = (folder for folder in around if (folder / "_bmad").is_dir())
    return next(set_up, None) or next((folder for folder in around if (folder / ".git").exists()), None)


def find_file(wanted: Wanted, skill: Path, project: Path | None) -> Path:
    """A skill's file: in its own `evals/`, else in its project's `evals/<skill>/`, else the only one below `evals/`.

    The last rule also finds what the project has for other skills, so tell the user which file was taken.

    Raises:
        UsageError: there is none, or there are several by the last rule.
    """
    evals = [skill / "evals", *([project / "evals" / skill.name, project / "evals"] if project else [])]
    if found := next((folder / wanted for folder in evals[:2] if (folder / wanted).is_file()), None):
        return found
    below = sorted(file for file in (project / "evals").rglob(wanted) if file.is_file()) if project else []
    match below:
        case [file]:
            return file
        case []:
            raise UsageError(_none(wanted, evals))
        case several:
            names = "\n".join(f"  {file}" for file in several[:20])
            more = f"\n  … and {len(several) - 20} more" if len(several) > 20 else ""
            raise UsageError(
                f"which {wanted} is meant? Name one with {_OPTIONS[wanted]}; there are {len(several)}:\n{names}{more}"
            )


def _none(wanted: Wanted, looked: Sequence[Path]) -> str:
    places = " and ".join(excerpt(str(folder), 200) for folder in looked)
    message = f"no {wanted} in {places}; write one, or name it with {_OPTIONS[wanted]}: trunchray does not invent cases"
    foreign = next((folder / _FOREIGN for folder in looked if (folder / _FOREIGN).is_file()), None)
    if wanted == "cases.json" and foreign:
        message += f". Convert skill-creator's file first: `trunchray skills convert {foreign}`"
    return message
