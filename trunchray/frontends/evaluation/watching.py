"""What people see of an evaluation while it runs: one line that changes on a terminal, one in ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TextIO

from trunchray.core.printable import printable
from trunchray.core.wording import duration
from trunchray.engine.progress import Snapshot

LINE_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""
_CLEAR = "\r\x1b[2K"
"""Back to the start of a terminal's line, and nothing on it."""


def show(text: str) -> None:
    """Print a result. A reader that has gone away, as after `| head`, or has never been there, changes no verdict.

    What the stream cannot encode is spelt out.
    """
    stream: TextIO | None = sys.stdout
    if stream is None:  # of a program without a console
        return
    with suppress(OSError, ValueError):  # as a closed one raises
        try:
            stream.write(text)
        except UnicodeEncodeError as e:
            stream.write(text.encode(e.encoding, "backslashreplace").decode(e.encoding))


class Watching:
    """An observer that writes to `stream`; a `quiet` one writes warnings only. `clock` counts seconds from anywhere."""

    def __init__(self, stream: TextIO, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._quiet, self._clock = stream, quiet, clock
        self._moving = stream.isatty()
        self._line_due = clock() + LINE_EVERY
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def progress(self, snapshot: Snapshot) -> None:
        """Show how far it is."""
        if self._quiet:
            return
        if self._moving:
            self._shown = True
            self._write(_CLEAR + _line(snapshot))
        elif self._clock() >= self._line_due:
            self._line_due = self._clock() + LINE_EVERY
            self._write(f"trunchray: {_line(snapshot)}\n")

    def note(self, message: str) -> None:
        """Say what takes its time."""
        if not self._quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """Say what went wrong and does no harm."""
        self._clear()
        self._write(f"trunchray: {printable(message)}\n")

    def _clear(self) -> None:
        """Take the line away that changes."""
        if self._shown:
            self._shown = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        # A reader that has gone away changes no verdict.
        with suppress(BrokenPipeError):
            self._stream.write(text)
            self._stream.flush()


def _line(snapshot: Snapshot) -> str:
    """The one thing under test, so far."""
    (agent,) = snapshot.agents
    left = f", about {duration(agent.eta)} left" if agent.eta else ""
    return f"{agent.done:,} of {agent.planned:,} runs done, {agent.in_flight:,} under way{left}"
