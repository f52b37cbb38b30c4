"""A worker in a Ray process of its own. Only plain records cross Ray: errors of libraries may not unpickle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal
from uuid import uuid4

from trunchray.adapters.calling import hanging
from trunchray.adapters.loops import DaemonThreads
from trunchray.core.receipt import InHand
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.ray_connection import LOST, OWN, SAME_IMAGE, absent, ray, told
from trunchray.engine.worker import Place, Worker
from trunchray.errors import Interrupted, StoreError, TrunchrayError, UsageError

PATIENCE = 5.0
"""Seconds that a worker waits for the governor's answer."""

Answer = tuple[dict[str, Any], str | None] | tuple[Literal["store", "stopped", "worker"], str]
"""A receipt as plain data and why its agent is closed, if it is; or what failed, and a message."""
Look = tuple[Literal["ready"], dict[str, InHand], int] | tuple[Literal["unfit"], str]
"""How far its shards are, and how many calls hang in its threads; or what its machine lacks."""


class WorkerActor:
    """Opens its worker when it is first looked at."""

    def __init__(
        self, run_uri: str, release_uri: str, place: Place, governor: str, *, driver: str, agents: Sequence[str]
    ) -> None:
        """`driver` is the version of trunchray that drives the run, `agents` are those that may be asked."""
        # Each process has another name: what the one before it held is not its own.
        self._name = f"{place.name}/{uuid4().hex[:8]}"
        # By its name, because a handle among the arguments could be lost, and then no worker could be started again.
        self._governor: Any = ray.get_actor(governor)
        self._run_uri, self._release_uri, self._place = run_uri, release_uri, place
        self._driver, self._agents = driver, agents
        self._opened: asyncio.Future[Worker] | None = None

    async def work(self, shard: str, attempt: int) -> Answer:
        """Run what is missing of a shard."""
        try:
            worker = await self._worker()
            receipt = await worker.work(shard, attempt)
            return receipt.model_dump(), worker.closed(shard)
        except StoreError as e:
            return "store", str(e)
        except Interrupted as e:
            return "stopped", str(e)
        except Exception as e:
            return "worker", f"{type(e).__name__}: {e}"

    async def look(self, index: int, count: int) -> Look:
        """How it is; it is now the `index`-th (from 0) of `count` workers."""
        try:
            worker = await self._worker()
        except Exception as e:  # whatever keeps it from opening
            return "unfit", _lack(e)
        worker.renumber(index, count)
        return "ready", worker.progress(), hanging()

    async def stop(self, grace: float) -> None:
        await (await self._worker()).stop(grace)

    async def close(self) -> None:
        await (await self._worker()).close()

    async def _worker(self) -> Worker:
        if self._opened is None or (self._opened.done() and self._opened.exception()):
            self._opened = asyncio.ensure_future(self._open())
        return await self._opened

    async def _open(self) -> Worker:
        if (found := version("trunchray")) != self._driver:
            raise UsageError(
                f"trunchray {found} is installed there, and this run is driven by {self._driver}; {SAME_IMAGE}"
            )
        if self._place.config.program:
            asyncio.get_running_loop().set_default_executor(DaemonThreads())
        worker = await Worker.open(self._run_uri, self._release_uri, self._place, self._exchange)
        worker.check(self._agents)
        return worker

    async def _exchange(self, demands: Mapping[str, Demand]) -> Mapping[str, Allowance] | None:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._governor.exchange.remote(self._name, demands)
        except OWN as e:
            raise Interrupted(told(e)) from None
        except (TimeoutError, LOST):
            return None


def _lack(error: Exception) -> str:
    """What a machine lacks, in words."""
    if isinstance(error, PackageNotFoundError | ModuleNotFoundError):
        return absent(error.name or str(error))
    return str(error) if isinstance(error, TrunchrayError) else f"{type(error).__name__}: {error}"
