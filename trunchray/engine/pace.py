"""Rates: a bucket that lends requests or tokens, and the rate that a provider's refusals teach.

known ─┤         ╭──╯      the rate, from one refusal to the next: it comes back to what is known within
       │  ╭──────╯         `patience` seconds, stays near it, then looks for more, faster and faster
  95 % ┤──╯
"""

from __future__ import annotations

from dataclasses import dataclass, field

BURST = 1.0
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
CLEAR = 2.0
"""Seconds of a Retry-After that speak of a rate even when few requests were refused."""
SHUT = 0.5
"""The share of refused requests from which on the provider takes none at all for a while, as at the end of a quota."""
FIRST_REST, LONGEST_REST = 1.0, 16.0
"""Seconds for which nothing is asked of a provider that refuses without a Retry-After; doubled while it is shut."""
WINDOW = 10.0
"""Seconds that are looked at while no rate is known."""
SURE = 5.0
"""Seconds after which an estimate counts in full."""
LEAST = 1 / 60
"""Requests a second below which no rate is learned."""


@dataclass(slots=True)
class Bucket:
    """`rate` a second, of which up to `burst` adds up. What was lent comes back as spent or unspent.

    A `strict` one counts what is lent into what may add up: so over any time, what is spent is at most rate × time +
    burst. Of a rate that is a guess, rather less than its due would be spent that way.
    """

    rate: float
    burst: float
    at: float
    strict: bool = True
    level: float = field(init=False)
    lent: float = 0

    def __post_init__(self) -> None:
        self.level = self.burst

    def refill(self, now: float) -> None:
        """Take in what has come since the last time."""
        self.level = max(self.level, min(self._most, self.level + self.rate * (now - self.at)))
        self.at = now

    def set(self, rate: float, burst: float) -> None:
        """Another rate from now on; what is there stays within the new burst."""
        self.rate, self.burst = rate, burst
        self.level = min(self.level, self._most)

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
        self.level = min(self._most, self.level + amount)

    @property
    def _most(self) -> float:
        return self.burst - self.lent if self.strict else self.burst


@dataclass(slots=True)
class _Mark:
    """Where an estimate begins: a time, and what had been begun and refused by then."""

    at: float
    begun: int
    refused: int


class LearnedRate:
    """How many requests a second a provider takes, as far as its refusals tell; None until some do.

    A provider that limits a rate accepts, from one refusal to the next, just what it allows. One that allows a number
    in each minute is shut until the minute is over: so what it took is divided by the time until it takes some again.
    Refusals that do not depend on the rate, as of an overloaded server, must not lower it for ever: below the known
    rate a few of them are taken for chance. `rest` is how long nothing should be asked after the last one, in seconds.
    """

    def __init__(self, now: float) -> None:
        self.known: float | None = None
        self.rest = 0.0
        self._since = now
        self._patience = QUICK
        self._mark = _Mark(now, 0, 0)
        self._opened = self._mark

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
        mark, known = self._mark, self.known
        requests, bad = begun - mark.begun, refused - mark.refused
        share, elapsed = bad / max(1, requests), now - mark.at
        if known is None:
            if share < UNPACED and retry_after < CLEAR:
                if elapsed > WINDOW:
                    self._mark = _Mark(now, begun, refused)
                return False
        elif (self.rate(now) or 0) < EXPECTED * known and share < ODD:
            return False
        shut = known is not None and share >= SHUT
        self.rest = 0.0 if retry_after else min(LONGEST_REST, 2 * self.rest) if shut else FIRST_REST
        wait = max(retry_after, self.rest)
        if shut:
            mark, weight = self._opened, 1.0
            elapsed, requests, bad = now - mark.at, begun - mark.begun, refused - mark.refused
        else:
            weight = 1.0 if known is None else min(1.0, elapsed / SURE)
            self._opened = mark
        estimate = (requests - bad) / max(1.0, elapsed + (wait if shut or known is None else 0))
        before = estimate if known is None else known
        self.known = max(LEAST, before + weight * (estimate - before))
        agree = known is not None and abs(estimate - known) < AGREE * known
        self._patience = SLOW if shut else min(SLOW, 2 * self._patience) if agree else QUICK
        self._since = now + wait
        self._mark = _Mark(now, begun, refused)
        return True
