"""Event loops that other people's code is run on: they end, whatever it does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from trunchray.adapters.calling import let_go
from trunchray.adapters.loops import DaemonThreads, own_loop


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_what_is_left_behind_is_cancelled() -> None:
    """It can put its things in order, and the loop is closed after that."""
    seen: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("in order")

    async def leaves() -> asyncio.Task[None]:
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        return task

    with own_loop() as runner:
        loop, task = runner.get_loop(), runner.run(leaves())
    assert (seen, task.cancelled(), loop.is_closed()) == (["in order"], True, True)


def test_what_will_not_be_cancelled_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A loop ends without it, and nothing is said of it."""

    async def insists() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def leaves() -> None:
        asyncio.create_task(insists())  # noqa: RUF006 - nobody keeps it
        await asyncio.sleep(0)

    with own_loop() as runner:
        loop = runner.get_loop()
        runner.run(leaves())
    assert loop.is_closed()
    assert not caplog.records


def test_calls_that_hang_leave_threads_for_others(released: threading.Event) -> None:
    """There are as many threads as there are calls, and Python's end waits for none of them."""

    def looks() -> bool:
        return threading.current_thread().daemon

    async def crowded() -> bool:
        hanging = [asyncio.ensure_future(asyncio.to_thread(released.wait)) for _ in range(100)]
        daemon = await asyncio.to_thread(looks)
        assert not any(one.done() for one in hanging)
        return daemon

    with own_loop() as runner:
        assert runner.run(crowded())


async def test_what_a_call_in_a_thread_raises_arrives() -> None:
    """As it does with the threads of Python."""

    def raises() -> None:
        raise SystemExit(3)

    asyncio.get_running_loop().set_default_executor(DaemonThreads())
    with pytest.raises(KeyError):
        await asyncio.to_thread({}.__getitem__, "a")
    with suppress(SystemExit):
        DaemonThreads().submit(raises).result(timeout=60)
        pytest.fail("it raised nothing")


async def test_what_is_closed_holds_nobody_up(released: threading.Event) -> None:
    """Whether closing it raises, hangs, or is no function that can be awaited: there is nothing to be done about it."""

    async def raises() -> None:
        raise KeyboardInterrupt

    async def hangs() -> None:
        await asyncio.Event().wait()

    def blocks() -> None:
        released.wait()

    await asyncio.gather(*map(let_go, (raises, hangs, blocks, lambda: 3)))
