"""Which models can be reached, and with which key."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from trunchray.adapters.models.connect import build_client
from trunchray.adapters.models.mock import MockClient
from trunchray.adapters.models.openai import OpenAIClient
from trunchray.adapters.models.providers import Route, check_headers, check_params, list_price, resolve
from trunchray.core.agent import Mock, ModelAgent
from trunchray.core.digest import sha256
from trunchray.errors import UsageError

LOCAL = "http://localhost:8000/v1"
OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("model", "base_url", "keys", "resolved"),
    [
        ("openai/gpt-4o-mini", None, (), Route("openai", OPENAI, ("OPENAI_API_KEY",))),
        ("openai/gpt-4o-mini", None, ("MY_KEY",), Route("openai", OPENAI, ("MY_KEY",))),
        ("openai/gpt-4o-mini", None, ("A", "B"), Route("openai", OPENAI, ("A", "B"))),
        ("openai/gpt-4o-mini", OPENAI + "/", (), Route("openai", OPENAI, ("OPENAI_API_KEY",))),
        ("openrouter/meta/llama", None, (), Route("openai", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",))),
        ("vllm/qwen", LOCAL + "/", (), Route("openai", LOCAL)),
        ("anything/x", LOCAL, ("MY_KEY",), Route("openai", LOCAL, ("MY_KEY",))),
        ("mock/echo", None, (), Route("mock")),
        ("anthropic/claude", None, (), Route("litellm", None, ("ANTHROPIC_API_KEY",))),
        ("anthropic/claude", LOCAL, (), Route("openai", LOCAL)),
        ("bedrock/anthropic.claude", None, (), Route("litellm")),
        ("dashscope/qwen", None, ("A",), Route("litellm", None, ("A",))),
    ],
)
def test_resolve(model: str, base_url: str | None, keys: tuple[str, ...], resolved: Route) -> None:
    """Known prefixes have an endpoint and a key; a base URL speaks OpenAI's protocol; litellm does the rest."""
    assert resolve(model, base_url, keys) == resolved


@pytest.mark.parametrize(
    ("model", "base_url", "resolved"),
    [
        ("openai/gpt-4o", None, Route("litellm", None, ("OPENAI_API_KEY",))),
        ("together/llama", None, Route("litellm", None, ("TOGETHER_API_KEY",))),
        ("vllm/qwen", LOCAL, Route("litellm", LOCAL)),
        ("anthropic/claude", "https://proxy.example", Route("litellm", "https://proxy.example")),
    ],
)
def test_litellm_by_name(model: str, base_url: str | None, resolved: Route) -> None:
    """Whoever names litellm gets it; also with it, a usual key goes to its own endpoint only."""
    assert resolve(model, base_url, transport="litellm") == resolved


AZURE = "https://name.openai.azure.com"


@pytest.mark.parametrize(
    ("base_url", "version", "address"),
    [
        (AZURE, None, f"{AZURE}/openai/v1"),
        (AZURE + "/", "2024-10-21", f"{AZURE}/openai/deployments/my%2Fgpt?api-version=2024-10-21"),
        (AZURE + "?api-version=2024-10-21", None, f"{AZURE}/openai/deployments/my%2Fgpt?api-version=2024-10-21"),
        (AZURE + "/openai/v1/", None, f"{AZURE}/openai/v1"),
        (AZURE + "/openai/deployments/x?api-version=1", None, f"{AZURE}/openai/deployments/x?api-version=1"),
    ],
)
def test_azure_addresses(base_url: str, version: str | None, address: str) -> None:
    """A deployment stands in the path of a dated interface; resolving what was resolved changes nothing."""
    route = resolve("azure/my/gpt", base_url, api_version=version)
    assert route == Route("openai", address, ("AZURE_OPENAI_API_KEY",))
    assert resolve("azure/my/gpt", route.base_url) == route


def test_keys_of_azure_go_to_azure_only() -> None:
    """A gateway in front of it gets a key that is named for it."""
    assert resolve("azure/gpt", "https://gateway.example").key_names == ()


