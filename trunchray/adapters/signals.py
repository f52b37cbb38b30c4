"""Signals that end a program in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

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

    handler = here_alone(handle)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def here_alone(handle: Handler) -> Handler:
    """The handler in this process. One that is forked off it, as by multiprocessing, ends as if it had none."""
    here = os.getpid()

    def handled(number: int, frame: FrameType | None) -> None:
        if os.getpid() == here:
            handle(number, frame)
        else:
            signal.signal(number, _USUAL.get(signal.Signals(number), signal.SIG_DFL))
            os.kill(os.getpid(), number)

    return handled


def ending_signals() -> list[signal.Signals]:
    """SIGINT and SIGTERM, where they would end this thread: it is the main one, and nobody handles them otherwise."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number, usual in _USUAL.items() if signal.getsignal(number) == usual]
