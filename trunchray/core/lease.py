"""Who drives a run. Pure: the clock and the store are somebody else's."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import AwareDatetime, Field

from trunchray.core.frozen import Frozen

STALE = timedelta(seconds=30)
"""A lease whose heartbeat is older may be taken over."""

HEARTBEAT = timedelta(seconds=5)


class Lease(Frozen):
    """One driver's claim on a run. `epoch` grows by one with every takeover."""

    driver: str
    host: str
    """Names the machine and its current boot, so that another driver there can tell whether `pid` is alive."""
    pid: int = Field(ge=1, lt=2**31)
    epoch: int
    heartbeat: AwareDatetime

    def free(self, now: datetime, *, host: str, alive: bool) -> bool:
        """May another driver take it? A heartbeat from the future is as stale as an old one.

        `host` is the asking machine, `alive` whether it runs a process `pid`.
        """
        return abs(now - self.heartbeat) > STALE or (self.host == host and not alive)