def test_litellm_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where litellm is not installed, models that need it are refused with the command that installs it."""
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UsageError, match=r"'anthropic/claude' is asked through litellm.*trunchray\[litellm\]"):
        resolve("anthropic/claude")


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("openai/gpt-4o-mini", (0.15, 0.6, 0.075)),
        ("gemini/gemini-2.5-flash", (0.3, 2.5, 0.03)),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", (3, 15, 0.3)),
        ("together/meta-llama/Llama-3.3-70B-Instruct-Turbo", (1.04, 1.04, None)),
    ],
)
def test_list_prices(model: str, price: tuple[float, float, float | None]) -> None:
    """The price of a provider's own model is that of the installed table, which it names with its digest."""
    found = list_price(model, resolve(model))
    assert found
    assert (found.input, found.output, found.cached_input) == price
    assert re.fullmatch(r"litellm \S+ sha256:[0-9a-f]{64}", found.source or "")


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai/gpt-4o-mini", LOCAL),
        ("openai/no-such-model", None),
        ("anthropic/gpt-4o-mini", None),
        ("azure/gpt-4o", AZURE),
        ("mock/echo", None),
    ],
)
def test_unknown_prices_are_unknown(model: str, base_url: str | None) -> None:
    """A model that somebody else serves, or that the table does not know, has no price."""
    assert list_price(model, resolve(model, base_url)) is None


def test_usual_keys_go_to_their_own_endpoint_only() -> None:
    """A key that nobody named is never sent to another server."""
    assert resolve("openai/gpt-4o-mini", LOCAL) == Route("openai", LOCAL)


@pytest.mark.parametrize(
    ("model", "base_url", "message"),
    [
        ("gpt-4o", None, "must be written <provider>/<model>"),
        ("openai/", None, "must be written <provider>/<model>"),
        ("/gpt", LOCAL, "must be written <provider>/<model>"),
        (
            "nobody/x",
            None,
            "deepseek, fireworks, groq, .*, xai, azure and mock, and those that litellm knows; .*base_url",
        ),
        ("azure/gpt", None, "needs the base_url of its resource, for example 'https://NAME.openai.azure.com'"),
        ("ollama/llama3", None, "for example 'http://localhost:11434/v1'"),
        ("mock/relay", None, "did you mean 'mock/replay'"),
        ("mock/zzz", None, "The mocks are mock/echo, mock/replay, mock/script"),
        ("mock/echo", LOCAL, "remove base_url"),
        ("vllm/x", "localhost:8000", "base_url 'localhost:8000' is not an address"),
        ("vllm/x", "http://", "is not an address"),
        ("vllm/x", "http://h:99999", "is not an address"),
        ("vllm/x", "ftp://h/v1", "is not an address"),
    ],
)
def test_unreachable_models_are_refused(model: str, base_url: str | None, message: str) -> None:
    """The message says what is known and what to write instead."""
    with pytest.raises(UsageError, match=message):
        resolve(model, base_url)


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        ("nobody/x", {"transport": "litellm"}, "litellm knows no provider 'nobody'"),
        ("anthropic/x", {"transport": "openai"}, "no OpenAI-compatible endpoint is known for 'anthropic'"),
        ("mock/echo", {"transport": "litellm"}, "remove transport 'litellm'"),
        ("openai/x", {"api_version": "1"}, "api_version is for models of azure"),
    ],
)
def test_ways_that_lead_nowhere_are_refused(model: str, more: dict[str, Any], message: str) -> None:
    """So are a transport and a version that do not fit the model."""
    with pytest.raises(UsageError, match=message):
        resolve(model, **more)


async def test_clients_are_built_from_specs() -> None:
    """A mock needs nothing, a provider its key, a local server only its address."""
    environ = {"OPENAI_API_KEY": "sk-secret\n"}
    assert isinstance(build_client(ModelAgent(name="m", model="mock/echo"), environ={}), MockClient)
    for model, base_url in (("openai/gpt", None), ("vllm/qwen", LOCAL)):
        client = build_client(ModelAgent(name="m", model=model, base_url=base_url), environ=environ)
        assert isinstance(client, OpenAIClient)
        await client.close()


