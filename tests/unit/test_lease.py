from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from trunchray.adapters.lease import SETTLE, HeldLease, is_driven
from trunchray.adapters.store import Store
from trunchray.core.lease import HEARTBEAT, PARTING, STALE, Lease
from trunchray.errors import Interrupted, UsageError

DEAD = 2**22 + 1
"""No process has this id: Linux counts to 2^22."""


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, time: timedelta) -> None:
        self.now += time

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def store() -> Store:
    return Store(f"memory://{uuid.uuid4().hex}")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_one_driver_at_a_time(store: Store, clock: Clock):
    """A driver that lives keeps others out, and the refusal says who it is and what to do."""
    held = HeldLease.take(store, now=clock, sleep=clock.sleep)
    with pytest.raises(UsageError, match=r"another process drives this run: .*--takeover"):
        HeldLease.take(store, now=clock, sleep=clock.sleep)
    assert is_driven(store, clock) == held.lease


def test_a_stale_lease_is_taken_over(store: Store, clock: Clock):
    """A driver that has said nothing for too long is passed, and the epoch grows."""
    first = HeldLease.take(store, now=clock, sleep=clock.sleep)
    clock.pass_(STALE + timedelta(seconds=1))
    said: list[str] = []
    second = HeldLease.take(store, now=clock, sleep=clock.sleep, note=said.append)
    assert said == [f"looking whether {first.lease.driver} is gone (heartbeat 00:00:00 UTC); that takes 15 s …"]
    assert (first.lease.epoch, second.lease.epoch) == (1, 2)
    assert second.lease.driver != first.lease.driver


def test_a_driver_that_died_here_is_passed_at_once(store: Store, clock: Clock):
    """The same machine knows that the process is gone, so nobody waits; another machine does not."""
    held = HeldLease.take(store, now=clock, sleep=clock.sleep).lease
    for host, free in ((held.host, True), ("elsewhere", False)):
        dead = held.model_copy(update={"pid": DEAD, "host": host})
        store.write("lease.json", dead.model_dump_json().encode())
        assert (is_driven(store, clock) is None) is free


def test_a_taken_over_driver_stops_itself(store: Store, clock: Clock):
    """Whoever was taken over from learns it at the next heartbeat, and does not take the lease back."""
    first = HeldLease.take(store, now=clock, sleep=clock.sleep)
    second = HeldLease.take(store, takeover=True, now=clock, pause=clock.sleep)
    clock.pass_(HEARTBEAT)
    with pytest.raises(Interrupted, match=second.lease.driver):
        first.beat()
    first.release()
    assert is_driven(store, clock) == second.lease


def test_a_driver_that_lives_may_store_what_its_workers_have(store: Store, clock: Clock):
    """Whoever takes over waits for that, so that nothing is paid for again; not for ever, nor for one that is gone."""
    first = HeldLease.take(store, now=clock, sleep=clock.sleep)
    began, said = clock(), list[str]()

    def pause(seconds: float) -> None:
        clock.sleep(seconds)
        if clock() >= began + HEARTBEAT:
            first.release()

    second = HeldLease.take(store, takeover=True, now=clock, pause=pause, note=said.append)
    assert said == [f"{first.lease.driver} is given up to 15 s to store what its workers have …"]
    assert clock() - began == HEARTBEAT
    assert is_driven(store, clock) == second.lease

    began = clock()
    third = HeldLease.take(store, takeover=True, now=clock, pause=clock.sleep).lease
    assert clock() - began == PARTING
    lease = is_driven(store, clock)
    assert lease
    assert lease.epoch == third.epoch
    assert clock() - lease.heartbeat < HEARTBEAT

    store.write("lease.json", third.model_copy(update={"pid": DEAD}).model_dump_json().encode())
    began = clock()
    HeldLease.take(store, takeover=True, now=clock, pause=clock.sleep)
    assert clock() == began


