"""Who drives a run. Pure: the clock and the store are somebody else's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from pydantic import AwareDatetime, Field

from trunchray.core.frozen import Frozen

STALE = timedelta(seconds=30)
"""A lease whose heartbeat is older may be taken over, once its driver was seen to be silent."""

HEARTBEAT = timedelta(seconds=5)
"""How often a driver says that it lives."""

WATCHED = timedelta(seconds=15)
"""How long a lease that looks stale is watched: a driver that lives says so meanwhile, however its clock goes."""

PARTING = timedelta(seconds=15)
"""How long a driver that lives has, once it is taken over from, to notice that and to store what its workers have."""

LeaseState = Literal["free", "doubtful", "held"]
"""Whether another driver may take a lease; doubtful: only once its driver was seen to be silent."""


class Lease(Frozen):
    """One driver's claim on a run. `epoch` grows by one with every takeover."""

    driver: str
    host: str
    """Names the machine and its current boot, so that another driver there can tell whether `pid` is alive."""
    pid: int = Field(ge=1, lt=2**31)
    epoch: int
    heartbeat: AwareDatetime
    ended: bool = False
    """Given back by its driver."""

    def state(self, now: datetime, *, host: str, alive: bool) -> LeaseState:
        """May another driver take it? A heartbeat from the future is as stale as an old one.

        "doubtful" is stale as far as clocks tell, and they may not: two machines' may differ by an hour. `host` is the
        asking machine, `alive` whether it runs a process `pid`.
        """
        if self.ended or (self.host == host and not alive):
            return "free"
        return "doubtful" if abs(now - self.heartbeat) > STALE else "held"
