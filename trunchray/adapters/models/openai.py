"""The client for every OpenAI-compatible endpoint: aiohttp, straight to `/chat/completions`.

No provider library stands between: one costs several times the processor time of the request itself, and the
memory of a worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.providers import address_shown
from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.adapters.models.refusal import Refusal, read_error, read_refusal
from trunchray.adapters.models.wire import MalformedReply, RequestWriter, failure, read_reply
from trunchray.core.agent import ModelAgent
from trunchray.errors import ProviderError, UsageError

MAX_BODY = 32 * 2**20
"""Bytes of a reply; a longer one is not read."""


class OpenAIClient:
    """One model behind one endpoint. Connects on the first call, in the event loop of that call.

    The output limit is sent as `max_completion_tokens` to api.openai.com, whose newer models refuse the other name, and
    as `max_tokens` to everybody else. The key is sent to the endpoint and nowhere else: redirects are not followed, and
    its text is replaced in everything that is recorded, and so is the login of a proxy. `wall_clock` (Unix time) reads
    a Retry-After that is a date.
    """

    def __init__(self, spec: ModelAgent, *, api_key: str | None, wall_clock: Callable[[], float] = time.time) -> None:
        if spec.base_url is None:
            raise UsageError(f"model {spec.model!r} needs a base_url, such as 'http://localhost:8000/v1'")
        base = _parsed(spec.base_url)
        self._url = (base / "chat/completions").with_query(base.query)
        self._host = base.authority.rpartition("@")[2]
        self._key = api_key
        self._proxy = proxy_for(spec.base_url)
        self._redaction = Redaction(api_key, self._proxy)
        self._hint = f" (the key came from {spec.api_key_env})" if spec.api_key_env else " (no key was sent)"
        limit_field = "max_completion_tokens" if base.host == "api.openai.com" else "max_tokens"
        self._writer = RequestWriter(spec.model.partition("/")[2], spec.params, limit_field)
        self._pacing = spec.pacing
        self._wall_clock = wall_clock
        self._session: aiohttp.ClientSession | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One request, at most `pacing.timeout` seconds.

        Raises:
            ProviderError: as `refusal` lists them, and timeout, connection, malformed_response and
                response_too_large.
        """
        session = self._session or self._connect()
        try:
            async with session.post(self._url, data=self._writer.write(request), allow_redirects=False) as response:
                body = await self._bounded(response)
        except TimeoutError as e:
            raise self._error(f"no answer in {self._pacing.timeout:g} s", type="timeout", retryable=True) from e
        except aiohttp.ClientConnectorCertificateError as e:
            raise self._error(f"certificate refused: {e.certificate_error}", type="connection") from e
        except (aiohttp.ClientError, OSError) as e:
            raise self._error(f"{type(e).__name__}: {e}", type="connection", retryable=True) from e
        if response.status >= 300:
            return self._refused(
                read_refusal(response.status, response.headers, body, self._redaction.message, now=self._wall_clock())
            )
        return self._reply(body, response.headers.get("x-request-id"))

    async def close(self) -> None:
        """Close every connection; may be called more than once."""
        if self._session is not None:
            await self._session.close()

    def _connect(self) -> aiohttp.ClientSession:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "trunchray"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=self._pacing.max_in_flight, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=self._proxy,
            timeout=aiohttp.ClientTimeout(total=self._pacing.timeout),
        )
        return self._session

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while chunk := await response.content.readany():
            size += len(chunk)
            if size > MAX_BODY:
                response.close()
                raise self._error(f"the reply is longer than {MAX_BODY} bytes", type="response_too_large")
            chunks.append(chunk)
        return b"".join(chunks)

    def _reply(self, body: bytes, request_id: str | None) -> ModelReply:
        try:
            value: Any = json_text.parse(body)
        except ValueError as e:
            text = self._redaction.message(body[:4096].decode("utf-8", "replace"))[:200]
            raise self._malformed(f"the reply is not JSON: {text!r}") from e
        if not isinstance(value, dict):
            raise self._malformed("the reply is not a JSON object")
        error = failure(value)
        if error is not None:
            return self._refused(read_error(error, self._redaction.message))
        try:
            return read_reply(value, request_id, self._redaction.answer)
        except MalformedReply as e:
            raise self._malformed(str(e)) from e

    def _refused(self, refusal: Refusal) -> ModelReply:
        if refusal.filtered:
            return ModelReply(text="", finish_reason="content-filter")
        raise refusal.error(self._host, self._hint)

    def _malformed(self, what: str) -> ProviderError:
        return self._error(what, type="malformed_response", retryable=True)

    def _error(self, what: str, *, type: str, retryable: bool = False) -> ProviderError:
        what = what.replace(str(self._url), str(self._url.with_query(None)))
        return ProviderError(f"{self._host}: {self._redaction.message(what)}", type=type, retryable=retryable)


class _Connector(aiohttp.TCPConnector):
    """Never reuses a connection on which the server sent something after its answer.

    It would be read as the answer to the next request. What arrives only after that request was sent cannot be told
    from its answer.
    """

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's name
    ) -> Connection:
        """A connection from the pool that is quiet, or a new one."""
        connection = await super().connect(req, traces, timeout)
        while connection.protocol is not None and connection.protocol.should_close:
            connection.close()
            connection = await super().connect(req, traces, timeout)
        return connection


def _parsed(base_url: str) -> URL:
    try:
        return URL(base_url)
    except ValueError as e:
        raise UsageError(
            f"base_url {address_shown(base_url)!r} is not an address like 'http://localhost:8000/v1'"
        ) from e
