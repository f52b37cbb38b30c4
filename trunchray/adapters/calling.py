"""Calling functions that other people wrote, sync or async, from an event loop that must not be held up."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

Outcome = tuple[Any, BaseException | None]
Work = Callable[[], object]

GRACE = 1.0
"""Seconds that something has to give back what it holds."""
IDLE = 10.0
"""Seconds that a thread waits for further work: starting one keeps the event loop waiting until it runs."""

_idle: list[queue.SimpleQueue[Work]] = []
"""Where threads take work from that have none; the last one that became idle is the first to get some."""

LINGERING = 2.0
"""Seconds after which a function that was given up and goes on is said to hang."""

_given_up: dict[_Call, float] = {}
"""Since when nobody waits any more for functions that still run in their threads."""

_abandoned: set[asyncio.Task[Outcome]] = set()
"""What was told to stop and has not yet; an event loop alone would not keep it."""


class _Call:
    """A function in a thread."""

    over = False


async def within(seconds: float, work: Awaitable[Any]) -> Any:
    """What the work comes to; raises what it raises. It is cancelled after its time, and not waited for any longer.

    Raises:
        TimeoutError: it took more than so many `seconds`; the message says so.
    """
    task = asyncio.create_task(_outcome(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)
            task.cancel()
    if not task.done():
        raise TimeoutError(f"no answer in {seconds:g} s")
    found, error = task.result()
    if error is not None:
        raise error
    return found


async def _outcome(work: Awaitable[Any]) -> Outcome:
    try:
        return await work, None
    except BaseException as e:  # SystemExit and KeyboardInterrupt would end the event loop
        return None, e


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


async def let_go(close: Callable[[], Any]) -> None:
    """Have something give back what it holds. It has a second; what comes of it changes nothing any more."""
    try:
        await within(GRACE, call(close))
    except BaseException as e:
        if isinstance(e, asyncio.CancelledError) and is_cancelled():
            raise


def said(error: BaseException) -> str:
    """What an error says of itself; nothing where not even that works."""
    try:
        return str(error)
    except BaseException:
        return ""


def is_cancelled() -> bool:
    """Whether this task is cancelled itself, and not just something that it awaits."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def is_async(function: object) -> bool:
    """Whether calling it makes a coroutine and does nothing else; so does an object whose `__call__` is async."""
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004


async def in_thread(function: Callable[[], Any]) -> Any:
    """What the function returns or raises, in a daemon thread that does nothing else meanwhile.

    Nothing waits for it once we are cancelled. The threads of an executor are joined when Python ends: one that hangs
    would keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome] = loop.create_future()
    this = _Call()

    def tell(outcome: Outcome) -> None:
        if not ended.done():
            ended.set_result(outcome)
        elif inspect.iscoroutine(outcome[0]):
            outcome[0].close()  # too late to be run

    def work() -> None:
        try:
            outcome = (function(), None)
        except BaseException as e:  # SystemExit too: it ends the call, not the process
            outcome = (None, e)
        this.over = True
        _given_up.pop(this, None)
        with suppress(RuntimeError):  # the loop has closed: nobody waits
            loop.call_soon_threadsafe(tell, outcome)

    context = contextvars.copy_context()
    hand_out(partial(context.run, work))
    try:
        found, error = await ended
    except asyncio.CancelledError:
        _given_up[this] = time.monotonic()
        if this.over:  # meanwhile: whoever comes second takes it out
            _given_up.pop(this, None)
        raise
    if error is not None:
        raise error
    return found


def hanging(seconds: float = LINGERING) -> int:
    """How many functions go on in threads of this process although nobody has waited for them for so many seconds."""
    now = time.monotonic()
    return sum(now - since >= seconds for since in tuple(_given_up.values()))


def hand_out(work: Work) -> None:
    """Have a thread do it at once: an idle one, or else a new one."""
    try:
        given = _idle.pop()
    except IndexError:
        given = queue.SimpleQueue[Work]()
        threading.Thread(target=_work_off, args=(given,), name="trunchray-call", daemon=True).start()
    given.put(work)


def _work_off(given: queue.SimpleQueue[Work]) -> None:
    """Do one thing after another, until there has been nothing to do for a while."""
    while True:
        try:
            given.get(timeout=IDLE)()
        except queue.Empty:
            with suppress(ValueError):  # work is being handed to us right now
                _idle.remove(given)
                return
            continue
        _idle.append(given)
