"""What a project that BMad is set up in says about evals, in layers of TOML files: the harness, and where runs go.

Later layers win: tables are merged key by key, and anything else replaces what was there. BMad itself would append
lists, so that somebody's own `command` would be added to the team's; its documentation says that the own one wins.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trunchray.core.excerpt import excerpt
from trunchray.errors import UsageError
from trunchray.frontends.skill.project import Project

HOME_OUTPUT = "~/bmad-evals"
"""Where runs go in a project without BMad."""

_SKILL = "bmad-eval"
_INSTALLED = (".agents/skills", ".claude/skills", "skills", "_bmad/skills")
"""Where a project keeps skills, and with them the defaults of BMad's own."""
_REPORTS = "{output_folder}/eval-reports"
_OUTPUT = "{project-root}/_bmad-output"
"""What BMad's installer suggests."""
_PLACES = re.compile(r"\{([^{}]*)\}")


def is_set_up(project: Project | None) -> bool:
    return project is not None and (project.folder / "_bmad").is_dir()


def harness_keys(project: Project) -> tuple[object, str] | None:
    """What `workflow.harness` is in all layers together, and which files say so; None where no command is recorded.

    Raises:
        UsageError: a layer cannot be read, or is not to be trusted.
    """
    layers = _customization(project)
    keys = _table(_merged(layers), "workflow").get("harness")
    if keys is None or (isinstance(keys, dict) and not keys.get("command")):
        return None
    files = [file for file, layer in layers if "harness" in _table(layer, "workflow")]
    return keys, f"[workflow.harness] of {', '.join(str(file.relative_to(project.folder)) for file in files)}"


def output_folder(project: Project | None) -> Path:
    """Where runs go when nobody says: the reports folder of a project with BMad, `~/bmad-evals` otherwise.

    Raises:
        UsageError: a layer cannot be read or is not to be trusted, or the folder in it is none.
    """
    if project is None or not is_set_up(project):
        return Path(HOME_OUTPUT).expanduser()
    reports = _table(_merged(_customization(project)), "workflow").get("reports_folder", _REPORTS)
    output = _table(_merged(_config(project)), "core").get("output_folder", _OUTPUT)
    output = _filled("core.output_folder", output, project.folder, {})
    values = {"project-root": str(project.folder), "output_folder": output}
    return Path(_filled("workflow.reports_folder", reports, project.folder, values))


def _customization(project: Project) -> list[tuple[Path, dict[str, Any]]]:
    folders = (project.folder / place / _SKILL for place in _INSTALLED)
    base = next((folder / "customize.toml" for folder in folders if (folder / "customize.toml").is_file()), None)
    custom = project.folder / "_bmad" / "custom"
    return _layers(project, [*([base] if base else []), custom / f"{_SKILL}.toml", custom / f"{_SKILL}.user.toml"])


def _config(project: Project) -> list[tuple[Path, dict[str, Any]]]:
    names = ("config.toml", "config.user.toml", "custom/config.toml", "custom/config.user.toml")
    return _layers(project, [project.folder / "_bmad" / name for name in names])


def _layers(project: Project, files: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """Those that exist, in order, with what they say."""
    there = [file for file in files if file.exists()]
    if not project.named:
        _check_owners(project, [project.folder / "_bmad", *(file.parent for file in there), *there])
    return [(file, _read(file)) for file in there]


def _check_owners(project: Project, paths: Sequence[Path]) -> None:
    """As git does, refuse what another user has put around us, as into `/tmp`: it says what is run as our user."""
    for path in paths:
        if others := {path.stat().st_uid, path.lstat().st_uid} - {0, os.getuid()}:
            raise UsageError(
                f"{path} belongs to another user ({others.pop()}), and it decides what is run and where results go; "
                f"if you trust it, give --project-root {project.folder}, else --harness FILE and --output-dir DIR"
            )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as e:
        raise UsageError(f"cannot read {str(file)!r}: {e.strerror}") from e
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{file}: is not TOML: {e}") from e


def _merged(layers: Sequence[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, layer in layers:
        found = _over(found, layer)
    return found


def _over(base: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in layer.items():
        there = found.get(key)
        found[key] = _over(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return found


def _table(values: dict[str, Any], key: str) -> dict[str, Any]:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _filled(key: str, value: object, project: Path, known: dict[str, str]) -> str:
    """A folder, absolute, with what its `{names}` stand for."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{key} of {project / '_bmad'}: must be a folder (got {excerpt(repr(value), 60)})")
    known = {"project-root": str(project)} | known
    if unknown := [name for name in _PLACES.findall(value) if name not in known]:
        raise UsageError(f"{key} of {project / '_bmad'}: {{{unknown[0]}}} in {value!r} is not known; give --output-dir")
    filled = _PLACES.sub(lambda found: known[found[1]], value)
    return str(project / Path(filled).expanduser())
