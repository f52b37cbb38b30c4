"""The cases of a skill: a JSON list of them, or an object with the list `cases`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.frontends.skill.entry import Entry, kind, read_each
from trunchray.frontends.skill.json_file import read_json
from trunchray.frontends.skill.labels import MOST, safe_name

_OPTIONAL = ("rubric", "state_prefix", "files", "timeout")


class SkillCase(Frozen):
    """One case. `place` is where it was written, for messages."""

    place: str
    id: str
    folder: str
    """The name of its folder in a run: no other case of the file has it, nor one that differs by capitals alone."""
    input: str
    rubric: tuple[str, ...] = ()
    state_prefix: str | None = None
    """Text that puts the skill in the middle of its work; None starts cold."""
    files: tuple[str, ...] = ()
    """Fixtures as they were written: paths, or URLs of files on GitHub."""
    timeout: float | None = None
    """Seconds that one attempt may take; None: as the run says."""
    written: dict[str, JsonValue]
    """The whole case as it was written, unknown keys included."""

    @property
    def prompt(self) -> str:
        """What is sent: the input as it is, after the prefix if there is one."""
        return f"{self.state_prefix.rstrip()}\n\n{self.input}" if self.state_prefix else self.input


def read_cases(location: str | Path) -> tuple[SkillCase, ...]:
    """The cases of a file, in order; their ids and folders differ.

    Raises:
        UsageError: the file cannot be read, holds no case, or something that is none; with every problem.
    """
    where = str(location)
    cases = read_each(f"{where}: cases", _list(where, read_json(where, "the case file")), _case)
    if not cases:
        raise UsageError(f"{where}: has no cases; write at least one object with 'id' and 'input'")
    _check_folders(cases)
    return tuple(cases)


def check_rubrics(cases: Sequence[SkillCase]) -> None:
    """Make sure that there is something to grade in each case.

    Raises:
        UsageError: naming those without a rubric.
    """
    if bare := [case for case in cases if not case.rubric]:
        names = ", ".join(repr(excerpt(case.id, 40)) for case in bare[:8]) + (", …" if len(bare) > 8 else "")
        raise UsageError(
            f"{bare[0].place}: has no rubric, so it cannot be graded; cases without one: {names}; write what is "
            "expected as a list 'rubric', or leave these cases out with --case-ids"
        )


def _list(where: str, value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict) and "evals" in value and "cases" not in value:
        raise UsageError(f"{where}: is a skill-creator file; convert it first with `trunchray skills convert`")
    cases = value.get("cases") if isinstance(value, dict) else value
    if isinstance(cases, list):
        return cases
    found = f"'cases' is {kind(cases)}" if isinstance(value, dict) and "cases" in value else f"this is {kind(value)}"
    raise UsageError(f"{where}: a case file is a list of cases, or an object with the list 'cases'; {found}")


def _case(place: str, _at: int, value: JsonValue) -> SkillCase:
    entry = Entry(place, value, what="a case", needs=("id", "input"), takes=_OPTIONAL)
    name = _id(entry)
    case = SkillCase(
        place=place,
        id=name,
        folder=safe_name(name),
        input=entry.text("input") or "",
        rubric=entry.texts("rubric"),
        state_prefix=entry.text("state_prefix") or None,
        files=entry.texts("files"),
        timeout=entry.seconds("timeout"),
        written=entry.fields,
    )
    if not case.prompt.strip():
        raise entry.refused("input", "is empty, so nothing would be sent")
    return case


def _id(entry: Entry) -> str:
    value = entry.fields["id"]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise entry.refused("id", "must be text or an integer")
    if not str(value).strip():
        raise entry.refused("id", "must not be empty, it names the case's folder")
    if len(safe_name(str(value))) > MOST:
        raise entry.refused("id", f"is too long to name a folder, which takes {MOST} characters")
    return str(value)


def _check_folders(cases: Sequence[SkillCase]) -> None:
    """Two cases in one folder would overwrite each other; many file systems do not tell capitals from small letters."""
    first: dict[str, SkillCase] = {}
    for case in cases:
        other = first.setdefault(case.folder.casefold(), case)
        if other is case:
            continue
        here, there = excerpt(repr(case.id), 80), excerpt(repr(other.id), 80)
        if case.id == other.id:
            raise UsageError(f"{case.place}: the id {here} is already that of {other.place.rpartition(': ')[2]}")
        raise UsageError(
            f"{case.place}: the id {here} gives the folder {case.folder!r}, and so does {there} of "
            f"{other.place.rpartition(': ')[2]}; give one of them another id"
        )
