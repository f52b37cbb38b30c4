"""How a task learns that its run was given up."""

from __future__ import annotations

import threading


class CancelSignal:
    """Given to a task as its second parameter. It may be read from any thread.

    A coroutine need not look at it, as it is cancelled as well; a function in a thread can only be stopped by this.
    """

    def __init__(self) -> None:
        self._set = threading.Event()

    @property
    def aborted(self) -> bool:
        """Whether the run has timed out or was cancelled."""
        return self._set.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until it is set, at most `timeout` seconds; whether it is. Not for coroutines."""
        return self._set.wait(timeout)

    def abort(self) -> None:
        """Set it; it stays set."""
        self._set.set()
