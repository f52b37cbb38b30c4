"""A semaphore whose number of places may change while it is in use."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class ResizableSemaphore:
    """At most `count` at a time; fewer places let those who have one finish."""

    def __init__(self, count: int) -> None:
        self._free = self._count = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def resize(self, count: int) -> None:
        """From now on, so many may have a place."""
        self._free += count - self._count
        self._count = count
        self._let_in()

    async def __aenter__(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # it was let in just then
                self._leave()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._leave()

    def _leave(self) -> None:
        self._free += 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._free > 0:
            waiting = self._waiting.popleft()
            if not waiting.done():
                self._free -= 1
                waiting.set_result(None)
