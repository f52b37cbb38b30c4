"""What the store does to requests: a share of them goes wrong all the time, and now and then it is out for a while."""

from __future__ import annotations

import random
import time
from collections import Counter

from support.s3_faults import PASSING, Fault, FaultyStore, Kind

OUTAGES: list[Kind] = ["slow down", "internal error", "cut", "slow"]


class Weather:
    """Spoils `share` of the requests that pass through the proxy, and all of them during an outage."""

    def __init__(self, proxy: FaultyStore, share: float, seed: int) -> None:
        self._proxy, self._share, self._chance = proxy, share, random.Random(seed)
        self._outage: tuple[Kind, float] | None = None
        proxy.log.clear()
        proxy.spoil = self._spoil

    def strike(self, seconds: float) -> str:
        """Let an outage begin; which."""
        kind = self._chance.choice(OUTAGES)
        self._outage = kind, time.monotonic() + seconds
        return kind

    def clear_up(self) -> None:
        """Nothing happens any more."""
        self._share, self._outage = 0, None

    def faults(self) -> Counter[str]:
        """What was done to requests so far."""
        return Counter(asked.fault for asked in self._proxy.log if asked.fault)

    @property
    def requests(self) -> int:
        return len(self._proxy.log)

    def _spoil(self) -> Fault | None:
        if self._outage and time.monotonic() < self._outage[1]:
            return Fault(self._outage[0])
        if self._chance.random() >= self._share:
            return None
        return Fault(self._chance.choice([*PASSING, "torn upload", "slow"]))
