from __future__ import annotations

import pytest

from trunchray.adapters.models.proxy import proxy_for


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch):
    """An endpoint is reached through the proxy of its scheme, unless its host is one of those without."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"
    assert proxy_for("https://inside.example/v1") is None
    assert proxy_for("http://api.example/v1") is None
