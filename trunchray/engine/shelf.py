"""Where a shard's rows wait until they are stored, never for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from trunchray.adapters import parts
from trunchray.adapters.runs import RunFolder
from trunchray.core.receipt import PartRef
from trunchray.errors import StoreError

FLUSH_SECONDS = 5.0
"""Seconds that a row waits at most, while the store answers."""
SOON = 1.0
"""The same for a shard that was lost before: where workers die all the time, rows have to be stored between deaths."""
FLUSH_BYTES = 1_000_000
"""Bytes of rows that do not wait any longer."""
LAST_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between tries to store the last rows: giving them up would mean paying for them again."""


class Shelf:
    """Rows of one shard on their way to the store: stored every few seconds, when they are many, and at the end.

    Killing the process loses at most the rows that came since. A failed write keeps the rows; the next flush tries
    again, and the last one, on leaving the block, raises.
    """

    def __init__(
        self,
        folder: RunFolder,
        shard: str,
        *,
        every: float = FLUSH_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`every`: seconds between two writes of what has come meanwhile."""
        self._folder, self._shard, self._every, self._sleep = folder, shard, every, sleep
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._writing = asyncio.Lock()
        self.parts: list[PartRef] = []

    async def __aenter__(self) -> Self:
        self._ticker = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._ticker.cancel()
        with suppress(asyncio.CancelledError):
            await self._ticker
        for wait in LAST_WAITS:
            with suppress(StoreError):
                await self.flush()
                return
            await self._sleep(wait)
        await self.flush()

    async def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._bytes += parts.size(row)
        if self._bytes >= FLUSH_BYTES:
            with suppress(StoreError):
                await self.flush()

    async def flush(self) -> None:
        """Store all that waits. A write that has begun is seen to its end, also by whoever is cancelled meanwhile.

        Raises:
            StoreError: it could not be stored; it still waits.
        """
        async with self._writing:
            rows, self._rows, self._bytes = self._rows, [], 0
            if not rows:
                return
            writing = asyncio.get_running_loop().run_in_executor(None, self._store, rows)
            cancelled = await _end(writing)
            if error := writing.exception():
                self._rows = rows + self._rows
            else:
                self.parts.append(writing.result())
            if stopped := cancelled or error:
                raise stopped

    def _store(self, rows: list[dict[str, Any]]) -> PartRef:
        return self._folder.add_part(self._shard, parts.encode(rows), len(rows))

    async def _tick(self) -> None:
        while True:
            await self._sleep(self._every)
            with suppress(StoreError):
                await self.flush()


async def _end(writing: asyncio.Future[PartRef]) -> asyncio.CancelledError | None:
    """Wait for a thread, which cannot be stopped; gives the cancellation that came meanwhile."""
    cancelled = None
    while not writing.done():
        try:
            await asyncio.wait([writing])
        except asyncio.CancelledError as e:
            cancelled = e
    return cancelled
