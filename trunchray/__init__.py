"""Distributed, resumable, reproducible LLM evaluation on Ray.

The command line is the way in: `trunchray --help`. The names below are what a program may rely on.
"""

from trunchray.errors import (
    AuthoringError,
    Interrupted,
    Problem,
    ReleaseError,
    StoreError,
    TrunchrayError,
    UsageError,
)

__all__ = [
    "AuthoringError",
    "Interrupted",
    "Problem",
    "ReleaseError",
    "StoreError",
    "TrunchrayError",
    "UsageError",
]
