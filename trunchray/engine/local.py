"""A pool of one worker in this process: no Ray, no start-up time."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from socket import gethostname
from typing import Any, TypeVar

from trunchray.adapters.loops import DaemonThreads, cancel_others
from trunchray.adapters.runs import RunFolder
from trunchray.core.budget import Purse
from trunchray.core.ledger import Dispatch, Finished, Lost
from trunchray.core.receipt import InHand, Receipt
from trunchray.engine.clocked import ClockedGovernor
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding
from trunchray.engine.worker import Place, Worker, WorkerConfig
from trunchray.errors import Interrupted, StoreError

T = TypeVar("T")


class LocalPool:
    """Runs shards on an event loop of its own, in a thread of this process."""

    workers = 1

    def __init__(
        self,
        run_uri: str,
        release_uri: str,
        config: WorkerConfig | None = None,
        *,
        purse: Purse | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Read the run; `purse` keeps it within a budget.

        A `loop` that is given runs in another thread, and goes on when the pool is closed.
        """
        spec = RunFolder(run_uri).spec()
        self._governor = ClockedGovernor(spec.agents if spec else (), purse, run_uri)
        self._events: queue.Queue[Finished[Receipt] | Lost | StoreError | Interrupted] = queue.Queue()
        self._loop = loop or asyncio.new_event_loop()
        self._ended = threading.Event()
        self._thread = None if loop else _running(self._loop, self._ended)
        if config and config.program and not loop:
            self._loop.set_default_executor(DaemonThreads())
        place = Place("local", config or WorkerConfig(), slots=os.cpu_count() or 1)
        try:
            self._worker = self._call(Worker.open(run_uri, release_uri, place, self._exchange))
        except BaseException:
            self._end()
            raise

    def submit(self, work: Dispatch) -> None:
        working = asyncio.run_coroutine_threadsafe(self._work(work), self._loop)
        working.add_done_callback(partial(self._end_of, work))

    def next_event(self, timeout: float) -> Finished[Receipt] | Lost | None:
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(event, StoreError | Interrupted):
            raise event
        return event

    def progress(self) -> dict[str, InHand]:
        return self._worker.progress()

    def standing(self) -> dict[str, Standing]:
        return self._call(self._governor.snapshot())

    def nodes(self) -> tuple[NodeStanding, ...]:
        return (NodeStanding(node=gethostname(), workers=1, shards=len(self._worker.progress())),)

    def stop(self, grace: float) -> None:
        asyncio.run_coroutine_threadsafe(self._worker.stop(grace), self._loop)

    def close(self) -> None:
        self._call(self._worker.close())
        self._call(self._governor.settle())
        self._end()

    def _end(self) -> None:
        if self._thread is None:
            return
        self._call(cancel_others())
        self._ended.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _work(self, work: Dispatch) -> tuple[Receipt, str | None]:
        receipt = await self._worker.work(work.shard, work.attempt)
        return receipt, self._worker.closed(work.shard)

    def _end_of(self, work: Dispatch, working: Future[tuple[Receipt, str | None]]) -> None:
        """Tell who waits for a shard how its work ended, also when somebody cancelled it before it began."""
        try:
            receipt, closed = working.result()
            self._events.put(Finished(work.shard, work.attempt, receipt, receipt.undone, closed))
        except (StoreError, Interrupted) as e:
            self._events.put(e)
        except BaseException as e:  # somebody else's code can throw what ends programs
            self._events.put(Lost(work.shard, work.attempt, f"{type(e).__name__}: {e}"))

    async def _exchange(self, demands: Mapping[str, Demand]) -> Mapping[str, Allowance]:
        return await self._governor.exchange("local", demands)

    def _call(self, action: Coroutine[Any, Any, T]) -> T:
        try:
            called = asyncio.run_coroutine_threadsafe(action, self._loop)
        except RuntimeError:  # a caller that was interrupted again has closed its loop
            action.close()  # or Python would warn that nobody awaited it
            raise
        return called.result()


def _running(loop: asyncio.AbstractEventLoop, ended: threading.Event) -> threading.Thread:
    def run() -> None:
        while not ended.is_set():  # somebody else's code can stop the loop, or throw what ends it
            with suppress(KeyboardInterrupt, SystemExit):
                loop.run_forever()

    thread = threading.Thread(target=run, name="trunchray-worker", daemon=True)
    thread.start()
    return thread
