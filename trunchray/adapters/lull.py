"""Work that can wait until the people who ask pause."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock, Timer

QUIET = 0.5
"""Seconds without a question that are a pause: who looks at a page has it by then, and has not asked for the next."""

After = Callable[[float, Callable[[], None]], Callable[[], None]]
"""Has something done after so many seconds, in another thread perhaps; what it returns calls that off."""


def after(seconds: float, work: Callable[[], None]) -> Callable[[], None]:
    """In real time."""
    timer = Timer(seconds, work)
    timer.daemon = True
    timer.start()
    return timer.cancel


class Lull:
    """Begins what was put off once somebody has had an answer and nobody has asked for `QUIET` seconds since."""

    def __init__(self, after: After = after) -> None:
        self._after = after
        self._lock = RLock()
        self._asking, self._answered = 0, False
        self._waiting: list[Callable[[], None]] = []
        self._call_off: Callable[[], None] | None = None

    def put_off(self, work: Callable[[], None]) -> None:
        """Do this, which takes no time itself, at the next pause."""
        with self._lock:
            self._waiting.append(work)
            self._look()

    @contextmanager
    def asking(self) -> Generator[None]:
        """While a question is answered."""
        with self._lock:
            self._asking += 1
            self._look()
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1
                self._answered = True
                self._look()

    def close(self) -> None:
        """Begin nothing any more."""
        with self._lock:
            self._waiting.clear()
            self._look()

    def _look(self) -> None:
        """Wait for the pause anew, if there is something to wait for; whoever calls this holds the lock."""
        if self._call_off:
            self._call_off()
            self._call_off = None
        if self._waiting and self._answered and not self._asking:
            self._call_off = self._after(QUIET, self._begin)

    def _begin(self) -> None:
        with self._lock:
            if self._asking:  # somebody was faster
                return
            begun, self._waiting = self._waiting, []
        for work in begun:
            work()
