"""Why a run has no output, in words."""

from __future__ import annotations

from trunchray.adapters.calling import said
from trunchray.adapters.raised_at import raised_at
from trunchray.core.excerpt import excerpt
from trunchray.core.well_formed import well_formed

LONGEST = 1000
"""Characters of a message that are kept."""


class RunFailed(Exception):
    """A run ended without an output, for a reason that the message says in our own words."""


def failure_text(error: BaseException) -> str:
    """`<Type>: <message> (<file>:<line>)`, or the message of a `RunFailed` alone; well-formed, its message cut.

    A group that holds a single exception is what it holds.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # which no coroutine can raise as it is
    message = said(error).strip()
    if isinstance(error, RunFailed):
        return cut(message)
    name = type(error).__name__
    return cut(f"{name}: {message}" if message else name) + well_formed(raised_at(error))


def cut(text: str) -> str:
    """The text, well-formed; its beginning when it is longer than 1,000 characters."""
    return excerpt(well_formed(text), LONGEST)
