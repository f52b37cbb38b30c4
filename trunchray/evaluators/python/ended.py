"""How a call of other people's code ended, whatever it did."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from trunchray.adapters.calling import said, within
from trunchray.adapters.raised_at import raised_at
from trunchray.evaluators.python.showing import clean


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: with a value, or with a `complaint`: what it raised, or that it was too `late`."""

    value: Any = None
    complaint: str | None = None
    late: bool = False


async def ended(work: Awaitable[Any], seconds: float) -> Ended:
    """How it ends within so many seconds, after which it is cancelled and not waited for.

    Of what it raises nothing gets out, not even KeyboardInterrupt, which would end the event loop with everybody else
    on it; it is told from a cancellation of whoever waits here.
    """
    try:
        return await within(seconds, _guarded(work))
    except TimeoutError:  # what the work itself raises does not come this far
        return Ended(complaint=f"timed out after {seconds:g} s", late=True)


async def _guarded(work: Awaitable[Any]) -> Ended:
    try:
        return Ended(await work)
    except BaseException as e:
        message = said(e)
        complaint = f"raised {type(e).__name__}{f': {message}' if message else ''}"
        return Ended(complaint=clean(complaint) + clean(raised_at(e)))
