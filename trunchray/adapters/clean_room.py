"""A fresh place for one run of a coding tool: an empty workspace and an empty home, gone when the run is over."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from trunchray.adapters.attempt_folder import STDERR, TRANSCRIPT
from trunchray.adapters.calling import in_thread
from trunchray.adapters.fresh_home import prepare_home
from trunchray.adapters.harness_process import USUAL_CAPS, Caps, Capture, Command, Ending, run_command
from trunchray.adapters.held_folder import HeldFolder
from trunchray.adapters.host import Host
from trunchray.adapters.instructions import instructions_above, refusal, refuse_instructions
from trunchray.adapters.masked_files import mask_files
from trunchray.adapters.private_memory import close_memory
from trunchray.adapters.scratch import scratch
from trunchray.adapters.survey import TreeCaps
from trunchray.adapters.tree import TreeError, unpack
from trunchray.adapters.uninterrupted import uninterrupted
from trunchray.core.harness import Harness
from trunchray.core.inside import inside
from trunchray.core.masking import Mask
from trunchray.core.staging import Fixture

_GIT_SECONDS = 30
_OF_PATHS = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ})
"""What the system says of paths that cannot be. All else it says of the machine, which somebody can mend."""


class StagingError(Exception):
    """The case, its skill or the harness keep the workspace or the home from being prepared; the message says how."""


class RoomError(StagingError):
    """The room is no longer what it was before the run, so nothing in it counts; the message is for people."""


@dataclass(frozen=True, slots=True)
class CleanRoom:
    """A workspace (`cwd`) and a home beside it. Its methods block, but for `run`.

    What runs in it may rename it and put something else in its place, so it is held, and what is printed is in files
    without names.
    """

    place: HeldFolder
    workspace: HeldFolder
    stdout: BinaryIO
    stderr: BinaryIO
    host: Host
    mask: Mask
    """What is not kept of a run."""

    @property
    def folder(self) -> Path:
        return self.place.path

    @property
    def cwd(self) -> Path:
        return self.workspace.path

    @property
    def home(self) -> Path:
        return self.folder / ".home"

    @property
    def stands(self) -> bool:
        """Whether room and workspace are still what their paths lead to."""
        return self.place.stands and self.workspace.stands

    def put(self, path: str, content: bytes) -> None:
        """A file in the workspace; folders are made as needed.

        Raises:
            StagingError: it would be outside, or something else is there.
            OSError: the machine failed.
        """
        with _preparing(f"{path!r} escapes the workspace or cannot be put there"):
            target = self.cwd / inside(path)
            if target.exists():
                raise StagingError(f"{path!r} is in the workspace already")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def add_skill(self, skill_dir: str, name: str, packed: bytes) -> None:
        """A skill, as `tree.pack` packed it, in a folder of its own.

        Raises:
            StagingError: it is damaged, or something else is there.
            OSError: the machine failed.
        """
        with _preparing(f"the skill {name!r} cannot be staged"):
            unpack(packed, self.cwd / inside(skill_dir) / name)

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
            RoomError: it has ended, and the room is not what it was.
            StagingError: its home could not be prepared, or somebody has left instructions for it above the room.
            OSError: the machine failed: its home could not be filled, or what it printed could not be written.
        """
        warnings = await in_thread(partial(self._prepare, harness))
        kept = Capture(self.stdout, self.stderr, caps=caps, watch=watch, mask=self.mask, warnings=warnings)
        ending = await run_command(self._command(harness, prompt, limit), kept, clock=self.host.clock)
        if planted := await in_thread(partial(instructions_above, self.folder)):
            raise StagingError(f"while it ran, {planted} came to be there: {refusal(planted)}")
        if not self.stands:
            raise RoomError(
                "the workspace, or the room around it, was removed, renamed or replaced while it ran, so no file is "
                "kept; have it stay in its working folder"
            )
        return ending

    def masked_workspace(self, caps: TreeCaps, given: Collection[Fixture]) -> tuple[Path | None, list[str]]:
        """The workspace, without credentials in all that is kept by `caps`; None, and why, when nothing may be kept.

        What was `given` and is as it was, is kept as it is.
        """
        if not self.stands:
            return None, [".: it is no longer what it was before the run"]
        try:
            mask_files(self.cwd, self.mask, caps, given)
        except OSError as e:
            return None, [f".: credentials could not be taken out of it: {e.strerror or e}"]
        return self.cwd, []

    @contextmanager
    def printed(self) -> Generator[tuple[Path, Path]]:
        """`stdout` and `stderr` as files, where nobody has looked for them, for the time of the block."""
        with scratch(self.host.rooms) as folder:
            for name, source in ((TRANSCRIPT, self.stdout), (STDERR, self.stderr)):
                source.seek(0)
                with (folder / name).open("xb") as file:
                    shutil.copyfileobj(source, file)
            yield folder / TRANSCRIPT, folder / STDERR

    def _prepare(self, harness: Harness) -> bytes:
        """All that is not the case's own; what is missing, as lines for people."""
        with _preparing("the home folder cannot be prepared"):
            warnings = prepare_home(self.home, harness, self.host.home)
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


@contextmanager
def _preparing(failed: str) -> Generator[None]:
    """Tell what is to blame from a machine that fails.

    Raises:
        StagingError: what is prepared cannot be, wherever it is tried; `failed` says what that is.
        OSError: the machine failed.
    """
    try:
        yield
    except (TreeError, ValueError) as e:
        raise StagingError(f"{failed}: {e}") from e
    except OSError as e:
        if e.errno not in _OF_PATHS:
            raise
        raise StagingError(f"{failed}: {e.strerror}") from e


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
        folder = held.enter_context(scratch(host.rooms)).resolve()
        await in_thread(partial(refuse_instructions, folder))
        (folder / "cwd").mkdir()
        (folder / ".home").mkdir(mode=0o700)
        place, workspace = (held.enter_context(closing(HeldFolder(path))) for path in (folder, folder / "cwd"))
        out, err = (held.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(2))
        try:
            yield CleanRoom(place, workspace, out, err, host, mask)
        finally:
            await uninterrupted(in_thread(partial(_remove, place, workspace)))


def check_rooms(place: Path | None = None) -> None:
    """Make sure that clean rooms can be had on this machine, before one is needed; `place` is as for `scratch`.

    Raises:
        UsageError: there is no folder for them, or coding tools would find instructions above it.
        OSError: none can be made.
    """
    with scratch(place) as folder:
        refuse_instructions(folder.resolve())


def _remove(place: HeldFolder, workspace: HeldFolder) -> None:
    """Wherever they stand by now."""
    workspace.remove()
    place.remove()
