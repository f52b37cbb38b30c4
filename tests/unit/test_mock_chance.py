"""What a mock's requests meet."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trunchray.adapters.models.base import ModelRequest
from trunchray.adapters.models.chance import CALM, Chance, Draw
from trunchray.core.agent import Faults, Latency, Mock


def request(case_id: str = "case-1", *, attempt: int = 1, step: int = 1, retry: int = 0) -> ModelRequest:
    return ModelRequest((), 16, case_id, attempt=attempt, step=step, retry=retry)


def draws(mock: Mock, count: int = 2000, *, timeout: float = 120) -> list[Draw]:
    chance = Chance(mock, timeout)
    return [chance.draw(request(f"case-{i}")) for i in range(count)]


def test_calm_mock_draws_nothing() -> None:
    """Without latency and faults every request gets the same free draw."""
    assert Chance(Mock(), 120).draw(request()) is CALM


def test_known_draws_stay() -> None:
    """An upgrade must not change what a recorded configuration draws."""
    mock = Mock(seed=7, latency=Latency(p50=0.5, p99=2), faults=Faults(server_error=0.3, rate_limited=0.2))
    chance = Chance(mock, 120)
    drawn = [chance.draw(request(retry=retry)) for retry in range(7)]
    assert [draw.fault for draw in drawn] == [None, "rate_limited", None, None, None, None, "server_error"]
    assert [draw.status for draw in drawn] == [200, 429, 200, 200, 200, 200, 500]
    seconds = [1.612755346, 0, 0.96858929, 0.713132457, 1.013924523, 0.409622933, 0.299132053]
    assert [draw.seconds for draw in drawn] == pytest.approx(seconds)


def test_every_part_of_the_identity_counts() -> None:
    """Case, attempt, step, retry and seed each lead to a draw of their own."""
    latency = Latency(p50=1, p99=5)
    requests = [request(), request("case-2"), request(attempt=2), request(step=2), request(retry=1)]
    seconds = {Chance(Mock(latency=latency), 120).draw(each).seconds for each in requests}
    seconds.add(Chance(Mock(latency=latency, seed=1), 120).draw(request()).seconds)
    assert len(seconds) == 6


def test_latency_has_the_quantiles_asked_for() -> None:
    """The median and the 99th percentile of what is drawn are those of the spec."""
    seconds = sorted(draw.seconds for draw in draws(Mock(latency=Latency(p50=0.5, p99=2)), timeout=1000))
    assert seconds[1000] == pytest.approx(0.5, rel=0.05)
    assert seconds[1980] == pytest.approx(2, rel=0.25)


def test_equal_quantiles_are_constant() -> None:
    """A latency whose quantiles are equal is that number of seconds, always."""
    assert {draw.seconds for draw in draws(Mock(latency=Latency(p50=0.25, p99=0.25)), 50)} == {0.25}


def test_faults_come_in_their_shares() -> None:
    """Each kind of fault is drawn about as often as the spec says."""
    faults = Faults(rate_limited=0.1, rate_limited_silently=0.1, server_error=0.2, timeout=0.1, malformed=0.1)
    drawn = [draw.fault for draw in draws(Mock(faults=faults))]
    for kind in type(faults).model_fields:
        if kind != "retry_after":
            assert drawn.count(kind) / 2000 == pytest.approx(getattr(faults, kind), abs=0.03)
    assert drawn.count(None) / 2000 == pytest.approx(0.4, abs=0.03)


def test_a_share_of_one_is_always() -> None:
    """A fault with share 1 meets every request, and server errors are of all three kinds."""
    drawn = draws(Mock(faults=Faults(server_error=1)), 100)
    assert {draw.fault for draw in drawn} == {"server_error"}
    assert {draw.status for draw in drawn} == {500, 502, 503}


def test_rate_limits_are_answered_at_once() -> None:
    """A refused request has no latency."""
    mock = Mock(latency=Latency(p50=3, p99=3), faults=Faults(rate_limited=0.5, rate_limited_silently=0.5))
    assert {draw.seconds for draw in draws(mock, 20)} == {0}


def test_latency_beyond_the_timeout_is_a_timeout() -> None:
    """A request that would take longer than its timeout takes exactly that and fails."""
    assert draws(Mock(latency=Latency(p50=9, p99=9)), 1, timeout=5) == [Draw(5, "timeout")]


@pytest.mark.parametrize("latency", [(2, 1), (0, 1), (float("nan"), 1), (1, float("inf"))])
def test_impossible_latency_is_refused(latency: tuple[float, float]) -> None:
    """Quantiles that no log-normal distribution has are refused when the spec is read."""
    with pytest.raises(ValidationError):
        Latency(p50=latency[0], p99=latency[1])


def test_shares_beyond_one_are_refused() -> None:
    """Faults cannot happen more than always."""
    with pytest.raises(ValidationError, match=r"add up to 1\.2"):
        Faults(timeout=0.6, malformed=0.6)
    assert Faults(rate_limited=0.7, timeout=0.1, malformed=0.2)
