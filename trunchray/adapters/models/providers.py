"""Which models can be reached, and how: the known providers, their endpoints and where their keys are found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from pydantic import JsonValue

from trunchray.adapters.models import catalog
from trunchray.core.agent import Price, Transport
from trunchray.core.credentials import names_secret
from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint and the environment variable that usually holds its key."""

    base_url: str
    api_key_env: str


PROVIDERS: Mapping[str, Provider] = {
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "deepinfra": Provider("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
}

FOREIGN: Mapping[str, str | None] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure_ai": "AZURE_AI_API_KEY",
    "bedrock": None,
    "cohere": "COHERE_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "huggingface": "HF_TOKEN",
    "replicate": "REPLICATE_API_KEY",
    "sagemaker_chat": None,
    "snowflake": None,
    "vertex_ai": None,
    "watsonx": None,
}
"""Providers with protocols of their own, and the variables that usually hold their keys.

None: the credentials are more than a key, and litellm finds them where the provider's own tools do. litellm knows more
providers than these; see `catalog`.
"""

_LITELLM_NAMES: Mapping[str, str] = {
    "fireworks": "fireworks_ai",
    "llamacpp": "hosted_vllm",
    "sglang": "hosted_vllm",
    "together": "together_ai",
    "vllm": "hosted_vllm",
}
"""What litellm calls providers that have another name here."""

AZURE_KEY = "AZURE_OPENAI_API_KEY"
_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")

LOCAL: Mapping[str, str] = {
    "llamacpp": "http://localhost:8080/v1",
    "ollama": "http://localhost:11434/v1",
    "sglang": "http://localhost:30000/v1",
    "vllm": "http://localhost:8000/v1",
}
"""Servers that people run themselves, and where they listen unless told otherwise; shown in messages, never guessed."""


class Route(NamedTuple):
    """How a model is asked. A mock has neither endpoint nor keys; litellm knows endpoints that are None."""

    transport: Literal["mock", "openai", "litellm"]
    base_url: str | None = None
    """Without a trailing slash."""
    key_names: tuple[str, ...] = ()
    """The environment variables that hold the keys."""


MOCKS = ("mock/echo", "mock/replay", "mock/script")

RESERVED_PARAMS = frozenset({"messages", "model", "n", "stream", "tools"})
"""Request fields that are trunchray's own."""

_SECRET = re.compile(
    "apikey|xapikey|authorization|password|secret|accesstoken|.*(secretaccesskey|accesskeyid|sessiontoken|credentials)"
)
_OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
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


def resolve(
    model: str,
    base_url: str | None = None,
    key_names: tuple[str, ...] = (),
    *,
    transport: Transport = "auto",
    api_version: str | None = None,
) -> Route:
    """The way to a model. `auto` is straight to any OpenAI-compatible endpoint, and through litellm to all others.

    A provider's usual key goes to that provider's own endpoint only: with another `base_url`, no key is sent unless
    `key_names` has one. `api_version` is Azure's.

    Raises:
        UsageError: the model is not `<provider>/<model>`, its provider is not known and there is no `base_url`, the
            `base_url` is not an HTTP address, or litellm is needed and not installed.
    """
    prefix, slash, name = model.partition("/")
    if not (prefix and slash and name):
        raise UsageError(f"model {model!r} must be written <provider>/<model>, for example 'openai/gpt-4o-mini'")
    if prefix == "mock":
        return _resolve_mock(model, base_url, transport)
    address = None if base_url is None else _checked(model, base_url)
    if api_version is not None and prefix != "azure":
        raise UsageError(f"model {model!r}: api_version is for models of azure; put it into the base_url instead")
    if transport == "litellm" or (transport == "auto" and address is None and _is_foreign(prefix)):
        return _through_litellm(model, prefix, address, key_names)
    if prefix == "azure":
        return _resolve_azure(model, name, address, key_names, api_version)
    provider = PROVIDERS.get(prefix)
    if address is not None:
        usual = provider.api_key_env if provider and provider.base_url == address else None
        return Route("openai", address, key_names or _listed(usual))
    if provider is None:
        raise UsageError(_unknown(model, prefix, transport))
    return Route("openai", provider.base_url, key_names or (provider.api_key_env,))


def litellm_name(model: str) -> str:
    """What litellm calls a model."""
    prefix, _, name = model.partition("/")
    return f"{_LITELLM_NAMES.get(prefix, prefix)}/{name}"


def list_price(model: str, route: Route) -> Price | None:
    """What the provider of a model asks for it; None when that is not known, or when somebody else serves it.

    A deployment of Azure has a name of its own, from which nothing follows.
    """
    prefix = model.partition("/")[0]
    provider = PROVIDERS.get(prefix)
    own = route.base_url is None or (provider is not None and provider.base_url == route.base_url)
    if route.transport == "mock" or not own:
        return None
    return catalog.price(*litellm_name(model).split("/", 1))


def _is_foreign(prefix: str) -> bool:
    ours = prefix in PROVIDERS or prefix in LOCAL or prefix == "azure"
    return prefix in FOREIGN or (not ours and prefix in catalog.providers())


