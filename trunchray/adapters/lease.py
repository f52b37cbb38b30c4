"""Holding the lease of a run: taking it, keeping it warm, giving it back.

lease.json           who drives, and the last heartbeat
claims/<epoch>.json  who drives from when on: only created where there is none; the highest epoch drives

Whoever creates the next claim is the driver; the store lets one win. A driver whose claim is not the last one any more
is fenced: it finds out before it stores anything that counts, however long it slept.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from trunchray.adapters.store import Store
from trunchray.core.lease import HEARTBEAT, PARTING, STALE, WATCHED, Lease, LeaseState
from trunchray.errors import Interrupted, StoreError, UsageError

_NAME, _CLAIMS = "lease.json", "claims"
SURE = HEARTBEAT
"""How long a look at the claims holds good: whoever sleeps for less is not passed as stale."""
SETTLE = 3.0
"""Seconds after which a claim is looked at again, on stores that let two create the same object."""


def _now() -> datetime:
    return datetime.now(UTC)


class HeldLease:
    """The right to drive one run. It only saves money: two drivers at once would still count every trial once."""

    def __init__(self, store: Store, lease: Lease, now: Callable[[], datetime]) -> None:
        self._store, self._now = store, now
        self._checked = lease.heartbeat
        self.lease = lease

    @classmethod
    def take(
        cls,
        store: Store,
        *,
        takeover: bool = False,
        now: Callable[[], datetime] = _now,
        sleep: Callable[[float], None] = time.sleep,
        pause: Callable[[float], object] = time.sleep,
        note: Callable[[str], None] = lambda _: None,
    ) -> HeldLease:
        """Become the driver of the run in `store`. `note` is told when that takes its time.

        `sleep` is over when the time is; `pause` may end before, when nobody wants to wait any more.

        A driver that is at work is given the time to store what its workers have, so that nobody pays for it again.

        Raises:
            UsageError: another driver is at work, and `takeover` is False; or another has just been faster.
            Interrupted: another took it over at once.
        """
        epoch, found = _last(store)
        if found and not takeover:
            _wait_or_refuse(store, found, now, sleep, note)
        held = cls(store, _mine(epoch + 1, now()), now)
        if not held._claim(sleep):
            raise UsageError("another process has just started to drive this run; wait for it to end")
        held._write()
        if takeover and found and _state(found, now()) != "free":
            note(f"{found.driver} is given up to {PARTING.total_seconds():.0f} s to store what its workers have …")
            try:
                held._see_off(found.epoch, pause)
            except BaseException:
                held.release()
                raise
        return held

    def _see_off(self, epoch: int, pause: Callable[[float], object]) -> None:
        """Wait until the driver of an earlier epoch has ended, or has had the time to."""
        began = self._now()
        for _ in range(int(PARTING.total_seconds())):
            left = _read(self._store, _claim_path(epoch))
            if left is None or left.ended or is_gone(left) or abs(self._now() - began) >= PARTING:
                break
            pause(1)
            self.beat()
        self.check()

    def beat(self) -> None:
        """Say that the driver is alive, when the last time is long enough ago.

        Raises:
            Interrupted: somebody took the lease over.
        """
        if timedelta(0) <= self._now() - self.lease.heartbeat < HEARTBEAT:  # a clock may be set back
            return
        self.check()
        self.lease = self.lease.model_copy(update={"heartbeat": self._now()})
        self._write()

    def confirm(self) -> None:
        """As `check`, when the last look is not of this moment: before anything that counts is stored."""
        if not timedelta(0) <= self._now() - self._checked < SURE:
            self.check()

    def check(self) -> None:
        """Make sure that the lease is still ours.

        Raises:
            Interrupted: somebody took it over.
        """
        now = self._now()
        for epoch in (self.lease.epoch, self.lease.epoch + 1):
            if (later := self._rival(epoch)) is not None:
                raise Interrupted(f"this run is now driven by {later}; nothing is lost, this process stops")
        self._checked = now

    def release(self) -> None:
        """Let the next driver in at once; when that cannot be stored, the lease ends by itself."""
        left = _body(self.lease.model_copy(update={"heartbeat": self._now(), "ended": True}))
        with suppress(StoreError, Interrupted):
            self._store.write(_claim_path(self.lease.epoch), left)
            self.check()
            self._store.write(_NAME, left)

    def _claim(self, sleep: Callable[[float], None]) -> bool:
        """Create the claim; False when somebody else has it."""
        if not self._store.create(_claim_path(self.lease.epoch), _body(self.lease)):
            return False
        if self._store.conditional:
            return True
        # Whoever looked before we wrote has written by then, and the last one has it.
        sleep(SETTLE)
        return self._rival(self.lease.epoch) is None

    def _rival(self, epoch: int) -> str | None:
        """Who else holds the claim of an epoch; None when nobody does."""
        if not self._store.conditional or epoch != self.lease.epoch:
            found = _read(self._store, _claim_path(epoch))
            return found.driver if found and found.driver != self.lease.driver else None
        return None

    def _write(self) -> None:
        self._store.write(_NAME, _body(self.lease))


def is_driven(store: Store, now: Callable[[], datetime] = _now) -> Lease | None:
    """The lease of a driver that seems to be at work; None when the run may be driven by anybody."""
    found = _read(store, _NAME)
    return found if found and _state(found, now()) == "held" else None


def refuse_if_driven(store: Store, now: Callable[[], datetime] = _now) -> None:
    """Refuse what `HeldLease.take` would, as far as that can be told without waiting.

    Raises:
        UsageError: another driver is at work.
    """
    if found := is_driven(store, now):
        raise _held(found, now())


def _wait_or_refuse(
    store: Store,
    found: Lease,
    now: Callable[[], datetime],
    sleep: Callable[[float], None],
    note: Callable[[str], None],
) -> None:
    """See to it that the driver is gone."""
    state, heartbeat = _state(found, now()), f"heartbeat {found.heartbeat:%H:%M:%S} UTC"
    if state == "doubtful":
        note(f"looking whether {found.driver} is gone ({heartbeat}); that takes {WATCHED.total_seconds():.0f} s …")
        sleep(WATCHED.total_seconds())
        if _last(store)[1] == found:
            return
        raise UsageError(
            f"another process drives this run: {found.driver}; its clock and the one here differ ({heartbeat}, and it "
            f"is {now():%H:%M:%S} UTC here). Wait for it to end; commands that have --takeover take it over"
        )
    if state == "held":
        raise _held(found, now())


def _held(lease: Lease, now: datetime) -> UsageError:
    wait = max(0, (lease.heartbeat + STALE - now).total_seconds())
    return UsageError(
        f"another process drives this run: {lease.driver} (heartbeat {lease.heartbeat:%H:%M:%S} UTC). "
        f"Wait for it to end, or, if it is gone, try again in {wait:.0f} s; "
        "commands that have --takeover take it over"
    )


def _state(lease: Lease, now: datetime) -> LeaseState:
    return lease.state(now, host=_host(), alive=_alive(lease.pid))


def read_lease(store: Store) -> Lease | None:
    """Who drove the run last, be it over or not; None when nobody has."""
    return _read(store, _NAME)


def is_gone(lease: Lease) -> bool:
    """Whether its driver was a process of this machine that has ended."""
    return lease.host == _host() and not _alive(lease.pid)


def _last(store: Store) -> tuple[int, Lease | None]:
    """The last epoch, 0 when nobody has driven yet, and what is known of its driver's life."""
    lease = _read(store, _NAME)
    claimed = max(map(_epoch, store.names(_CLAIMS)), default=0)
    if lease and lease.epoch >= claimed:
        return lease.epoch, lease
    # Its driver has not come to write the lease yet, or one that it took over from has written it late.
    return claimed, _read(store, _claim_path(claimed)) if claimed else None


def _epoch(name: str) -> int:
    """Of the name of a claim; 0 when it is none."""
    number = name.removesuffix(".json")
    return int(number) if name.endswith(".json") and number.isascii() and number.isdecimal() else 0


def _claim_path(epoch: int) -> str:
    return f"{_CLAIMS}/{epoch}.json"


def _body(lease: Lease) -> bytes:
    return lease.model_dump_json().encode()


def _mine(epoch: int, now: datetime) -> Lease:
    driver = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    return Lease(driver=driver, host=_host(), pid=os.getpid(), epoch=epoch, heartbeat=now)


def _read(store: Store, path: str) -> Lease | None:
    try:
        return Lease.model_validate_json(store.read(path))
    except (FileNotFoundError, ValidationError):
        return None  # a damaged lease binds nobody


def _host() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()}/{boot}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
