"""Calls of functions that go on when nobody waits for them any more."""

from __future__ import annotations

import asyncio
import threading

import pytest

from trunchray.adapters.calling import call, hanging, within


def test_functions_that_go_on_are_counted_until_they_end():
    """Only those that nobody waits for any more, and only as long as they run; after two seconds they hang."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait()

    async def gives_up() -> int:
        working = asyncio.create_task(call(wait))
        await asyncio.to_thread(begun.wait)
        in_time = hanging(0)
        with pytest.raises(TimeoutError):
            await within(0, working)
        return in_time

    before = hanging(0)
    assert asyncio.run(gives_up()) == before
    assert hanging(0) == before + 1
    go_on.set()
    while hanging(0) > before:
        threading.Event().wait(0.001)  # until its thread has told so
