"""A pool of Ray actors, on this machine or on a cluster; the only module that imports Ray.

One remote call per shard, never per trial. Actors are restarted by Ray, calls never are: a repeated call would pay
again for answers that the stored parts may already hold. However an actor goes (killed, out of memory, its node lost),
its shards come back as lost, and it is given no more of them until it answers again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

# Read by Ray while it is imported and started: no usage reports, no guessing at accelerators.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
import ray.exceptions

from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.launcher import Requirement
from trunchray.core.budget import Purse
from trunchray.core.ledger import Dispatch, Finished, Lost
from trunchray.core.receipt import InHand, Receipt
from trunchray.engine.clocked import ClockedGovernor
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding
from trunchray.engine.worker import Place, Worker
from trunchray.errors import Interrupted, StoreError, UsageError

PROBE_EVERY = 1.0
"""Seconds between two questions for a worker's progress."""
PATIENCE = 5.0
"""Seconds that a worker waits for the governor's answer."""
ALL_GONE = 300.0
"""Seconds without any live worker after which the run is stopped."""


class _Actor:
    """A worker in a process of its own. Only plain records cross Ray: errors of libraries may not unpickle."""

    def __init__(self, run_uri: str, release_uri: str, place: Place, governor: str) -> None:
        # Each process has another name: what the one before it held is not its own.
        self._name = f"{place.name}/{uuid4().hex[:8]}"
        # By its name, because a handle among the arguments could be lost, and then no worker could be started again.
        self._governor: Any = ray.get_actor(governor)
        self._args = (run_uri, release_uri, place, self._exchange)
        self._opened: asyncio.Future[Worker] | None = None

    async def work(self, shard: str, attempt: int) -> tuple[dict[str, Any], str | None] | tuple[str, str]:
        """The receipt as plain data and why its agent is closed, if it is; or what failed, and a message.

        What fails is the "store" or the "worker".
        """
        try:
            worker = await self._worker()
            receipt = await worker.work(shard, attempt)
            return receipt.model_dump(), worker.closed(shard)
        except StoreError as e:
            return "store", str(e)
        except Exception as e:
            return "worker", f"{type(e).__name__}: {e}"

    async def progress(self) -> tuple[str, dict[str, InHand]]:
        """The address of its node, and how far its shards are."""
        return ray.util.get_node_ip_address(), (await self._worker()).progress()

    async def stop(self, grace: float) -> None:
        await (await self._worker()).stop(grace)

    async def close(self) -> None:
        await (await self._worker()).close()

    async def _exchange(self, demands: Mapping[str, Demand]) -> Mapping[str, Allowance] | None:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._governor.exchange.remote(self._name, demands)
        except (TimeoutError, ray.exceptions.RayError):
            return None

    async def _worker(self) -> Worker:
        if self._opened is None or (self._opened.done() and self._opened.exception()):
            self._opened = asyncio.ensure_future(Worker.open(*self._args))
        return await self._opened


@dataclass
class _Seat:
    """One actor as the driver sees it: what it has in hand, and whether it answers."""

    actor: Any
    out: dict[Any, Dispatch] = field(default_factory=dict[Any, Dispatch])
    progress: dict[str, InHand] = field(default_factory=dict[str, InHand])
    node: str | None = None
    """None until it first answered."""
    probe: Any = None
    asked_at: float = 0.0
    down: bool = False

    def load(self, lane: str) -> tuple[int, int]:
        """Fewest shards of the lane first, then fewest in all."""
        return sum(work.lane == lane for work in self.out.values()), len(self.out)


