"""The inputs of a run as a worker reads them: each is fetched once, however many trials need it."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from trunchray.adapters.runs import RunFolder
from trunchray.adapters.scratch import scratch
from trunchray.core.digest import sha256


class InputCache:
    """Files by SHA-256, kept on this machine until it is closed. Safe to use from several threads.

    `place` is the folder in which they are kept; None: that of this user among temporary files. Nothing is kept of a
    run that is on this machine itself.
    """

    def __init__(self, folder: RunFolder, place: Path | None = None) -> None:
        self._folder, self._place = folder, place
        self._kept: Path | None = None
        self._stack, self._opening = ExitStack(), Lock()
        self._fetching: defaultdict[str, Lock] = defaultdict(Lock)

    def __call__(self, name: str) -> bytes:
        """The content.

        Raises:
            StoreError: it is gone or damaged.
            UsageError, OSError: nothing can be kept here.
        """
        if self._folder.store.folder:
            return self._folder.input(name)
        with self._opening:
            kept = self._kept = self._kept or self._stack.enter_context(scratch(self._place))
            fetching = self._fetching[name]
        with fetching:
            content = _whole(kept / name, name)
            return self._fetched(kept / name, name) if content is None else content

    def close(self) -> None:
        """Remove what is kept."""
        with self._opening:
            self._kept = None
            self._stack.close()

    def _fetched(self, file: Path, name: str) -> bytes:
        content = self._folder.input(name)
        file.write_bytes(content)
        return content


def _whole(file: Path, name: str) -> bytes | None:
    """What the file holds; None when it is not there, or is not what it was: others run as our user."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    return content if sha256(content) == name else None
