"""A fresh place for one run of a coding tool: an empty workspace and an empty home, gone when the run is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trunchray.adapters.attempt_folder import STDERR, TRANSCRIPT
from trunchray.adapters.calling import in_thread
from trunchray.adapters.fresh_home import prepare_home
from trunchray.adapters.harness_process import USUAL_CAPS, Caps, Capture, Command, Ending, run_command
from trunchray.adapters.host import Host
from trunchray.adapters.instructions import instructions_above, refusal
from trunchray.adapters.masked_files import mask_files
from trunchray.adapters.private_memory import close_memory
from trunchray.adapters.scratch import scratch
from trunchray.adapters.survey import TreeCaps
from trunchray.adapters.tree import TreeError, unpack
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.harness import Harness
from trunchray.core.inside import inside
from trunchray.core.masking import Mask
from trunchray.errors import UsageError

_GIT_SECONDS = 30


class StagingError(Exception):
    """The workspace or the home could not be prepared; the message says why."""


@dataclass(frozen=True, slots=True)
class CleanRoom:
    """A workspace (`cwd`) and a home beside it. Its methods block, but for `run`."""

    folder: Path
    host: Host
    mask: Mask
    """What is not kept of a run."""

    @property
    def cwd(self) -> Path:
        return self.folder / "cwd"

    @property
    def home(self) -> Path:
        return self.folder / ".home"

    @property
    def stdout(self) -> Path:
        return self.folder / TRANSCRIPT

    @property
    def stderr(self) -> Path:
        return self.folder / STDERR

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

    async def run(
        self,
        harness: Harness,
        prompt: str,
        *,
        limit: float,
        watch: Callable[[bytes], object],
        caps: Caps = USUAL_CAPS,
    ) -> Ending:
        """Run a tool here, once all it needs is in the workspace; `limit` is in seconds.

        What it prints is in `stdout` and `stderr`, and is given to `watch`, without credentials.

        Raises:
            StagingError: its home could not be prepared, or somebody has left instructions for it above the room.
            OSError: what it printed could not be written.
        """
        warnings = await in_thread(partial(self._prepare, harness))
        kept = Capture(self.stdout, self.stderr, caps=caps, watch=watch, mask=self.mask, warnings=warnings)
        ending = await run_command(self._command(harness, prompt, limit), kept, clock=self.host.clock)
        if planted := await in_thread(partial(instructions_above, self.folder)):
            raise StagingError(f"while it ran, {planted} came to be there: {refusal(planted)}")
        return ending

    def mask_workspace(self, caps: TreeCaps) -> list[str]:
        """Take credentials out of all that is kept by `caps`; else nothing is there afterwards, and why is returned."""
        try:
            mask_files(self.cwd, self.mask, caps)
        except OSError as e:
            remove(self.cwd)
            self.cwd.mkdir()
            return [f".: credentials could not be taken out of it: {e.strerror or e}"]
        return []

    def _prepare(self, harness: Harness) -> bytes:
        """All that is not the case's own; what is missing, as lines for people."""
        try:
            warnings = prepare_home(self.home, harness, self.host.home)
        except (OSError, TreeError, ValueError) as e:
            raise StagingError(f"the home folder cannot be prepared: {e}") from e
        self._init_git()
        if self.mask.left_out:
            warnings.append(f"home_files: {self.mask.left_out} texts in them are not masked; name fewer files")
        return "".join(f"trunchray: {warning}\n" for warning in warnings).encode(errors="replace")

    def _command(self, harness: Harness, prompt: str, limit: float) -> Command:
        """With all variables of a run: the host's PATH, the fresh home, and what the harness says."""
        env = self._own_variables() | harness.environment(str(self.home), dict(self.host.variables))
        return Command(harness.argv(prompt, str(self.cwd)), self.cwd, env, limit, self.host.grace)

    def _own_variables(self) -> dict[str, str]:
        return {"PATH": self.host.variables.get("PATH") or os.defpath, "HOME": str(self.home)}

    def _init_git(self) -> None:
        """Make the workspace a git repository, where tools see the end of the project; a failure does not matter."""
        env = self._own_variables() | {"GIT_CONFIG_NOSYSTEM": "1"}
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
async def clean_room(host: Host, harness: Harness | None) -> AsyncGenerator[CleanRoom]:
    """A room for the time of the block, for runs of this harness; None is for none.

    Whoever has rooms keeps its own memory from what runs in them.

    Raises:
        UsageError: there is no folder for it, or coding tools would find instructions above it.
        OSError: the room cannot be made.
    """
    close_memory()
    mask = await in_thread(partial(host.mask, harness))
    with contextlib.ExitStack() as held:
        room = CleanRoom(held.enter_context(scratch(host.rooms)).resolve(), host, mask)
        if planted := await in_thread(partial(instructions_above, room.folder)):
            raise UsageError(refusal(planted))
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
