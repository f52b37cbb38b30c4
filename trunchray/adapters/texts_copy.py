"""A copy of a large file's texts that is searched faster, made while people look at something else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from trunchray.errors import StoreError


class TextsCopy:
    """Copies the texts of `source` to `target` in the background, once it is started, and says so when that is done.

    Nothing depends on it: where there is no room for a copy, there is none.
    """

    def __init__(self, source: Path, target: Path, done: Callable[[], None]) -> None:
        self._source, self._target, self._done = source, target, done
        self._unwanted = Event()
        self._starting = Lock()
        self._thread = Thread(target=self._copy, name="texts-copy", daemon=True)

    def start(self) -> None:
        """Begin, unless it was closed before."""
        with self._starting:
            if not self._unwanted.is_set():
                self._thread.start()

    def join(self) -> None:
        """Wait until it is done."""
        self._thread.join()

    def close(self) -> None:
        """Copy nothing more."""
        with self._starting:
            self._unwanted.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _copy(self) -> None:
        from trunchray.adapters import parts  # noqa: PLC0415 - it takes a fifth of a second; nobody waits for this one

        with suppress(OSError, StoreError):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            if parts.copy_texts(self._source, self._target, lambda: not self._unwanted.is_set()):
                self._done()
                return
        with suppress(OSError):
            self._target.unlink()
