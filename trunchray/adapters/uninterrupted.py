"""Putting things in order also when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def uninterrupted(work: Awaitable[T]) -> T:
    """What it comes to; a cancellation is put off until then.

    Raises:
        CancelledError: we were cancelled meanwhile.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as e:
            cancelled = e
    if cancelled:
        task.exception()  # looked at, so that nobody is told that it was not
        raise cancelled
    return task.result()
