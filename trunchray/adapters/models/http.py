"""One HTTP request to a provider and its answer, whatever the protocol: bounded, timed, never redirected."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.core.agent import Pacing
from trunchray.errors import ProviderError

MAX_BODY = 32 * 2**20
"""Bytes of a reply; a longer one is not read."""

_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "mistral-correlation-id")


class Answer(NamedTuple):
    """What came back; `headers` look up names in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def request_id(self) -> str | None:
        """The id that the provider's support asks for."""
        return next((self.headers[name] for name in _REQUEST_IDS if name in self.headers), None)


_overheard: ContextVar[list[Answer] | None] = ContextVar("overheard", default=None)


@contextmanager
def overhearing() -> Generator[list[Answer]]:
    """The answers to requests that this task sends in the block, refusals among them, as the provider sent them."""
    answers: list[Answer] = []
    token = _overheard.set(answers)
    try:
        yield answers
    finally:
        _overheard.reset(token)


class Http:
    """The connections of one client; the first is made in the event loop of the first request.

    Redirects are not followed, cookies not kept, and a proxy is taken from the environment.
    """

    def __init__(self, pacing: Pacing, redaction: Redaction) -> None:
        self._pacing, self._redaction = pacing, redaction
        self._proxies: dict[tuple[str, str | None], str | None] = {}
        self._session: aiohttp.ClientSession | None = None

    async def send(self, method: str, url: URL, content: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request, at most `pacing.timeout` seconds.

        Raises:
            ProviderError: timeout, connection or response_too_large; without secrets and without the address's query.
        """
        session = self._session or self._connect()
        try:
            async with session.request(
                method, url, data=content, headers=headers, proxy=self._proxy(url), allow_redirects=False
            ) as response:
                answer = Answer(response.status, response.headers, await self._bounded(url, response))
        except TimeoutError as e:
            raise self._error(url, f"no answer in {self._pacing.timeout:g} s", "timeout", retryable=True) from e
        except aiohttp.ClientConnectorCertificateError as e:
            raise self._error(url, f"certificate refused: {e.certificate_error}", "connection") from e
        except aiohttp.ClientConnectorError as e:
            reason = e.os_error.strerror or e.os_error
            raise self._error(url, f"cannot connect ({reason})", "connection", retryable=True) from e
        except (aiohttp.ClientError, OSError) as e:
            raise self._error(url, f"{type(e).__name__}: {e}", "connection", retryable=True) from e
        if (answers := _overheard.get()) is not None:
            answers.append(answer)
        return answer

    async def close(self) -> None:
        """Close every connection; may be called more than once."""
        if self._session is not None:
            await self._session.close()

    def _connect(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=self._pacing.max_in_flight, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "trunchray"},
            timeout=aiohttp.ClientTimeout(total=self._pacing.timeout),
        )
        return self._session

    def _proxy(self, url: URL) -> str | None:
        place = (url.scheme, url.host)
        if place not in self._proxies:
            self._proxies[place] = proxy_for(str(url))
        return self._proxies[place]

    async def _bounded(self, url: URL, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while chunk := await response.content.readany():
            size += len(chunk)
            if size > MAX_BODY:
                response.close()
                raise self._error(url, f"the reply is longer than {MAX_BODY} bytes", "response_too_large")
            chunks.append(chunk)
        return b"".join(chunks)

    def _error(self, url: URL, what: str, kind: str, *, retryable: bool = False) -> ProviderError:
        what = what.replace(str(url), str(url.with_query(None)))
        return ProviderError(f"{host_of(url)}: {self._redaction.message(what)}", type=kind, retryable=retryable)


def host_of(url: URL) -> str:
    """Host and port, without a login."""
    return url.authority.rpartition("@")[2]


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
