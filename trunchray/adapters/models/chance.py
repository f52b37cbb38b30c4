"""What a mock model's requests meet: how long they take and what goes wrong. Pure.

Everything is drawn from a hash of the request's identity, so that results do not depend on order, worker or resume.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from trunchray.adapters.models.base import ModelRequest
from trunchray.core.agent import Latency, Mock

FaultKind = Literal["rate_limited", "rate_limited_silently", "server_error", "timeout", "malformed"]

FAULT_KINDS: tuple[FaultKind, ...] = (
    "rate_limited",
    "rate_limited_silently",
    "server_error",
    "timeout",
    "malformed",
)
SERVER_ERRORS = (500, 502, 503)

_P99 = NormalDist().inv_cdf(0.99)


@dataclass(frozen=True, slots=True)
class Draw:
    """One request's fate: `seconds` pass before the answer, `status` is that of HTTP. A timeout has no answer."""

    seconds: float = 0
    fault: FaultKind | None = None
    status: int = 200


CALM = Draw()


class Chance:
    """Draws for one mock; with no latency and no faults it costs nothing. A latency of `timeout` is a timeout."""

    def __init__(self, mock: Mock, timeout: float) -> None:
        self._seed = mock.seed
        self._timeout = timeout
        self._latency = mock.latency
        self._faults = mock.faults
        self._calm = mock.latency.p99 == 0 and not any(getattr(mock.faults, kind) for kind in FAULT_KINDS)

    def draw(self, request: ModelRequest) -> Draw:
        """The same request (case, attempt, step and retry) always draws the same."""
        if self._calm:
            return CALM
        fault, latency, status = _uniforms(self._seed, request)
        kind, seconds = self._fault(fault), _seconds(self._latency, latency)
        if kind in ("rate_limited", "rate_limited_silently"):
            return Draw(0, kind, 429)
        if kind == "timeout" or seconds >= self._timeout:
            return Draw(self._timeout, "timeout")
        return Draw(seconds, kind, SERVER_ERRORS[int(status * len(SERVER_ERRORS))] if kind == "server_error" else 200)

    def _fault(self, uniform: float) -> FaultKind | None:
        reached = 0.0
        for kind in FAULT_KINDS:
            reached += getattr(self._faults, kind)
            if uniform < reached:
                return kind
        return None


def _uniforms(seed: int, request: ModelRequest) -> tuple[float, float, float]:
    """Three numbers strictly between 0 and 1."""
    identity = f"{seed} {request.attempt} {request.step} {request.retry} {request.case_id}"
    drawn = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=24).digest()
    a, b, c = (((int.from_bytes(drawn[i : i + 8]) >> 12) + 0.5) / 2**52 for i in (0, 8, 16))
    return a, b, c


def _seconds(latency: Latency, uniform: float) -> float:
    if latency.p99 == latency.p50:
        return latency.p50
    sigma = math.log(latency.p99 / latency.p50) / _P99
    return latency.p50 * math.exp(sigma * NormalDist().inv_cdf(uniform))
