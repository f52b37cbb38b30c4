"""A pool of Ray actors, on this machine or on a cluster.

One remote call per shard, never per trial. Actors are restarted by Ray, calls never are: a repeated call would pay
again for answers that the stored parts may already hold. However an actor goes (killed, out of memory, its node lost),
its shards come back as lost, and it is given no more of them until it answers again. Where actors are is for the crew.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from trunchray.adapters.runs import RunFolder
from trunchray.core.budget import Accounts, Purse
from trunchray.core.ledger import Dispatch, Ended, Finished, Lost, Returned
from trunchray.core.receipt import InHand, Receipt
from trunchray.engine import ray_connection as connection
from trunchray.engine.admission import ungoverned
from trunchray.engine.clocked import ClockedGovernor
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding
from trunchray.engine.ray_actor import WorkerActor
from trunchray.engine.ray_connection import GONE, LOST, OWN, ray
from trunchray.engine.ray_crew import Crew, Voice
from trunchray.engine.ray_seat import LOOK_EVERY, Seat
from trunchray.engine.seating import Node, Seating, fair_share
from trunchray.engine.worker import Place, WorkerConfig
from trunchray.errors import Interrupted, StoreError


class RayPool:
    """Workers over the nodes of a cluster, each running many trials at a time."""

    def __init__(
        self,
        run_uri: str,
        release_uri: str,
        config: WorkerConfig | None = None,
        *,
        address: str | None = None,
        seating: Seating | None = None,
        agents: Sequence[str] = (),
        purse: Purse | None = None,
        voice: Voice | None = None,
    ) -> None:
        """Connect to `address`, or start Ray on this machine.

        Each node has to be able to ask the `agents`. `purse` keeps the run within a budget.

        Raises:
            UsageError: there is no cluster at `address`, or it cannot hold such workers.
            Interrupted: Ray did not start here.
        """
        self._started = connection.connect(address)
        self._run_uri, self._release_uri, self._agents = run_uri, release_uri, tuple(agents)
        self._seating = seating or Seating()
        slots = max(1, round(self._seating.cpus))
        self._place = Place("worker", config or WorkerConfig(), slots=slots, on_ray=True)
        self._purse = purse
        self._governor_name = f"trunchray-governor-{uuid4().hex[:8]}"
        self._governor = self._govern()
        self._standing: dict[str, Standing] = {}
        self._accounts: Accounts = {}
        self._standing_probe: Any = None
        self._standing_due = float("-inf")
        self._waiting: deque[Dispatch] = deque()
        self._events: deque[Ended[Receipt]] = deque()
        grows = address is not None or not self._started
        self._crew = Crew(self._seating, self._employ, voice or Voice(_nobody, _nobody), grows=grows)
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """Those that work, or will in a moment."""
        return self._crew.counted_on

    @property
    def starting(self) -> int:
        """Workers that have not answered yet."""
        return self._crew.starting

    def submit(self, work: Dispatch) -> None:
        self._waiting.append(work)
        self._hand_out()

    def next_event(self, timeout: float) -> Ended[Receipt] | None:
        self._look()
        if not self._events:
            out = [ref for seat in self._crew.seats for ref in seat.out]
            probes = {seat.probe for seat in self._crew.seats if seat.probe is not None}
            if not out and not probes:
                time.sleep(timeout)
                return None
            ready, _ = ray.wait([*out, *probes], num_returns=1, timeout=timeout)
            self._events.extend(self._collect(ref) for ref in ready if ref not in probes)
        return self._events.popleft() if self._events else None

    def progress(self) -> dict[str, InHand]:
        shards = {work.shard for seat in self._crew.seats for work in seat.out.values()}
        known = [item for seat in self._crew.seats for item in seat.progress.items()]
        return {shard: counts for shard, counts in known if shard in shards}

    def standing(self) -> dict[str, Standing]:
        return self._standing

    def nodes(self) -> tuple[NodeStanding, ...]:
        return self._crew.standings()

    def stop(self, grace: float) -> None:
        self._waiting.clear()
        self._crew.hires = False
        for seat in self._crew.seats:
            seat.stop(grace)

    def close(self) -> None:
        self._crew.close()
        if self._purse:
            ray.wait([self._governor.settle.remote()], timeout=2)
        ray.kill(self._governor)
        if self._started:
            ray.shutdown()

    def _govern(self) -> Any:
        spec = RunFolder(self._run_uri).spec()
        # On the head, which the cluster lasts as long as: workers wait while it is started again.
        place = connection.on_node(connection.nodes()[0].id)
        govern = actor(ClockedGovernor, num_cpus=0, name=self._governor_name, scheduling_strategy=place)
        return govern.remote(spec.agents if spec else (), self._purse, self._run_uri, resumable=True)

    def _employ(self, node: Node, number: int) -> Seat:
        """A worker that stays on its node; Ray starts it again when its process dies."""
        worker = actor(
            WorkerActor,
            num_cpus=self._seating.cpus,
            resources=self._seating.resources,
            scheduling_strategy=connection.on_node(node.id),
        )
        place = replace(self._place, name=f"worker-{number}")
        known = {"driver": version("trunchray"), "agents": self._agents}
        handle = worker.remote(self._run_uri, self._release_uri, place, self._governor_name, **known)
        return Seat(handle, node, time.monotonic())

    def _hand_out(self) -> None:
        """Give waiting shards to workers, to all the same number: who is there first does not take everything."""
        lanes = Counter(work.lane for seat in self._crew.seats for work in seat.out.values())
        lanes.update(work.lane for work in self._waiting)
        seats = [seat for seat in self._crew.seats if seat.takes]
        waiting, self._waiting = self._waiting, deque()
        for work in waiting:
            most = fair_share(lanes[work.lane], self._crew.counted_on)
            seat = min(seats, key=lambda seat: seat.load(work.lane), default=None)
            if seat is None or seat.load(work.lane)[0] >= most:
                self._waiting.append(work)
            else:
                seat.give(work)

    def _look(self) -> None:
        self._crew.look()
        for seat in self._crew.seats:
            if seat.state == "gone":
                out, seat.out = seat.out, {}
                self._events.extend(_lost(seat, work, "its node is gone") for work in out.values())
        self._hand_out()
        self._ask_governor(time.monotonic())

    def _collect(self, ref: Any) -> Ended[Receipt]:
        seat = next(seat for seat in self._crew.seats if ref in seat.out)
        work = seat.out.pop(ref)
        try:
            answer = ray.get(ref)
        except LOST as e:
            seat.lost(e)
            return _lost(seat, work, f"its worker was lost ({type(e).__name__})")
        match answer:
            case ("store", str() as message):
                raise StoreError(f"a worker on {seat.node.address} says: {message}")
            case ("stopped", str() as message):
                raise Interrupted(message)
            case ("worker", str() as message):
                return Lost(work.shard, work.attempt, f"{message} (on {seat.node.address})")
            case _:
                pass
        receipt = Receipt.model_validate(answer[0])
        if receipt.undone and seat.hands_back:
            return Returned(work.shard, work.attempt)
        return Finished(work.shard, work.attempt, receipt, receipt.undone, answer[1])

    def _ask_governor(self, now: float) -> None:
        """Keep its last answer; one that does not answer is asked again with the workers."""
        if self._standing_probe is not None and ray.wait([self._standing_probe], timeout=0)[0]:
            probe, self._standing_probe = self._standing_probe, None
            try:
                self._standing, self._accounts = ray.get(probe)
            except OWN as e:
                raise Interrupted(ungoverned(connection.told(e))) from e
            except GONE as e:
                raise Interrupted(
                    f"the machine that keeps the run's limits is lost ({connection.told(e)}); what is finished is "
                    "stored, and the same command continues"
                ) from e
            except LOST:
                pass
        if self._standing_probe is None and now >= self._standing_due:
            self._standing_probe, self._standing_due = self._governor.resume.remote(self._accounts), now + LOOK_EVERY


def actor(kind: type[Any], **options: Any) -> Any:
    """Something that starts an actor, which Ray starts again when its process dies, but no call of it."""
    remote: Any = ray.remote
    return remote(kind).options(max_restarts=-1, max_task_retries=0, max_concurrency=1000, **options)


def _lost(seat: Seat, work: Dispatch, reason: str) -> Lost | Returned:
    """What a worker that has to leave takes with it is no loss of the shard."""
    return Returned(work.shard, work.attempt) if seat.hands_back else Lost(work.shard, work.attempt, reason)


def _nobody(_message: str) -> None:
    pass
