"""Signals that end a program in order."""

from __future__ import annotations

import os
import signal
import threading

from trunchray.adapters.signals import stopping_at


def test_processes_that_are_forked_off_end_at_once() -> None:
    """A pool of somebody's multiprocessing ends its processes so, and would wait for them for ever."""
    stop, (reads, writes) = threading.Event(), os.pipe()
    with stopping_at([signal.SIGTERM], stop, lambda: None):
        child = os.fork()
        if child == 0:
            os.write(writes, b"x")
            while True:
                signal.pause()
        os.read(reads, 1)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    os.close(reads)
    os.close(writes)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert not stop.is_set()
