"""Listening to a stream of events while something else goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from trunchray.agents.python.failure import RunFailed, failure_text

ROUNDS = 20
"""Turns of the event loop without an event after which an async stream has nothing more to tell."""
MOST_ROUNDS = 10_000
"""Turns after which it is not listened to any longer, however much it has to tell."""
SETTLING = 0.02
"""Seconds that a stream which is read in a thread has to subscribe, from when its reading began."""
QUIET = 0.05
"""Seconds without an event after which it has nothing more to tell."""
MOST_QUIET = 40
"""How many times as long it is listened to at most."""
GRACE = 1.0
"""Seconds that an async stream has to put its things in order."""

Take = Callable[[object], None]


@asynccontextmanager
async def listening(stream: object, take: Take) -> AsyncGenerator[None]:
    """Give `take` the events of a stream, from before the block begins until those that are due at its end have come.

    An async stream is read on this event loop, any other in a thread. Then it is stopped.

    Raises:
        RunFailed: the stream raised, for example because its buffer overflowed; or it is not a stream. What the block
            raises comes first.
    """
    listener = _listener(stream, take)
    try:
        await listener.begin()
        try:
            yield
        except Exception:
            await listener.settle()
            raise
        await listener.settle()
    finally:
        await listener.stop()
    if listener.error is not None:
        raise RunFailed(f"the stream of events failed: {failure_text(listener.error)}")


def _listener(stream: object, take: Take) -> _AsyncListener | _ThreadListener:
    if isinstance(stream, AsyncIterable):
        return _AsyncListener(stream, take)
    if isinstance(stream, Iterable) and not isinstance(stream, str | bytes | Mapping):
        return _ThreadListener(stream, take)
    raise RunFailed(f"stream() returned {type(stream).__name__}, which is not an iterable of events")


class _AsyncListener:
    def __init__(self, stream: AsyncIterable[object], take: Take) -> None:
        self._stream, self._take = stream, take
        self._came = 0
        self._reading: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    async def begin(self) -> None:
        """Read until it first waits for an event: an async generator subscribes only then."""
        self._reading = asyncio.create_task(self._read())
        await asyncio.sleep(0)

    async def settle(self) -> None:
        came, quiet = self._came, 0
        for _ in range(MOST_ROUNDS):
            if self._reading is None or self._reading.done() or quiet == ROUNDS:
                return
            await asyncio.sleep(0)
            quiet = quiet + 1 if came == self._came else 0
            came = self._came

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading}, timeout=GRACE)

    async def _read(self) -> None:
        try:
            async for event in self._stream:
                self._came += 1
                self._take(event)
                await asyncio.sleep(0)  # a stream that never waits must not keep everybody else from working
        except asyncio.CancelledError:
            await _close(self._stream)
            raise
        except BaseException as e:
            self.error = e


async def _close(stream: object) -> None:
    """Close an iterator that is not a generator."""
    with suppress(Exception):
        if close := getattr(stream, "aclose", None):
            await close()


class _ThreadListener:
    def __init__(self, stream: Iterable[object], take: Take) -> None:
        self._stream, self._take = stream, take
        self._loop = asyncio.get_running_loop()
        self._came = 0
        self._begun, self._ended = asyncio.Event(), asyncio.Event()
        self._stopped = threading.Event()
        self.error: BaseException | None = None

    async def begin(self) -> None:
        """Read until it has had the time to subscribe: a generator does so when it is first read."""
        threading.Thread(target=self._read, name="trunchray-stream", daemon=True).start()
        await self._begun.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), SETTLING)

    async def settle(self) -> None:
        for _ in range(MOST_QUIET):
            came = self._came
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), QUIET)
            if self._ended.is_set() or came == self._came:
                return

    async def stop(self) -> None:
        self._stopped.set()
        with suppress(Exception):  # a generator that waits in its thread cannot be closed: it ends at its next event
            if close := getattr(self._stream, "close", None):
                close()

    def _read(self) -> None:
        try:
            self._tell(self._begun.set)
            for event in self._stream:
                if self._stopped.is_set():
                    return
                self._tell(self._received, event)
        except BaseException as e:
            self._tell(self._failed, e)
        finally:
            self._tell(self._ended.set)

    def _tell(self, what: Callable[..., Any], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody listens
            self._loop.call_soon_threadsafe(what, *arguments)

    def _received(self, event: object) -> None:
        if self._stopped.is_set():
            return
        self._came += 1
        try:
            self._take(event)
        except BaseException as e:  # an event that cannot be read
            self._failed(e)

    def _failed(self, error: BaseException) -> None:
        if not self._stopped.is_set():
            self.error = self.error or error
