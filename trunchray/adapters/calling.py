"""Calling functions that other people wrote, sync or async, from an event loop that must not be held up."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it returns, awaited as long as that can be; raises what it raises.

    An async function is called on the event loop, any other in a thread of its own.
    """
    if is_async(function):
        found = function(*arguments)
    else:
        found = await in_thread(partial(function, *arguments))
    while inspect.isawaitable(found):
        found = await found
    return found


def is_async(function: object) -> bool:
    """Whether calling it makes a coroutine and does nothing else; so does an object whose `__call__` is async."""
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004


async def in_thread(function: Callable[[], Any]) -> Any:
    """What the function returns or raises, in a daemon thread of its own that nothing waits for once we are cancelled.

    The threads of a pool are joined when Python ends: one that hangs would keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def tell(outcome: tuple[Any, BaseException | None]) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def work() -> None:
        try:
            outcome = (function(), None)
        except BaseException as e:  # SystemExit too: it ends the call, not the process
            outcome = (None, e)
        with suppress(RuntimeError):  # the loop has closed: nobody waits
            loop.call_soon_threadsafe(tell, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="trunchray-call", daemon=True).start()
    found, error = await ended
    if error is not None:
        raise error
    return found
