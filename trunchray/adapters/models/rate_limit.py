"""A provider's rate limit, as `trunchray mock-server` enforces one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many requests a minute; a second's worth may come at once. `names_wait` says when the next one will do."""

    per_minute: float
    names_wait: bool = True


class Limiter:
    """Keeps a limit: a bucket that is filled at its rate. `clock` counts seconds from anywhere."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._names_wait, self._clock = limit.per_minute / 60, limit.names_wait, clock
        self._most = max(1.0, self._rate)
        self._level, self._at = self._most, clock()
        self.taken = self.refused = 0

    def refuses(self) -> tuple[bool, int | None]:
        """Whether a request that comes now is one too many, and the seconds to wait, if that is said."""
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level >= 1:
            self._level -= 1
            self.taken += 1
            return False, None
        self.refused += 1
        return True, ceil((1 - self._level) / self._rate) if self._names_wait else None
