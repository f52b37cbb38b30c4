"""A fresh place for one run of a coding tool: an empty workspace and an empty home, gone when the run is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trunchray.adapters.calling import in_thread
from trunchray.adapters.scratch import scratch
from trunchray.adapters.tree import TreeError, copy_file, followed, unpack
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.harness import Harness
from trunchray.core.inside import inside

_GIT_SECONDS = 30
_MOST_OF_HOME = 1 << 30
"""Bytes of all home files together."""


class StagingError(Exception):
    """The workspace or the home could not be prepared; the message says why."""


@dataclass(frozen=True, slots=True)
class CleanRoom:
    """A workspace (`cwd`) and a home beside it. Its methods block."""

    folder: Path

    @property
    def cwd(self) -> Path:
        return self.folder / "cwd"

    @property
    def home(self) -> Path:
        return self.folder / ".home"

    def put(self, path: str, content: bytes) -> None:
        """A file in the workspace; folders are made as needed.

        Raises:
            StagingError: it would be outside, or something else is there.
        """
        try:
            target = self.cwd / inside(path)
            if target.exists():
                raise StagingError(f"{path!r} is in the workspace already")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except (OSError, ValueError) as e:
            why = e.strerror if isinstance(e, OSError) else str(e)
            raise StagingError(f"{path!r} escapes the workspace or cannot be put there: {why}") from e

    def add_skill(self, skill_dir: str, name: str, packed: bytes) -> None:
        """A skill, as `tree.pack` packed it, in a folder of its own.

        Raises:
            StagingError: it cannot be put there.
        """
        try:
            unpack(packed, self.cwd / inside(skill_dir) / name)
        except (OSError, TreeError, ValueError) as e:
            raise StagingError(f"the skill {name!r} cannot be staged: {e}") from e

    def furnish_home(self, harness: Harness, host_home: Path) -> list[str]:
        """Make the folders that variables name, and bring the home files; what of these is missing, as warnings.

        A file is copied. A folder is copied as well, except on macOS, whose keychains work in their place only: there
        it is a link, and the tool may write to what it leads to.

        Raises:
            StagingError: they are too large, or cannot be read.
        """
        try:
            for folder in harness.home_folders:
                (self.home / inside(folder)).mkdir(parents=True, exist_ok=True)
            return [warning for file in harness.home_files for warning in self._bring(host_home / file, file)]
        except (OSError, TreeError, ValueError) as e:
            raise StagingError(f"the home folder cannot be prepared: {e}") from e

    def _bring(self, source: Path, path: str) -> list[str]:
        target = self.home / path
        if source.is_file():
            copy_file(source, target)
            shutil.copymode(source, target)
        elif source.is_dir() and sys.platform == "darwin":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
        elif source.is_dir():
            _copy_folder(source, target)
        else:
            return [f"home_files: {path!r} is not there on this machine"]
        return []

    def environment(self, harness: Harness, host: Mapping[str, str]) -> dict[str, str]:
        """All variables of a run: the host's PATH, the fresh home, and what the harness says."""
        own = {"PATH": host.get("PATH") or os.defpath, "HOME": str(self.home)}
        return own | harness.environment(str(self.home), dict(host))

    def init_git(self, host: Mapping[str, str]) -> None:
        """Make the workspace a git repository, where tools see the end of the project; a failure does not matter."""
        env = {"PATH": host.get("PATH") or os.defpath, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["git", "init", "-q", "."],
                cwd=self.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_SECONDS,
                check=False,
            )


@asynccontextmanager
async def clean_room(place: Path | None = None) -> AsyncGenerator[CleanRoom]:
    """A room for the time of the block, below `place`; None is for the user's folder among temporary files.

    Raises:
        UsageError: there is no such folder.
        OSError: the room cannot be made.
    """
    with contextlib.ExitStack() as held:
        room = CleanRoom(held.enter_context(scratch(place)).resolve())
        room.cwd.mkdir()
        room.home.mkdir(mode=0o700)
        try:
            yield room
        finally:
            await uninterrupted(in_thread(partial(remove, room.folder)))


def remove(folder: Path) -> None:
    """Remove a folder, also where a tool has taken its own rights away, or nested folders without end."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    left = _MOST_OF_HOME
    for path, found in followed(source, frozenset(), strict=False):
        if found.is_dir():
            (target / path).mkdir(exist_ok=True)
            continue
        left -= found.stat().st_size
        if left < 0:
            raise TreeError(f"{source} has more than {_MOST_OF_HOME >> 30} GiB; name what the tool needs of it")
        copy_file(found, target / path)
        shutil.copymode(found, target / path)
