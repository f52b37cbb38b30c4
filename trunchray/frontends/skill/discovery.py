"""Where the cases and the trigger queries of a skill are: as somebody named the file, or where it is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from trunchray.adapters.local_path import local_path, storable
from trunchray.adapters.location import is_uri
from trunchray.core.excerpt import excerpt
from trunchray.errors import UsageError

Wanted = Literal["cases.json", "triggers.json"]

_OPTIONS = {"cases.json": "--cases", "triggers.json": "--queries"}
_FOREIGN = "evals.json"


def locate(wanted: Wanted, given: str | None, skill: Path, project: Path | None) -> Path:
    """The file that was given, or else the one that is found; absolute, and the same however it was named.

    Raises:
        UsageError: a URI was given, there is no file, it is not clear which one is meant, or its path cannot be
            stored.
    """
    if given is None:
        file = find_file(wanted, skill, project)
    elif is_uri(given):
        raise UsageError(
            f"{_OPTIONS[wanted]} {given!r}: must be a file on this machine, as fixtures are looked for beside it; "
            "copy it here first"
        )
    else:
        file = local_path(given.removeprefix("file://"))
    return storable(file.absolute().parent.resolve() / file.name)


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


def hidden_from_tools(skill: Path, *used: Path) -> list[Path]:
    """The files of a skill that say what is expected of it; with them a tool could read its rubric.

    `used` are those of them that are kept elsewhere.
    """
    return [*used, *(skill / "evals" / name for name in (*_OPTIONS, _FOREIGN))]


def _none(wanted: Wanted, looked: Sequence[Path]) -> str:
    places = " and ".join(excerpt(str(folder), 200) for folder in looked)
    message = f"no {wanted} in {places}; write one, or name it with {_OPTIONS[wanted]}: trunchray does not invent cases"
    foreign = next((folder / _FOREIGN for folder in looked if (folder / _FOREIGN).is_file()), None)
    if wanted == "cases.json" and foreign:
        message += f". Convert skill-creator's file first: `trunchray skills convert {foreign}`"
    return message
