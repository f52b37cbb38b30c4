"""Signals that end a program in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType

_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@contextmanager
def stopping_at(numbers: Iterable[signal.Signals], stop: threading.Event, say: Callable[[], object]) -> Generator[None]:
    """Have the first of these signals `say` so and set the flag; the next one raises KeyboardInterrupt.

    Afterwards they are handled as before. Only the main thread can ask for this.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say()

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ending_signals() -> list[signal.Signals]:
    """SIGINT and SIGTERM, where they would end this thread: it is the main one, and nobody handles them otherwise."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number, usual in _USUAL.items() if signal.getsignal(number) == usual]