@pytest.mark.parametrize(
    ("spec", "environ", "message"),
    [
        ({"model": "openai/gpt"}, {}, "'openai/gpt' needs a key: set the environment variable OPENAI_API_KEY"),
        ({"model": "groq/x"}, {"GROQ_API_KEY": " "}, "GROQ_API_KEY"),
        ({"model": "groq/x", "api_key_env": ("A", "B")}, {"A": "sk"}, "set the environment variable B where"),
        ({"model": "anthropic/claude"}, {}, "'anthropic/claude' needs a key: set the environment variable ANTHROPIC"),
        ({"model": "bedrock/claude", "params": {"fallbacks": []}}, {}, "params may not set fallbacks"),
        ({"model": "groq/x", "headers": {"api-key": "a b"}}, {"GROQ_API_KEY": "sk"}, "headers are stored with the run"),
        ({"model": "openai/gpt"}, {"OPENAI_API_KEY": "a b"}, "the key in OPENAI_API_KEY has blanks"),
        ({"model": "vllm/x", "base_url": LOCAL, "params": {"stream": True}}, {}, "params may not set stream"),
        ({"model": "vllm/x", "base_url": LOCAL, "params": {"n": 2, "model": "y"}}, {}, "may not set model, n"),
        ({"model": "mock/replay"}, {}, "needs recorded outputs"),
    ],
)
def test_specs_that_cannot_run_are_refused(spec: dict[str, Any], environ: dict[str, str], message: str) -> None:
    """A missing key names its variable and model; the value of a key is never shown."""
    with pytest.raises(UsageError, match=message) as caught:
        build_client(ModelAgent(name="m", **spec), environ=environ)
    assert "a b" not in str(caught.value)


def test_recorded_outputs_must_be_the_ones_named() -> None:
    """A replay file that changed under a run is refused; the right one is played."""
    content = b'{"case_id": "a", "output": "x"}'
    right = ModelAgent(name="m", model="mock/replay", mock=Mock(replay=sha256(content)))
    assert isinstance(build_client(right, environ={}, replay=content), MockClient)
    with pytest.raises(UsageError, match="recorded outputs have changed"):
        build_client(right, environ={}, replay=content + b"\n")
    with pytest.raises(UsageError, match="recorded outputs of 'm':1: not JSON"):
        build_client(ModelAgent(name="m", model="mock/replay"), environ={}, replay=b"{")


def test_credentials_in_an_address_are_refused() -> None:
    """A base_url is stored with the run, so a password in it is refused, and not repeated in the message."""
    with pytest.raises(UsageError, match="may not hold a user name or password") as refusal:
        resolve("any/m", "https://user:hunter2@example.org/v1")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("name", ["api_key", "API-Key", "Authorization", "x-api-key", "password", "aws_session_token"])
def test_credentials_among_params_are_refused(name: str) -> None:
    """So are params that look like a key; counts of tokens do not."""
    with pytest.raises(UsageError, match="api_key_env") as refusal:
        check_params("any/m", {name: "hunter2", "max_tokens": 5})
    assert "hunter2" not in str(refusal.value)
    with pytest.raises(UsageError, match="api_key_env"):
        check_params("any/m", {"extra_body": {name: "hunter2"}})
    check_params("any/m", {"max_tokens": 5, "stop_token_ids": [1], "extra_body": {"top_k": 5}})


