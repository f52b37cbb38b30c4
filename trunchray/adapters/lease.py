"""Holding the lease of a run: taking it, keeping it warm, giving it back."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from trunchray.adapters.store import Store
from trunchray.core.lease import HEARTBEAT, STALE, Lease
from trunchray.errors import Interrupted, UsageError

_NAME = "lease.json"


def _now() -> datetime:
    return datetime.now(UTC)


class HeldLease:
    """The right to drive one run. It only saves money: two drivers at once would still count every trial once."""

    def __init__(self, store: Store, lease: Lease, now: Callable[[], datetime]) -> None:
        self._store, self._now = store, now
        self.lease = lease

    @classmethod
    def take(cls, store: Store, *, takeover: bool = False, now: Callable[[], datetime] = _now) -> HeldLease:
        """Become the driver of the run in `store`.

        Raises:
            UsageError: another driver is at work, and `takeover` is False.
        """
        found = _read(store)
        if found and not takeover and not found.free(now(), host=_host(), alive=_alive(found.pid)):
            wait = max(0, (found.heartbeat + STALE - now()).total_seconds())
            raise UsageError(
                f"another process drives this run: {found.driver} (heartbeat {found.heartbeat:%H:%M:%S} UTC). "
                f"Wait for it to end, or, if it is gone, try again in {wait:.0f} s; --takeover takes it at once"
            )
        held = cls(store, _mine(found.epoch + 1 if found else 1, now()), now)
        content = held.lease.model_dump_json().encode()
        if found is None and not store.exists(_NAME):
            if not store.create(_NAME, content):
                raise UsageError("another process has just started to drive this run; --takeover takes it from there")
        else:
            store.write(_NAME, content)
        return held

    def beat(self) -> None:
        """Say that the driver is alive, when the last time is long enough ago.

        Raises:
            Interrupted: somebody took the lease over.
        """
        if self._now() - self.lease.heartbeat < HEARTBEAT:
            return
        self.check()
        self.lease = self.lease.model_copy(update={"heartbeat": self._now()})
        self._store.write(_NAME, self.lease.model_dump_json().encode())

    def check(self) -> None:
        """Make sure that the lease is still ours.

        Raises:
            Interrupted: somebody took it over.
        """
        found = _read(self._store)
        if found and found.driver != self.lease.driver:
            raise Interrupted(f"this run is now driven by {found.driver}; nothing is lost, this process stops")

    def release(self) -> None:
        """Let the next driver in at once."""
        found = _read(self._store)
        if found and found.driver == self.lease.driver:
            long_ago = self._now() - 2 * STALE
            self._store.write(_NAME, found.model_copy(update={"heartbeat": long_ago}).model_dump_json().encode())


def is_driven(store: Store, now: Callable[[], datetime] = _now) -> Lease | None:
    """The lease of a driver that seems to be at work; None when the run may be driven by anybody."""
    found = _read(store)
    return None if found is None or found.free(now(), host=_host(), alive=_alive(found.pid)) else found


def _mine(epoch: int, now: datetime) -> Lease:
    driver = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    return Lease(driver=driver, host=_host(), pid=os.getpid(), epoch=epoch, heartbeat=now)


def _read(store: Store) -> Lease | None:
    try:
        return Lease.model_validate_json(store.read(_NAME))
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
