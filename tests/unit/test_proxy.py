"""Which proxy is used, and that nothing of its login is recorded."""

from __future__ import annotations

from base64 import b64encode

import pytest

from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.errors import UsageError


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch):
    """An endpoint is reached through the proxy of its scheme, unless its host is one of those without."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"
    assert proxy_for("https://inside.example/v1") is None
    assert proxy_for("http://api.example/v1") is None


def test_a_proxy_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch):
    """As other programs read it."""
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"


@pytest.mark.parametrize(
    "proxy", ["socks5://u:hunter2@h", "http://u:hun/ter2@h", "http://u:hunter2@", "http://hunter2\x01"]
)
def test_what_is_no_http_proxy_is_refused(monkeypatch: pytest.MonkeyPatch, proxy: str):
    """The message names the variable, and does not repeat what may hold a password."""
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(UsageError, match="what https_proxy holds") as refusal:
        proxy_for("https://api.example/v1")
    assert "ter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "form", ["http://ann:p%40ss%2Fword@h:1", "ann:p%40ss%2Fword", "p%40ss%2Fword", "ann:p@ss/word", "p@ss/word"]
)
def test_the_login_of_a_proxy_is_taken_out(form: str) -> None:
    """Quoted, decoded, or as it is sent."""
    cleaned = Redaction(["sk-key"], ["http://ann:p%40ss%2Fword@h:1"]).message(f"407 from {form}, key sk-key")
    assert "ss" not in cleaned
    assert "[proxy login]" in cleaned
    assert cleaned.endswith("key [key]")


def test_the_header_of_a_proxy_is_taken_out() -> None:
    """A proxy that sends back what it was sent does not get it recorded, in a message or an answer."""
    redaction = Redaction([], ["http://ann:password@h:1"])
    sent = b64encode(b"ann:password").decode()
    assert redaction.message(f"Basic {sent}") == "Basic [proxy login]"
    assert redaction.answer(f"Basic {sent}") == "Basic [proxy login]"


def test_a_user_without_a_password_is_a_login() -> None:
    """Some proxies take a token in place of the user."""
    assert Redaction([], ["http://token123@h:1"]).message("at http://token123@h:1") == "at http://[proxy login]@h:1"


def test_a_short_login_is_taken_out_of_addresses_only() -> None:
    """It may be any word of a message."""
    redaction = Redaction([], ["http://a:b@h:1"])
    assert redaction.message("at http://a:b@h:1: a bad day") == "at http://[proxy login]@h:1: a bad day"


def test_a_proxy_without_a_login_hides_nothing() -> None:
    """Its address may be shown."""
    assert Redaction([], ["http://h:1"]).message("at http://h:1: ") == "at http://h:1: "