@pytest.mark.parametrize(
    ("header", "value", "message"),
    [
        ("Authorization", "hunter2", "name it with api_key_env"),
        ("x-goog-api-key", "hunter2", "name it with api_key_env"),
        ("Cookie", "hunter2", "name it with api_key_env"),
        ("X-Session-Token", "hunter2", "name it with api_key_env"),
        ("Content-Type", "hunter2", "is trunchray's own"),
        ("X Bad", "hunter2", "cannot be sent"),
        ("X-Bad", "hunter2\r\nX: y", "cannot be sent"),
    ],
)
def test_headers_that_may_not_be_sent(header: str, value: str, message: str) -> None:
    """Headers hold neither credentials nor what belongs to the connection; the message does not show the value."""
    with pytest.raises(UsageError, match=message) as refusal:
        check_headers("any/m", {header: value})
    assert "hunter2" not in str(refusal.value)
    check_headers("any/m", {"HTTP-Referer": "https://example.org", "anthropic-beta": "tools-2024"})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "key",
            "api-key",
            "apikey",
            "API_KEY",
            "token",
            "access_token",
            "sig",
            "x-amz-signature",
            "password",
            "secret",
        ),
        *("subscription-key", "client_secret", "api%2Dkey", "v=1&key", "v=1;key"),
    ],
)
def test_keys_in_the_query_of_an_address_are_refused(name: str) -> None:
    """So is a parameter that looks like a key; the message names the remedy, and not the value."""
    with pytest.raises(UsageError, match="name it with api_key_env") as refusal:
        resolve("any/m", f"https://h.example/v1?{name}=hunter2")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("query", ["api-version=2024-10-21", "deployment=a&max_tokens=5", "design=b", ""])
def test_other_queries_are_kept(query: str) -> None:
    """A version or a deployment belongs to an address."""
    assert resolve("any/m", f"https://h.example/v1?{query}").base_url == f"https://h.example/v1?{query}"


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("htp://user:hunter2@h/v1?key=hunter2#hunter2", "htp://h/v1"),
        ("http://user:hun/ter2@h:99999", "http://h:99999"),
        ("user:hunter2@h", "h"),
        ("htp://h/v1?key=x@hunter2", "htp://…"),
        ("http://user:hunter2?hunter2@:1", "http://…"),
        ("http://h/\0", "http://h/\\x00"),
        ("http://h\0/", "http://h\\x00/"),
        ("http://h /v1", "http://h /v1"),
    ],
)
def test_invalid_addresses_are_shown_without_secrets(base_url: str, shown: str) -> None:
    """An address that is refused is shown without user, password and query; NUL and blanks are refused."""
    with pytest.raises(UsageError) as refusal:
        resolve("any/m", base_url)
    assert f"base_url '{shown}' is not an address" in str(refusal.value)
    assert "ter2" not in str(refusal.value)


def test_mocks_do_not_repeat_the_secrets_of_an_address() -> None:
    """Neither does the message for an address that is not needed."""
    with pytest.raises(UsageError, match="remove base_url 'http://h/v1'"):
        resolve("mock/echo", "http://user:hunter2@h/v1")


@pytest.mark.parametrize(
    "name", ["gsk_LIVE0123456789abcdefghij", "sk-LIVE-0123456789-ABCDEF", "SK.0123456789.0123456789"]
)
def test_a_key_in_place_of_its_variable_is_not_repeated(name: str) -> None:
    """Somebody who puts the key itself into api_key_env is told so, without it."""
    with pytest.raises(UsageError, match="looks like a key itself") as refusal:
        build_client(ModelAgent(name="m", model="vllm/x", base_url=LOCAL, api_key_env=name), environ={})
    assert name[:8] not in str(refusal.value)


@pytest.mark.parametrize("name", ["MY_ORGANISATION_OPENAI_API_KEY_2", "my_key"])
def test_the_name_of_a_variable_is_repeated(name: str) -> None:
    """What can only be a name is shown, so that it can be set."""
    with pytest.raises(UsageError, match=f"set the environment variable {name} "):
        build_client(ModelAgent(name="m", model="vllm/x", base_url=LOCAL, api_key_env=name), environ={})


def test_an_address_that_no_client_can_use_is_refused() -> None:
    """A host that cannot be encoded is the user's mistake, not a crash."""
    with pytest.raises(UsageError, match="is not an address"):
        build_client(ModelAgent(name="m", model="vllm/x", base_url="http://ö..x/v1"), environ={})
