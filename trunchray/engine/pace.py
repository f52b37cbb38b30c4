"""Rates: a bucket that lends requests or tokens, and the rate that a provider's refusals teach.

known ─┤         ╭──╯      the rate, from one refusal to the next: it comes back to what is known within
       │  ╭──────╯         `patience` seconds, stays near it, then looks for more, faster and faster
  95 % ┤──╯
"""

from __future__ import annotations

from dataclasses import dataclass, field

BURST = 0.5
"""Seconds' worth of a rate that may come at once after a quiet moment."""
CUT = 0.05
"""The share by which a refusal lowers the known rate."""
QUICK, SLOW = 4.0, 30.0
"""Seconds until the known rate is tried again: while it is a guess, and once refusals confirm it."""
AGREE = 0.1
"""How far two estimates of a rate may differ and still confirm each other."""
EXPECTED = 1.03
"""From this many times the known rate on, a refusal says what the rate is. Below, the odd one is chance."""
ODD = 0.3
"""The share of refused requests from which on it is not chance."""
UNPACED = 0.05
"""The share of refused requests from which on a rate is taken to be behind it."""
WINDOW = 10.0
"""Seconds that are looked at while no rate is known."""
SURE = 5.0
"""Seconds after which an estimate counts in full."""
LEAST = 1 / 60
"""Requests a second below which no rate is learned."""


@dataclass(slots=True)
class Bucket:
    """`rate` a second, of which up to `burst` adds up, what is lent included.

    So over any time, what is spent is at most rate × time + burst. What was lent comes back as spent or unspent.
    """

    rate: float
    burst: float
    at: float
    level: float = field(init=False)
    lent: float = 0

    def __post_init__(self) -> None:
        self.level = self.burst

    def refill(self, now: float) -> None:
        """Take in what has come since the last time."""
        self.level = max(self.level, min(self.burst - self.lent, self.level + self.rate * (now - self.at)))
        self.at = now

    def set(self, rate: float, burst: float) -> None:
        """Another rate from now on; what is there stays within the new burst."""
        self.rate, self.burst = rate, burst
        self.level = min(self.level, burst - self.lent)

    def lend(self, amount: float) -> None:
        """Give out so much, which must be there."""
        self.level -= amount
        self.lent += amount

    def settle(self, spent: float, unspent: float) -> None:
        """Of what was lent, so much was spent and so much was not."""
        self.lent = max(0.0, self.lent - spent - unspent)
        self.correct(unspent)

    def correct(self, amount: float) -> None:
        """So much less was spent than was said; more, when it is negative, which leaves a debt."""
        self.level = min(self.burst - self.lent, self.level + amount)


@dataclass(slots=True)
class _Mark:
    """Where an estimate begins: a time, and what had been begun and refused by then."""

    at: float
    begun: int
    refused: int


class LearnedRate:
    """How many requests a second a provider takes, as far as its refusals tell; None until some do.

    A provider that limits a rate accepts, from one refusal to the next, just what it allows. Refusals that do not
    depend on the rate, as of an overloaded server, must not lower it for ever: below the known rate a few of them are
    taken for chance.
    """

    def __init__(self, now: float) -> None:
        self.known: float | None = None
        self._since = now
        self._patience = QUICK
        self._mark = _Mark(now, 0, 0)

    def rate(self, now: float) -> float | None:
        """Requests a second."""
        if self.known is None:
            return None
        step = (max(0.0, now - self._since) - self._patience) / self._patience
        return max(LEAST, self.known * (1 + CUT * step**3))

    def idle(self, now: float, seconds: float, begun: int, refused: int) -> None:
        """For so long fewer requests came than might: that says nothing about how many are taken."""
        self._since += seconds
        self._mark = _Mark(now, begun, refused)

    def refused(self, now: float, begun: int, refused: int, retry_after: float) -> bool:
        """A request was refused; `begun` and `refused` count all so far. Whether that lowers the rate."""
        mark = self._mark
        requests, bad = begun - mark.begun, refused - mark.refused
        share, elapsed = bad / max(1, requests), now - mark.at
        if self.known is None:
            if share < UNPACED:
                if elapsed > WINDOW:
                    self._mark = _Mark(now, begun, refused)
                return False
            self._learn(max(requests - bad, 1) / max(1.0, elapsed + retry_after), 1.0)
        elif (self.rate(now) or 0) < EXPECTED * self.known and share < ODD:
            return False
        elif elapsed > 0:
            self._learn((requests - bad) / elapsed, min(1.0, elapsed / SURE))
        self._since = now + retry_after
        self._mark = _Mark(now, begun, refused)
        return True

    def _learn(self, estimate: float, weight: float) -> None:
        before = self.known
        if before is None:
            self.known = max(LEAST, estimate)
            return
        self.known = max(LEAST, before + weight * (estimate - before))
        agree = abs(estimate - before) < AGREE * before
        self._patience = min(SLOW, 2 * self._patience) if agree else QUICK
