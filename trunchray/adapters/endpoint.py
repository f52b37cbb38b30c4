"""An HTTP endpoint: JSON in, JSON or text out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pydantic import JsonValue
from yarl import URL

from trunchray.adapters.models import json_text
from trunchray.adapters.models.http import Answer, Http, host_of
from trunchray.adapters.models.providers import address_shown, check_headers
from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.core.agent import Pacing
from trunchray.core.excerpt import excerpt
from trunchray.errors import ProviderError, UsageError

SHOWN = 300
"""Characters of a refusal that are shown."""
_PACING = Pacing(max_in_flight=1024, timeout=86_400)
"""Practically no limits: callers have their own."""


class Endpoint:
    """Posts values to one address, each once: a request that failed is not repeated.

    `headers` are sent as they are, and never hold credentials. The key in the environment variable `api_key_env` is
    sent as a bearer token; `header_env` names the variables that hold the values of further headers. Variables are read
    when the first request is made, and their values are redacted in everything that comes back.

    It can be pickled, and used from several event loops; close it in each of them.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        api_key_env: str | None = None,
        header_env: Mapping[str, str] | None = None,
    ) -> None:
        """Take the address and what is sent to it.

        Raises:
            UsageError: `url` is not an address, or a header looks like a credential.
        """
        self.url = _checked(url)
        self._headers = dict(headers or {})
        check_headers(address_shown(url), self._headers, what="endpoint")
        self._header_env = dict(header_env or {})
        self._api_key_env = api_key_env
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connection] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """All but its connections."""
        return {name: value for name, value in vars(self).items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open = WeakKeyDictionary()

    async def post(self, body: JsonValue) -> JsonValue:
        """The answer: its value when its content type is JSON, else its text.

        Raises:
            ProviderError: there is no answer, or its status is 300 or above, or it is not the JSON that it says.
            UsageError: a variable that holds a credential is not set.
        """
        loop = asyncio.get_running_loop()
        if (connection := self._open.get(loop)) is None:
            connection = self._open[loop] = _Connection(self.url, self._headers, self._secrets())
        return await connection.post(body)

    async def close(self) -> None:
        """Close the connections of this event loop; may be called more than once."""
        if connection := self._open.pop(asyncio.get_running_loop(), None):
            await connection.close()

    def _secrets(self) -> dict[str, str]:
        """The headers that hold credentials."""
        secrets = {name: self._variable(variable) for name, variable in self._header_env.items()}
        if self._api_key_env is not None:
            secrets["Authorization"] = f"Bearer {self._variable(self._api_key_env)}"
        return secrets

    def _variable(self, name: str) -> str:
        if value := os.environ.get(name, "").strip():
            return value
        raise UsageError(f"the environment variable {name}, which holds a key of {address_shown(self.url)}, is not set")


class _Connection:
    """Connections of one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        proxy = proxy_for(url)
        keys = {text for secret in secrets.values() for text in (secret, secret.removeprefix("Bearer "))}
        self._redaction = Redaction(keys, [proxy] if proxy else [])
        self._url, self._headers = URL(url), {**headers, **secrets}
        self._http = Http(_PACING, self._redaction)

    async def post(self, body: JsonValue) -> JsonValue:
        return self._read(await self._http.send("POST", self._url, json_text.dump(body), self._headers))

    async def close(self) -> None:
        await self._http.close()

    def _read(self, answer: Answer) -> JsonValue:
        text = self._redaction.answer(answer.body.decode("utf-8", "replace"))
        if answer.status >= 300:
            moved = " (redirects are not followed: give the address that it moved to)" if answer.status < 400 else ""
            raise self._error(f"HTTP {answer.status}{moved}: {text}", "http_error")
        if "json" not in answer.headers.get("Content-Type", "").lower():
            return text
        try:
            return json_text.parse(text)
        except ValueError as e:
            raise self._error(f"the answer is not JSON: {text}", "malformed_response") from e

    def _error(self, what: str, kind: str) -> ProviderError:
        return ProviderError(f"{host_of(self._url)}: {excerpt(self._redaction.message(what), SHOWN)}", type=kind)


def _checked(url: object) -> str:
    if not isinstance(url, str):
        raise UsageError(f"endpoint: expected an address like 'http://localhost:8000/run', got {url!r:.60}")
    try:
        parts = urlsplit(url)
        URL(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or not url.isprintable() or " " in url:
        raise UsageError(f"endpoint {address_shown(url)!r} is not an address like 'http://localhost:8000/run'")
    if "@" in parts.netloc:
        raise UsageError(
            f"endpoint {address_shown(url)!r} may not hold a user name or password: put it into an environment "
            "variable, and name it with api_key_env or header_env"
        )
    return url
