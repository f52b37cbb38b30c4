"""What a worker and the governor say to each other about one agent."""

from __future__ import annotations

from typing import NamedTuple

from trunchray.core.budget import Spend


class Demand(NamedTuple):
    """What a worker says of one agent. `requests` to `blocked` count since its process opened."""

    in_flight: int = 0
    waiting: int = 0
    """Requests that wait for a permit or a lease."""
    peak: int = 0
    """The most in flight since it last asked."""
    wanted: int = 0
    """The most in flight and waiting since it last asked."""
    granted: int = 0
    """Permits that it holds."""
    requests: int = 0
    succeeded: int = 0
    uncounted: int = 0
    """Those of the successes whose tokens the provider did not count."""
    refused: int = 0
    """For the rate at which they came."""
    tokens: int = 0
    spent: Spend = Spend()
    trials_waiting: int = 0
    trials_begun: int = 0
    trials_ended: int = 0
    blocked: int = 0
    """Failures that no repetition mends: a refused key, an account that has run out."""
    blocked_in_row: int = 0
    """Those since the last success."""
    reason: str = ""
    """Of the last one of them."""
    retry_after: float = 0
    """Seconds from now for which a provider asked to be left alone, since it last asked."""
    error: str | None = None
    """The last failure since it last asked."""
    oldest: float | None = None
    """Seconds since the oldest trial in flight began."""


class Grant(NamedTuple):
    """How many requests of one agent a worker may make until it asks again."""

    in_flight: int
    """How many may be in flight at a time."""
    requests: int | None
    """How many requests may begin; None for any number."""
    paused_for: float
    """Seconds during which none may."""


class Allowance(NamedTuple):
    """What a worker may do with one agent until it asks again, trials included."""

    grant: Grant
    trials: int | None
    """How many trials may begin beyond those it said had begun; None for any number."""
    closed: str | None
    """Why no trial of the agent may begin any more: "authentication", "quota_exhausted", "budget", "pilot",
    "uncounted"."""
