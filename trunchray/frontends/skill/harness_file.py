"""Which coding tool evals run through: a JSON file of harness keys, or what BMad has recorded for the project."""

from __future__ import annotations

from typing import Any

from trunchray.adapters.location import absolute
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.harness import Harness
from trunchray.errors import UsageError
from trunchray.frontends.checked import validated
from trunchray.frontends.skill.bmad import harness_keys, is_set_up
from trunchray.frontends.skill.entry import kind
from trunchray.frontends.skill.json_file import read_json
from trunchray.frontends.skill.project import Project


class FoundHarness(Frozen):
    """The harness, or None where none is recorded; then everything is staged and nothing runs."""

    harness: Harness | None
    source: str
    """Where it is from, or why there is none: what `run.json` says under `harness`."""


def find_harness(given: str | None, project: Project | None) -> FoundHarness:
    """The harness in the file that was given, else the one that is recorded in the project.

    Raises:
        UsageError: the file, or a layer of BMad's, cannot be read, is another user's, or describes no harness.
    """
    if given is not None:
        return FoundHarness(harness=read_harness(given), source=absolute(given))
    if project is None:
        return FoundHarness(harness=None, source="no project around the skill; give --harness FILE")
    if not is_set_up(project):
        return FoundHarness(harness=None, source=f"BMad is not set up in {project.folder}; give --harness FILE")
    if (recorded := harness_keys(project)) is None:
        return FoundHarness(
            harness=None, source=f"no [workflow.harness] with a command in {project.folder / '_bmad' / 'custom'}"
        )
    keys, source = recorded
    return FoundHarness(harness=_harness(keys, source), source=source)


def read_harness(location: str) -> Harness:
    """The harness that a JSON file describes.

    Raises:
        UsageError: the file is not there, or describes none.
    """
    return _harness(read_json(location, "the harness"), location)


def _harness(keys: Any, place: str) -> Harness:
    if not isinstance(keys, dict):
        raise UsageError(f"{place}: a harness is an object with 'command', not {kind(keys)}")
    try:
        return validated(Harness, keys, lambda _: place)
    except TypeError as e:  # TOML has dates, which JSON has not
        raise UsageError(f"{place}: {excerpt(str(e), 200)}; write it as text") from e