class RayPool:
    """One actor per processor of the cluster, each running many trials at a time."""

    def __init__(
        self,
        run_uri: str,
        release_uri: str,
        *,
        address: str | None = None,
        workers: int | None = None,
        require: Requirement = "none",
        cache: str | None = None,
        purse: Purse | None = None,
    ) -> None:
        """Connect to `address`, or start Ray on this machine; `workers` defaults to one per processor.

        `purse` keeps the run within a budget.

        Raises:
            UsageError: there is no cluster at `address`.
        """
        self._started = _start(address)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote: Any = ray.remote
        make = remote(num_cpus=1, max_restarts=-1, max_task_retries=0, max_concurrency=1000)(_Actor)
        places = [
            Place(f"worker-{index}", index, self.workers, require=require, cache=cache) for index in range(self.workers)
        ]
        spec = RunFolder(run_uri).spec()
        govern = remote(num_cpus=0, max_restarts=-1, max_task_retries=0, max_concurrency=1000)(ClockedGovernor)
        name = f"trunchray-governor-{uuid4().hex[:8]}"
        self._governor = govern.options(name=name).remote(spec.agents if spec else (), purse)
        self._standing: dict[str, Standing] = {}
        self._standing_probe: Any = None
        self._standing_due = float("-inf")
        self._seats = [_Seat(make.remote(run_uri, release_uri, place, name)) for place in places]
        self._waiting: deque[Dispatch] = deque()
        self._events: deque[Finished[Receipt] | Lost] = deque()
        self._gone_since: float | None = None

    def submit(self, work: Dispatch) -> None:
        seats = [seat for seat in self._seats if not seat.down]
        if not seats:
            self._waiting.append(work)
            return
        seat = min(seats, key=lambda seat: seat.load(work.lane))
        seat.out[seat.actor.work.remote(work.shard, work.attempt)] = work

    def next_event(self, timeout: float) -> Finished[Receipt] | Lost | None:
        self._probe()
        if not self._events:
            refs = [ref for seat in self._seats for ref in seat.out]
            if not refs:
                time.sleep(timeout)
                return None
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout)
            self._events.extend(self._collect(ref) for ref in ready)
        return self._events.popleft() if self._events else None

    def progress(self) -> dict[str, InHand]:
        shards = {work.shard for seat in self._seats for work in seat.out.values()}
        known = [item for seat in self._seats for item in seat.progress.items()]
        return {shard: counts for shard, counts in known if shard in shards}

    def standing(self) -> dict[str, Standing]:
        return self._standing

    def nodes(self) -> tuple[NodeStanding, ...]:
        found: dict[str, list[_Seat]] = {}
        for seat in self._seats:
            if seat.node:
                found.setdefault(seat.node, []).append(seat)
        return tuple(
            NodeStanding(
                node=node,
                workers=len(seats),
                down=sum(seat.down for seat in seats),
                shards=sum(len(seat.out) for seat in seats),
            )
            for node, seats in sorted(found.items())
        )

    def stop(self, grace: float) -> None:
        self._waiting.clear()
        for seat in self._seats:
            seat.actor.stop.remote(grace)

    def close(self) -> None:
        closing = [seat.actor.close.remote() for seat in self._seats if not seat.down]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=5)
        for seat in self._seats:
            ray.kill(seat.actor)
        ray.kill(self._governor)
        if self._started:
            ray.shutdown()

    def _collect(self, ref: Any) -> Finished[Receipt] | Lost:
        seat = next(seat for seat in self._seats if ref in seat.out)
        work = seat.out.pop(ref)
        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as e:
            seat.down, seat.progress = True, {}
            return Lost(work.shard, work.attempt, f"its worker was lost ({type(e).__name__})")
        match answer:
            case ("store", str() as message):
                raise StoreError(f"a Ray worker says: {message}")
            case ("worker", str() as message):
                return Lost(work.shard, work.attempt, message)
            case _:
                pass
        receipt = Receipt.model_validate(answer[0])
        return Finished(work.shard, work.attempt, receipt, receipt.missing, answer[1])

    def _probe(self) -> None:
        """Ask each worker how far it is; one that answers is up, whatever it was before."""
        now = time.monotonic()
        for seat in self._seats:
            if seat.probe is not None and ray.wait([seat.probe], timeout=0)[0]:
                self._answered(seat)
            if seat.probe is None and now - seat.asked_at >= PROBE_EVERY:
                seat.probe, seat.asked_at = seat.actor.progress.remote(), now
        self._ask_governor(now)
        self._check_alive(now)

    def _ask_governor(self, now: float) -> None:
        """Keep its last answer; one that does not answer is asked again with the workers."""
        if self._standing_probe is not None and ray.wait([self._standing_probe], timeout=0)[0]:
            probe, self._standing_probe = self._standing_probe, None
            with suppress(ray.exceptions.RayError):
                self._standing = ray.get(probe)
        if self._standing_probe is None and now >= self._standing_due:
            self._standing_probe, self._standing_due = self._governor.snapshot.remote(), now + PROBE_EVERY

    def _answered(self, seat: _Seat) -> None:
        probe, seat.probe = seat.probe, None
        try:
            seat.node, seat.progress = ray.get(probe)
        except ray.exceptions.RayError:
            return
        seat.down = False
        waiting, self._waiting = self._waiting, deque()
        for work in waiting:
            self.submit(work)

    def _check_alive(self, now: float) -> None:
        if not all(seat.down for seat in self._seats):
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since > ALL_GONE:
            raise Interrupted(f"no worker has answered for {ALL_GONE:.0f} s; the same command continues the run")


def _start(address: str | None) -> bool:
    """Connect to Ray; True when this call did, and so has to disconnect."""
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        _start_here(options)
        return True
    try:
        ray.init(address=address, **options)
    except (ConnectionError, ValueError) as e:
        raise UsageError(
            f"no Ray cluster answers at {address!r} ({e}); start one, or leave --address out to use this machine"
        ) from e
    return True


def _start_here(options: dict[str, Any]) -> None:
    """A Ray of our own. On a busy machine it may start more slowly than Ray waits, so it gets a second chance."""
    for last in (False, True):
        try:
            ray.init(address="local", include_dashboard=False, **options)
            return
        except Exception as e:  # what Ray raises then
            ray.shutdown()
            if last:
                reason = str(e).partition(". ")[0]
                raise Interrupted(
                    f"Ray did not start on this machine ({reason}); the same command tries again, "
                    "and --pool local does without"
                ) from e