def _through_litellm(model: str, prefix: str, address: str | None, key_names: tuple[str, ...]) -> Route:
    if not catalog.installed():
        raise UsageError(
            f"model {model!r} is asked through litellm, which is not installed: `pip install 'trunchray[litellm]'`, "
            "also where the workers run; an OpenAI-compatible endpoint needs only its base_url"
        )
    name = _LITELLM_NAMES.get(prefix, prefix)
    if name not in FOREIGN and name not in catalog.providers() and name != "hosted_vllm":
        raise UsageError(f"model {model!r}: litellm knows no provider {prefix!r}; is it spelt as in litellm's list?")
    provider = PROVIDERS.get(prefix)
    usual = FOREIGN.get(prefix) or (provider.api_key_env if provider else None)
    return Route("litellm", address, key_names or (_listed(usual) if address is None or prefix == "azure_ai" else ()))


def _resolve_azure(
    model: str, deployment: str, address: str | None, key_names: tuple[str, ...], api_version: str | None
) -> Route:
    """Azure names a deployment in the path when the version of its interface is dated, and in the body otherwise."""
    if address is None:
        raise UsageError(
            f"model {model!r} needs the base_url of its resource, for example 'https://NAME.openai.azure.com'"
        )
    parts = urlsplit(address)
    usual = AZURE_KEY if (parts.hostname or "").endswith(_AZURE_HOSTS) else None
    path, query = parts.path.rstrip("/"), parts.query
    if api_version is not None and "api-version=" not in query:
        query = "&".join(part for part in (query, f"api-version={quote(api_version, safe='')}") if part)
    if "/openai/" not in f"{path}/":
        dated = "api-version=" in query
        path += f"/openai/deployments/{quote(deployment, safe='')}" if dated else "/openai/v1"
    base_url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    return Route("openai", base_url, key_names or _listed(usual))


def _listed(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def check_params(model: str, params: Mapping[str, JsonValue]) -> None:
    """Refuse request fields that would change what a reply is, in `extra_body`, too.

    Raises:
        UsageError: naming the fields.
    """
    extra = params.get("extra_body")
    if extra is not None and not isinstance(extra, dict):
        raise UsageError(f"model {model!r}: params.extra_body must be a mapping of request fields")
    names = [*params, *(extra or ())]
    taken = sorted(RESERVED_PARAMS & set(names))
    if taken:
        raise UsageError(f"model {model!r}: params may not set {', '.join(taken)}; for several answers use attempts")
    secrets = sorted(name for name in names if _is_secret(name))
    if secrets:
        raise UsageError(
            f"model {model!r}: params are stored with the run, so {', '.join(secrets)} may not stand there; "
            "put the key into an environment variable and name it with api_key_env"
        )


def check_headers(model: str, headers: Mapping[str, str], *, what: str = "model") -> None:
    """Refuse headers that are a client's own, that hold credentials, or that cannot be sent.

    `what` says what kind of thing `model` names.

    Raises:
        UsageError: naming the header, never its value.
    """
    for name, value in headers.items():
        if not re.fullmatch("[A-Za-z0-9-]+", name) or not (value.isascii() and value.isprintable()):
            raise UsageError(f"{what} {model!r}: the header {name!r} cannot be sent: use printable ASCII, on one line")
        if name.lower() in _OWN_HEADERS:
            raise UsageError(f"{what} {model!r}: the header {name!r} is trunchray's own; remove it")
        if _is_secret(name) or names_secret(name):
            raise UsageError(
                f"{what} {model!r}: headers are stored with the run, so {name!r} may not stand there; "
                "put the key into an environment variable and name it with api_key_env"
            )


def _is_secret(name: str) -> bool:
    return _SECRET.fullmatch(re.sub("[^a-z]", "", name.lower())) is not None


def _resolve_mock(model: str, base_url: str | None, transport: Transport) -> Route:
    if model not in MOCKS:
        near = get_close_matches(model, MOCKS, n=1, cutoff=0)[0]
        raise UsageError(f"there is no model {model!r}; did you mean {near!r}? The mocks are {', '.join(MOCKS)}")
    if base_url is not None:
        raise UsageError(
            f"model {model!r} answers inside trunchray: remove base_url {address_shown(base_url)!r}, or name the model "
            "'<any>/<name>' to ask a server"
        )
    if transport != "auto":
        raise UsageError(f"model {model!r} answers inside trunchray: remove transport {transport!r}")
    return Route("mock")


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


def _unknown(model: str, prefix: str, transport: Transport) -> str:
    example = LOCAL.get(prefix, "http://localhost:8000/v1")
    known = ", ".join(sorted(PROVIDERS))
    if transport == "openai" and _is_foreign(prefix):
        return f"model {model!r}: no OpenAI-compatible endpoint is known for {prefix!r}; give its base_url"
    more = ", and those that litellm knows" if catalog.installed() else "; more with `pip install 'trunchray[litellm]'`"
    return (
        f"model {model!r}: no endpoint is known for {prefix!r}. Known are {known}, azure and mock{more}; for any other "
        f"OpenAI-compatible endpoint give its base_url, for example {example!r}"
    )
