"""Other people's words on stdout, while a command has one JSON value to say there."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress


@contextmanager
def diverted() -> Generator[None]:
    """Whatever is written to stdout goes to stderr, also what processes write that are started in the block."""
    kept = _swap()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def divert_for_good() -> None:
    """The same until this process ends: for what others have it do last. Does nothing where stdout is not its own."""
    if sys.stdout is sys.__stdout__:
        if (kept := _swap()) is not None:
            os.close(kept)
        sys.stdout = sys.stderr


def _swap() -> int | None:
    """Have file descriptor 1 lead where 2 leads; where it led before. None where there are no such descriptors."""
    _flush()
    with suppress(OSError):
        kept = os.dup(1)
        os.dup2(2, 1)
        return kept
    return None


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
