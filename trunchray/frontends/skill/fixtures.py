"""The files that cases find in their workspaces: of the project, of the case file's folder, or pinned on GitHub.

All of them are read before any case starts; one that is missing stops the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trunchray.adapters.github_file import LARGEST, fetch
from trunchray.core.digest import sha256
from trunchray.core.excerpt import excerpt
from trunchray.core.inside import inside
from trunchray.core.pinned_file import PinnedFile, is_address, read_address
from trunchray.core.staging import Fixture
from trunchray.errors import UsageError
from trunchray.frontends.skill.case_file import SkillCase
from trunchray.frontends.skill.project import Project, is_too_wide


class Root(NamedTuple):
    """A folder that fixtures are looked for in."""

    folder: Path
    hidden: bool
    """Whether what is hidden there may be taken: files and folders whose names begin with a dot."""


@dataclass(frozen=True, slots=True)
class Fixtures:
    """What was read, by case id, by SHA-256, and by entry as `run.json` lists it."""

    of_case: Mapping[str, tuple[Fixture, ...]]
    contents: Mapping[str, bytes]
    entries: Mapping[str, str]
    """The SHA-256 of each entry."""


def roots_of(project: Project | None, case_file: Path, skill: Path) -> list[Root]:
    """Where fixtures are looked for, in order: in the project, beside the case file, and in the skill.

    Paths in files of skill-creator are relative to the skill.

    Keys and logins are in hidden files. They are taken only from where somebody has put them beside the cases, or
    where the project was named, and not merely found.
    """
    beside = Root(case_file.parent, hidden=not is_too_wide(case_file.parent))
    return [*([Root(project.folder, project.named)] if project else []), beside, Root(skill, hidden=False)]


def read_fixtures(
    cases: Sequence[SkillCase],
    roots: Sequence[Root],
    *,
    skill_dir: str,
    fetch: Callable[[PinnedFile], bytes] = fetch,
) -> Fixtures:
    """The fixtures of all cases. `roots` are looked through in order; nothing may land in `skill_dir`.

    Raises:
        UsageError: naming every entry that cannot be used.
    """
    reader = _Reader([Root(root.folder.resolve(), root.hidden) for root in roots], skill_dir, fetch)
    of_case: dict[str, tuple[Fixture, ...]] = {}
    problems: list[str] = []
    for case in cases:
        found: list[Fixture] = []
        for entry in case.files:
            try:
                found.append(reader.read(entry, found))
            except (ValueError, UsageError) as e:
                subject = "" if str(e).startswith(repr(entry)) else f"{excerpt(repr(entry), 120)} "
                problems.append(f"{case.place}: files: {subject}{e}")
        of_case[case.id] = tuple(found)
    if problems:
        raise UsageError("\n".join(problems))
    return Fixtures(of_case, reader.contents, reader.entries)


@dataclass(slots=True)
class _Reader:
    """Reads each entry once, however many cases name it."""

    roots: Sequence[Root]
    skill_dir: str
    fetch: Callable[[PinnedFile], bytes]
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    entries: dict[str, str] = field(default_factory=dict[str, str])

    def read(self, entry: str, others: Sequence[Fixture]) -> Fixture:
        """One more file of a case that has `others`.

        Raises:
            ValueError, UsageError: it cannot be used; the message goes on where the entry was named.
        """
        pinned = read_address(entry) if is_address(entry) else None
        path = pinned.name if pinned else inside(entry)
        self._refuse_place(path, others)
        if entry not in self.entries:
            content = self.fetch(pinned) if pinned else _content(self._find(path))
            self.entries[entry] = sha256(content)
            self.contents[self.entries[entry]] = content
        return Fixture(path=path, sha256=self.entries[entry])

    def _refuse_place(self, path: str, others: Sequence[Fixture]) -> None:
        if _overlap(path, self.skill_dir):
            raise ValueError(f"would land in {self.skill_dir!r}, where the tool reads skills from")
        if _overlap(path, ".git"):
            raise ValueError("would land in '.git', which is git's own folder")
        for other in others:
            if _overlap(path, other.path):
                raise ValueError(f"lands where another file of the case is, {other.path!r}")

    def _find(self, path: str) -> Path:
        for root in self.roots:
            try:
                file = (root.folder / path).resolve()
                there = file.exists()
            except (OSError, RuntimeError) as e:  # the latter of links in a circle
                why = e.strerror if isinstance(e, OSError) else str(e)
                raise ValueError(f"cannot be looked for in {str(root.folder)!r}: {why}; correct the entry") from e
            if there:
                self._refuse_file(file, root)
                return file
        places = " nor ".join(repr(str(folder)) for folder in dict.fromkeys(root.folder for root in self.roots))
        where = f"is neither in {places}" if " nor " in places else f"is not in {places}"
        raise ValueError(f"{where}; put it there, correct the entry, or name its folder with --project-root")

    def _refuse_file(self, file: Path, root: Root) -> None:
        if not file.is_relative_to(root.folder):
            raise ValueError(f"is a link that leads out of {str(root.folder)!r}; put a copy there")
        if not file.is_file():
            raise ValueError(
                "is a folder; name its files one by one"
                if file.is_dir()
                else "is neither a file nor a folder; put a regular file there"
            )
        if all(_hides(file, each) for each in self.roots):
            raise ValueError(
                f"is hidden in {str(root.folder)!r}, where keys and logins are; put a copy beside the case file, "
                "or name the project with --project-root"
            )


def _hides(file: Path, root: Root) -> bool:
    """Whether a file is outside of a folder, or hidden there and not to be taken."""
    if not file.is_relative_to(root.folder):
        return True
    return not root.hidden and any(part.startswith(".") for part in file.relative_to(root.folder).parts)


def _content(file: Path) -> bytes:
    try:
        if file.stat().st_size > LARGEST:
            raise ValueError(
                f"is larger than {LARGEST // 1_000_000} MB, which is too much for each attempt; shorten it"
            )
        return file.read_bytes()
    except OSError as e:
        raise ValueError(f"cannot be read: {e.strerror}; make it readable for the user who runs the evals") from e


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are one, or one of them would have to be a folder of the other. Case is no difference."""
    first, second = f"{one.casefold()}/", f"{other.casefold()}/"
    return first.startswith(second) or second.startswith(first)
