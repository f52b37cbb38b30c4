"""Calling other people's code, so that it can hang, or end in any way, without harm to what goes on beside it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from trunchray.evaluators.python.showing import clean


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: with a value, or with a `complaint`: what it raised, or that it was too `late`."""

    value: Any = None
    complaint: str | None = None
    late: bool = False

    @classmethod
    def raised(cls, error: BaseException) -> Ended:
        return cls(complaint=clean(f"raised {type(error).__name__}{_said(error)}"))


def _said(error: BaseException) -> str:
    try:
        return f": {error}" if str(error) else ""
    except Exception:  # not even that works
        return ""


_abandoned: set[asyncio.Task[Ended]] = set()
"""What was told to stop and has not yet; the event loop alone would not keep it."""


async def called(call: Callable[[], object], seconds: float) -> Ended:
    """What a call comes to within so many `seconds`; what it returns is awaited, if it can be.

    The call itself runs in a thread of its own, which keeps no process alive; what is awaited runs on this event loop.
    Neither is waited for after its time. Of what the call raises nothing gets out but KeyboardInterrupt.
    """
    return await _bounded(_called(call), seconds)


async def awaited(awaitable: Awaitable[object], seconds: float) -> Ended:
    """The same for what is awaited from the start."""
    return await _bounded(_awaited(awaitable), seconds)


async def _bounded(work: Awaitable[Ended], seconds: float) -> Ended:
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        return task.result() if task.done() else Ended(complaint=f"timed out after {seconds:g} s", late=True)
    finally:
        if not task.done():
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)
            task.cancel()


async def _called(call: Callable[[], object]) -> Ended:
    ended = await _in_own_thread(call)
    if ended.complaint is None and inspect.isawaitable(ended.value):
        return await _awaited(ended.value)
    return ended


async def _awaited(awaitable: Awaitable[object]) -> Ended:
    try:
        return Ended(await awaitable)
    except (Exception, SystemExit, asyncio.CancelledError) as e:
        return Ended.raised(e)


async def _in_own_thread(call: Callable[[], object]) -> Ended:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Ended] = loop.create_future()
    context = copy_context()

    def run() -> None:
        ended = context.run(_ended, call)
        try:
            loop.call_soon_threadsafe(_deliver, waiting, ended)
        except RuntimeError:  # the loop is closed: nobody waits
            _drop(ended)

    try:
        threading.Thread(target=run, name="trunchray check", daemon=True).start()
    except RuntimeError as e:  # no more threads are to be had
        return Ended.raised(e)
    return await waiting


def _ended(call: Callable[[], object]) -> Ended:
    try:
        return Ended(call())
    except BaseException as e:  # a thread has nobody to tell
        return Ended.raised(e)


def _deliver(waiting: asyncio.Future[Ended], ended: Ended) -> None:
    if waiting.done():
        _drop(ended)
    else:
        waiting.set_result(ended)


def _drop(ended: Ended) -> None:
    """What came too late is not run."""
    if inspect.iscoroutine(ended.value):
        ended.value.close()
