"""A proxy in front of an S3 server that makes it misbehave on request, and counts what is asked of it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

import aiohttp
import botocore.auth
import botocore.awsrequest
import botocore.credentials
from aiohttp import web
from yarl import URL

Kind = Literal[
    "slow down",
    "internal error",
    "slow",
    "conflict",
    "denied",
    "expired token",
    "expired session",
    "wrong clock",
    "not implemented",
    "web page",
    "cut",
    "cut after",
    "error after",
    "hang after",
    "torn download",
    "short download",
    "torn upload",
    "stale list",
    "ignored condition",
]
"""What happens to a request. "after": the store does as asked, and only then the answer is lost."""

PASSING: list[Kind] = ["slow down", "internal error", "cut", "cut after", "error after", "torn download"]
"""What happens on a bad day."""
SLOW = 3.0
"""Seconds that a slow answer takes longer."""

_REFUSALS = {
    "slow down": (503, "SlowDown", "Please reduce your request rate."),
    "internal error": (500, "InternalError", "We encountered an internal error. Please try again."),
    "conflict": (409, "ConditionalRequestConflict", "A conflicting operation is in progress."),
    "denied": (403, "AccessDenied", "Access Denied."),
    "expired token": (400, "ExpiredToken", "The provided token has expired."),
    "expired session": (403, "ExpiredToken", "The security token included in the request is expired."),
    "wrong clock": (403, "RequestTimeTooSkewed", "The difference between the request time and ours is too large."),
    "not implemented": (501, "NotImplemented", "A header you provided implies functionality that is not implemented."),
}
_HOP_BY_HOP = {"connection", "transfer-encoding", "expect", "content-length"}
_EMPTY_LIST = (
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>"
)


@dataclass(frozen=True)
class Asked:
    """One request: GET, PUT, HEAD, LIST and so on; the key, or the prefix of a listing; what was done to it."""

    what: str
    key: str
    fault: Kind | None = None


@dataclass
class Fault:
    """Spoils the next `times` requests that `what` is asked of and whose key contains `key`, after `spare` good ones.

    `before` is called in the proxy's thread when it strikes, before anything else happens.
    """

    kind: Kind
    what: str = ""
    key: str = ""
    times: int = 1
    spare: int = 0
    before: Callable[[], None] | None = None
    struck: int = 0

    def strikes(self, asked: Asked) -> bool:
        if self.struck >= self.times or self.what not in ("", asked.what) or self.key not in asked.key:
            return False
        if self.spare:
            self.spare -= 1
            return False
        self.struck += 1
        return True


@dataclass
class FaultyStore:
    """The proxy, in a thread of this process."""

    key: str
    secret: str
    upstream: str = ""
    faults: list[Fault] = field(default_factory=list[Fault])
    log: list[Asked] = field(default_factory=list[Asked])
    spoil: Callable[[], Fault | None] = field(default=lambda: None)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-store", daemon=True)
        self._thread.start()
        self.url = self._call(self._start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def faulty(self, *faults: Fault) -> Generator[None]:
        """Spoil requests as long as the block runs; each fault must have struck at least once."""
        self.faults = list(faults)
        try:
            yield
        finally:
            self.faults = []
        assert all(fault.struck for fault in faults), f"never happened: {[f for f in faults if not f.struck]}"

    @contextmanager
    def shaky(self, seed: int, share: float = 0.1) -> Generator[None]:
        """Spoil a share of all requests, each in one of the ways that a patient client gets over."""
        chance = random.Random(seed)
        self.spoil = lambda: Fault(chance.choice(PASSING)) if chance.random() < share else None
        try:
            yield
        finally:
            self.spoil = lambda: None

    @contextmanager
    def counting(self) -> Generator[list[Asked]]:
        """The requests that arrive while the block runs."""
        self.log = log = []
        yield log

    async def _start(self) -> str:
        self._ended = asyncio.Event()
        self._upstream = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        self._ended.set()
        await self._runner.cleanup()
        await self._upstream.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _call(self, action: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = _asked(request)
        fault = next((fault for fault in self.faults if fault.strikes(asked)), None) or self.spoil()
        kind = fault.kind if fault else None
        self.log.append(Asked(asked.what, asked.key, kind))
        body = await request.read()
        if fault and fault.before:
            await asyncio.to_thread(fault.before)
        if kind == "slow":
            await asyncio.sleep(SLOW)
        if kind in _REFUSALS:
            return _refusal(*_REFUSALS[kind])
        match kind:
            case "web page":
                return web.Response(
                    status=404, text="<html><body>\nNot found\n</body></html>", content_type="text/html"
                )
            case "stale list":
                return web.Response(text=_EMPTY_LIST, content_type="application/xml")
            case "cut":
                return _cut(request)
            case "torn upload":
                await self._half(request, body)
                return _cut(request)
            case _:
                return await self._forward(request, body, kind)

    async def _forward(self, request: web.Request, body: bytes, kind: Kind | None) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = f"{self.upstream}{request.raw_path}"
        if kind == "ignored condition":
            headers = self._unconditional(request, headers, body)
        data = body if body or request.method in {"PUT", "POST"} else None
        async with self._upstream.request(request.method, URL(url, encoded=True), headers=headers, data=data) as reply:
            content = await reply.read()
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in _HOP_BY_HOP}
            length = reply.headers.get("Content-Length", "0")
        match kind:
            case "cut after":
                return _cut(request)
            case "error after":
                return _refusal(*_REFUSALS["internal error"])
            case "hang after":
                await self._ended.wait()
            case "torn download":
                torn = web.StreamResponse(status=reply.status, headers=kept | {"Content-Length": length})
                await torn.prepare(request)
                await torn.write(content[: len(content) // 2])
                return _cut(request)
            case "short download":
                content = content[: len(content) // 2]
                kept = {name: value for name, value in kept.items() if "checksum" not in name.lower()}
            case _:
                pass
        if request.method == "HEAD":
            return web.Response(status=reply.status, headers=kept | {"Content-Length": length})
        return web.Response(status=reply.status, headers=kept, body=content)

    def _unconditional(self, request: web.Request, headers: dict[str, str], body: bytes) -> dict[str, str]:
        """The same request without its condition, signed anew."""
        kept = {
            name: value
            for name, value in headers.items()
            if name.lower() not in {"if-none-match", "authorization", "x-amz-date", "user-agent"}
        }
        signed = botocore.awsrequest.AWSRequest(
            request.method, f"http://{request.host}{request.raw_path}", headers=kept, data=body
        )
        credentials = botocore.credentials.Credentials(self.key, self.secret)
        botocore.auth.S3SigV4Auth(credentials, "s3", "us-east-1").add_auth(signed)
        return dict(signed.headers.items())

    async def _half(self, request: web.Request, body: bytes) -> None:
        """Send the server half of what it was promised, then hang up."""
        place = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        lines = [f"{request.method} {request.raw_path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "expect"]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body[: len(body) // 2])
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await reader.read()


def _asked(request: web.Request) -> Asked:
    place = urlsplit(request.raw_path)
    _, _, key = unquote(place.path).removeprefix("/").partition("/")
    query = parse_qs(place.query)
    if request.method == "GET" and "list-type" in query:
        return Asked("LIST", query.get("prefix", [""])[0])
    return Asked(request.method, key)


def _refusal(status: int, code: str, message: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return web.Response(status=status, text=text, content_type="application/xml")


def _cut(request: web.Request) -> web.Response:
    if request.transport:
        request.transport.abort()
    return web.Response()