@pytest.mark.parametrize("ahead", [-3600, 3600])
def test_a_driver_whose_clock_is_wrong_may_do_so_too(store: Store, clock: Clock, ahead: float):
    """Nobody can tell by its heartbeat that it lives."""
    first = HeldLease.take(store, now=lambda: clock() + timedelta(seconds=ahead), sleep=clock.sleep)
    began = clock()
    HeldLease.take(store, takeover=True, now=clock, pause=lambda _: first.release() or clock.sleep(1))
    assert clock() - began == timedelta(seconds=1)


def test_whoever_is_taken_over_from_while_it_waits_drives_nothing(store: Store, clock: Clock):
    """It learns that before it begins, and the last one has the run."""
    HeldLease.take(store, now=clock, sleep=clock.sleep)
    last: list[HeldLease] = []

    def pause(seconds: float) -> None:
        clock.sleep(seconds)
        if not last:
            last.append(HeldLease.take(store, takeover=True, now=clock, pause=lambda _: None))

    with pytest.raises(Interrupted, match="is now driven by"):
        HeldLease.take(store, takeover=True, now=clock, pause=pause)
    assert is_driven(store, clock) == last[0].lease


def test_whoever_is_interrupted_while_it_waits_lets_the_next_one_in(store: Store, clock: Clock):
    """The one that was taken over from drives no more, so nobody would."""
    HeldLease.take(store, now=clock, sleep=clock.sleep)

    def pause(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HeldLease.take(store, takeover=True, now=clock, pause=pause)
    assert is_driven(store, clock) is None


def test_heartbeats_keep_a_lease(store: Store, clock: Clock):
    """A driver that beats is never stale, and writes no more often than it has to."""
    held = HeldLease.take(store, now=clock, sleep=clock.sleep)
    for _ in range(20):
        clock.pass_(HEARTBEAT)
        held.beat()
    assert is_driven(store, clock)
    written = store.read("lease.json")
    clock.pass_(HEARTBEAT / 2)
    held.beat()
    assert store.read("lease.json") == written


def test_a_released_lease_is_free(store: Store, clock: Clock):
    """The next driver does not wait for one that ended well."""
    HeldLease.take(store, now=clock, sleep=clock.sleep).release()
    assert is_driven(store, clock) is None
    assert HeldLease.take(store, now=clock, sleep=clock.sleep).lease.epoch == 2


def test_a_damaged_lease_binds_nobody(store: Store, clock: Clock):
    """A lease that cannot be read does not lock a run for ever."""
    fine = HeldLease.take(store, now=clock, sleep=clock.sleep).lease.model_dump_json()
    naive = fine.replace("2026-01-01T00:00:00Z", "2026-01-01T00:00:00")
    huge = fine.replace(f'"pid":{os.getpid()}', '"pid":1000000000000000000000')
    for content in ("{", naive, huge):
        assert content != fine
        clock.pass_(STALE + timedelta(seconds=1))
        store.write("lease.json", content.encode())
        assert HeldLease.take(store, now=clock, sleep=clock.sleep).lease.pid == os.getpid()


def test_a_claim_without_a_lease_binds_for_a_while(store: Store, clock: Clock):
    """A driver that has claimed a run and not written its lease yet keeps others out, until it must be dead."""
    held = HeldLease.take(store, now=clock, sleep=clock.sleep)
    store.write("lease.json", b"")
    with pytest.raises(UsageError, match=held.lease.driver):
        HeldLease.take(store, now=clock, sleep=clock.sleep)
    clock.pass_(STALE + timedelta(seconds=1))
    assert HeldLease.take(store, now=clock, sleep=clock.sleep).lease.epoch == 2


class Slow(Store):
    """A store that shows a claim only to those that read it by name, not to those that list."""

    def names(self, path: str = "") -> list[str]:
        return []


def test_of_two_that_take_over_one_wins(store: Store, clock: Clock):
    """When two find the same stale lease, the second one to claim it is refused."""
    dead = HeldLease.take(store, now=clock, sleep=clock.sleep).lease
    clock.pass_(STALE + timedelta(seconds=1))
    winner = HeldLease.take(store, now=clock, sleep=clock.sleep)
    store.write("lease.json", dead.model_dump_json().encode())  # as the second one read it
    with pytest.raises(UsageError, match="another process has just started to drive this run"):
        HeldLease.take(Slow(store.uri), now=clock, sleep=clock.sleep)
    winner.check()


def test_a_driver_that_slept_is_fenced(store: Store, clock: Clock):
    """Whoever was taken over from while asleep learns it before the next commit, whatever it writes meanwhile."""
    slept = HeldLease.take(store, now=clock, sleep=clock.sleep)
    slept.confirm()
    clock.pass_(STALE + timedelta(seconds=1))
    awake = HeldLease.take(store, now=clock, sleep=clock.sleep)
    store.write("lease.json", slept.lease.model_dump_json().encode())  # a heartbeat that was on its way
    with pytest.raises(Interrupted, match=awake.lease.driver):
        slept.confirm()
    slept.release()
    clock.pass_(HEARTBEAT)
    awake.beat()
    assert is_driven(store, clock) == awake.lease


def test_on_stores_without_conditions_the_last_to_claim_wins(clock: Clock):
    """Where two can create the same claim, the first one looks again after a while and stands back."""

    class Careless(Store):
        conditional = False

        def create(self, path: str, content: bytes) -> bool:
            self.write(path, content)
            return True

    store = Careless(f"memory://{uuid.uuid4().hex}")
    rivals: list[HeldLease] = []

    def meanwhile(seconds: float) -> None:
        assert seconds == SETTLE
        if not rivals:
            rivals.append(HeldLease.take(Late(store.uri), now=clock, sleep=lambda _: None))

    class Late(Careless):
        def names(self, path: str = "") -> list[str]:
            return []

    with pytest.raises(UsageError, match="another process has just started"):
        HeldLease.take(store, now=clock, sleep=meanwhile)
    rivals[0].check()
    assert rivals[0].lease.epoch == 1


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_off_steals_nothing(store: Store, clock: Clock, off: timedelta):
    """A driver that lives is not passed because its clock is an hour off: it is seen to live."""
    elsewhere = Clock()
    elsewhere.pass_(off)
    held = HeldLease.take(store, now=elsewhere)

    def meanwhile(seconds: float) -> None:
        elsewhere.pass_(timedelta(seconds=seconds))
        held.beat()

    with pytest.raises(UsageError, match=r"another process drives this run: .*; its clock and the one here differ"):
        HeldLease.take(store, now=clock, sleep=meanwhile)
    held.check()


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_off_holds_nothing_for_ever(store: Store, clock: Clock, off: timedelta):
    """A driver that died with a clock an hour off is passed once it was silent for a while."""
    elsewhere = Clock()
    elsewhere.pass_(off)
    dead = HeldLease.take(store, now=elsewhere).lease
    assert HeldLease.take(store, now=clock, sleep=clock.sleep).lease.epoch == dead.epoch + 1


def test_a_clock_that_is_set_back_does_not_stop_the_heart(store: Store, clock: Clock):
    """Nor does one that is set forward: the next beat comes at once, and others see it."""
    held = HeldLease.take(store, now=clock)
    for step in (timedelta(hours=-1), timedelta(hours=2)):
        clock.pass_(step)
        held.beat()
        assert is_driven(store, clock) == held.lease
        assert held.lease.heartbeat == clock()


def test_the_rule_by_itself():
    """Held while fresh, unless its process is known to be dead here; free once given back; doubtful when stale."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    lease = Lease(driver="d", host="h", pid=1, epoch=1, heartbeat=now)
    assert lease.state(now, host="other", alive=False) == "held"
    assert lease.state(now, host="h", alive=True) == "held"
    assert lease.state(now, host="h", alive=False) == "free"
    assert lease.model_copy(update={"ended": True}).state(now, host="other", alive=True) == "free"
    for off in (STALE + HEARTBEAT, -STALE - HEARTBEAT):
        assert lease.state(now + off, host="other", alive=True) == "doubtful"
