"""Which models can be reached, and how: the known providers, their endpoints and where their keys are found. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import parse_qsl, urlsplit

from pydantic import JsonValue

from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint and the environment variable that usually holds its key."""

    base_url: str
    api_key_env: str


PROVIDERS: Mapping[str, Provider] = {
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
}

LOCAL: Mapping[str, str] = {
    "llamacpp": "http://localhost:8080/v1",
    "ollama": "http://localhost:11434/v1",
    "sglang": "http://localhost:30000/v1",
    "vllm": "http://localhost:8000/v1",
}
"""Servers that people run themselves, and where they listen unless told otherwise; shown in messages, never guessed."""

MOCKS = ("mock/echo", "mock/replay", "mock/script")

RESERVED_PARAMS = frozenset({"messages", "model", "n", "stream", "tools"})
"""Request fields that are trunchray's own."""

_SECRET = frozenset({"apikey", "xapikey", "authorization", "password", "secret", "accesstoken"})
_SECRET_QUERY = re.compile(r".*(key|token|secret|signature|password|authorization)|sig|auth|pass(wd)?|pwd")


def address_shown(base_url: str) -> str:
    """What messages show of an address, valid or not: neither a user name and password, nor a query."""
    scheme, slashes, rest = base_url.partition("://") if "://" in base_url else ("", "", base_url)
    hidden, at, rest = rest.rpartition("@")
    if at and re.search("[?#]", hidden):
        return f"{scheme}{slashes}…"
    return scheme + slashes + re.split("[?#]", rest, maxsplit=1)[0]


def is_mock(model: str) -> bool:
    return model.startswith("mock/")


def resolve(model: str, base_url: str | None, api_key_env: str | None) -> tuple[str | None, str | None]:
    """The endpoint, without a trailing slash, and the variable that holds its key; both None for a mock.

    A provider's usual key goes to that provider's own endpoint only: with another `base_url`, no key is sent unless
    `api_key_env` names one.

    Raises:
        UsageError: the model is not `<provider>/<model>`, its provider is not known and there is no `base_url`, or
            the `base_url` is not an HTTP address.
    """
    prefix, slash, name = model.partition("/")
    if not (prefix and slash and name):
        raise UsageError(f"model {model!r} must be written <provider>/<model>, for example 'openai/gpt-4o-mini'")
    if prefix == "mock":
        return _resolve_mock(model, base_url)
    provider = PROVIDERS.get(prefix)
    if base_url is not None:
        address = _checked(model, base_url)
        usual = provider.api_key_env if provider and provider.base_url == address else None
        return address, api_key_env or usual
    if provider is None:
        raise UsageError(_unknown(model, prefix))
    return provider.base_url, api_key_env or provider.api_key_env


def check_params(model: str, params: Mapping[str, JsonValue]) -> None:
    """Refuse request fields that would change what a reply is.

    Raises:
        UsageError: naming the fields.
    """
    taken = sorted(RESERVED_PARAMS & params.keys())
    if taken:
        raise UsageError(f"model {model!r}: params may not set {', '.join(taken)}; for several answers use attempts")
    secrets = sorted(name for name in params if re.sub("[^a-z]", "", name.lower()) in _SECRET)
    if secrets:
        raise UsageError(
            f"model {model!r}: params are stored with the run, so {', '.join(secrets)} may not stand there; "
            "put the key into an environment variable and name it with api_key_env"
        )


def _resolve_mock(model: str, base_url: str | None) -> tuple[None, None]:
    if model not in MOCKS:
        near = get_close_matches(model, MOCKS, n=1, cutoff=0)[0]
        raise UsageError(f"there is no model {model!r}; did you mean {near!r}? The mocks are {', '.join(MOCKS)}")
    if base_url is not None:
        raise UsageError(
            f"model {model!r} answers inside trunchray: remove base_url {address_shown(base_url)!r}, or name the model "
            "'<any>/<name>' to ask a server"
        )
    return None, None


def _checked(model: str, base_url: str) -> str:
    if not _is_address(base_url):
        shown = address_shown(base_url)
        raise UsageError(f"model {model!r}: base_url {shown!r} is not an address like 'http://localhost:8000/v1'")
    if "@" in urlsplit(base_url).netloc:
        raise UsageError(
            f"model {model!r}: base_url is stored with the run and may not hold a user name or password; "
            "put the key into an environment variable and name it with api_key_env"
        )
    secret = _secret_in_query(base_url)
    if secret is not None:
        raise UsageError(
            f"model {model!r}: base_url is stored with the run and may not hold a key in its query, as {secret!r} "
            "looks like; put the key into an environment variable and name it with api_key_env"
        )
    return base_url.rstrip("/")


def _secret_in_query(base_url: str) -> str | None:
    query = urlsplit(base_url).query.replace(";", "&")
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    return next((name for name in names if _SECRET_QUERY.fullmatch(re.sub("[^a-z]", "", name.lower()))), None)


def _is_address(base_url: str) -> bool:
    if not base_url.isprintable() or " " in base_url:
        return False
    try:
        parts = urlsplit(base_url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _unknown(model: str, prefix: str) -> str:
    example = LOCAL.get(prefix, "http://localhost:8000/v1")
    return (
        f"model {model!r}: no endpoint is known for {prefix!r}. Known are {', '.join(sorted(PROVIDERS))} and mock; for "
        f"any other OpenAI-compatible endpoint give its base_url, for example {example!r}"
    )
