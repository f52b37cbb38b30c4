"""Whether anybody listens at an address, asked before a run."""

from __future__ import annotations

import socket

import pytest

from trunchray.adapters.models.reachable import check_reachable
from trunchray.core.agent import ModelAgent
from trunchray.errors import UsageError


def spec(base_url: str) -> ModelAgent:
    return ModelAgent(name="m", model="a/b", base_url=base_url)


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between."""
    monkeypatch.setenv("no_proxy", "*")


def test_a_listener_is_reachable() -> None:
    """One connection, nothing is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(spec(f"http://127.0.0.1:{server.getsockname()[1]}/v1"))


def test_nobody_listening_is_refused() -> None:
    """The address is shown without its query or a login."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as refusal:
            check_reachable(spec(f"http://ann:hunter2@127.0.0.1:{port}/v1?v=hunter2"))
    assert f"nobody answers at http://127.0.0.1:{port}/v1 (" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("host", ["a..example", ".example", "a" * 64 + ".example"])
def test_hosts_that_cannot_be_looked_up_are_refused(host: str) -> None:
    """An empty or over-long label is a wrong address, not a crash."""
    with pytest.raises(UsageError, match="correct base_url"):
        check_reachable(spec(f"http://{host}/v1"))
