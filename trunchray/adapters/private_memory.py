"""Keeping the keys of this process from other processes of the same user."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_memory() -> bool:
    """Let nobody but root read our environment and our memory from now on; whether the system can do that.

    On Linux all processes of a user may read each other's `/proc/<pid>/environ`, a coding tool that of the worker that
    has started it. Processes that we start are as before, and so is our parent. No core is dumped of us any more.
    """
    return sys.platform == "linux" and ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
