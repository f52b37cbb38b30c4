"""Event loops on which other people's code runs, and which end whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from trunchray.adapters.calling import hand_out
from trunchray.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 1.0
"""Seconds that what is still under way has to put its things in order."""


class DaemonThreads(ThreadPoolExecutor):
    """What `asyncio.to_thread` runs in: threads that never run out, and that nobody waits for.

    Those of Python are few, so that as many calls that hang would leave none for us, and it waits for them at its end.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call it at once."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **kwargs)
            except BaseException as e:
                future.set_exception(e)
            else:
                future.set_result(found)

        hand_out(work)
        return future


@contextmanager
def own_loop() -> Generator[asyncio.Runner]:
    """An event loop for a while. What is under way on it afterwards is cancelled, and left alone if it goes on."""
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    loop.set_default_executor(DaemonThreads())
    try:
        yield runner
    finally:
        if runner.run(cancel_others()):
            runner.close()
        else:
            loop.close()


def refuse_running_loop(call: str) -> None:
    """Make sure that a call that blocks does not hold up an event loop; `call` is its name.

    Raises:
        UsageError: a loop is running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"{call}: an event loop is running already; write `await a{call}(…)`")


async def cancel_others() -> bool:
    """Cancel everything else on this loop; whether all of it has ended within its grace."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    going_on = (await asyncio.wait(others, timeout=GRACE))[1] if others else ()
    if going_on:
        asyncio.get_running_loop().set_exception_handler(_say_nothing)
    return not going_on


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """That a task was still pending when its loop was closed is known by then."""
