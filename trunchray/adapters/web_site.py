"""A web site for the people of one machine: pages that never change, and questions that are answered in JSON.

Pages show what strangers wrote, models and authors above all, and other sites run in the same browser. So:

- Nothing can be changed: only GET and HEAD are answered.
- The name in the Host header is an IP address, localhost or the one that the site was given. A stranger's page whose
  name was made to lead here (DNS rebinding) has a name of its own.
- Pages run scripts and styles of this site alone, are shown in no frame, and send nobody where they were.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web
from pydantic import JsonValue
from pydantic_core import to_json

from trunchray.adapters.web_listener import listening
from trunchray.errors import StoreError, TrunchrayError

Question = Callable[[Mapping[str, str]], JsonValue]
"""Answers the query of a URL; runs in a thread of its own. Raises a TrunchrayError when it cannot."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Sent with every answer."""

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


@asynccontextmanager
async def serve(pages: Path, questions: Mapping[str, Question], *, host: str, port: int) -> AsyncGenerator[str]:
    """Serve until the block ends; gives the address. Port 0 takes any free one.

    `pages` is a folder of files: `x.html` is served as `/x`, `index.html` as `/`, others under their names. Questions
    are asked under `/api/<name>`.

    Raises:
        UsageError: the address cannot be bound.
    """
    async with listening(site(pages, questions, host), host, port) as address:
        yield address


def site(pages: Path, questions: Mapping[str, Question], host: str) -> web.Application:
    """The site as an application; `host` is the name or address by which it may be called besides the usual ones."""

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        return await _guarded(request, handler, host)

    app = web.Application(middlewares=[guard])
    app.on_response_prepare.append(_add_headers)
    app.add_routes([_page(file) for file in sorted(pages.iterdir()) if file.suffix in _TYPES])
    app.add_routes([_api(name, question) for name, question in questions.items()])
    return app


async def _guarded(request: web.Request, handler: _Handler, host: str) -> web.StreamResponse:
    """Refuse who has no business here; say what went wrong as the pages expect it."""
    if not _is_ours(request.host, host):
        return _problem(
            403, f"this server is not called {request.host!r}; call it by its address, or start it with --host"
        )
    if request.path.startswith("/api/") and request.headers.get("Sec-Fetch-Site", "none") not in {
        "none",
        "same-origin",
    }:
        return _problem(403, "only the pages of this server may ask")
    try:
        return await handler(request)
    except web.HTTPException as e:
        return _problem(e.status, e.reason)
    except TrunchrayError as e:
        return _problem(503 if isinstance(e, StoreError) else 400, str(e))


def _is_ours(name: str, host: str) -> bool:
    """Whether a Host header, with or without a port, names this site."""
    bare = re.sub(r":\d*$", "", name).strip("[]").lower()
    return bare in {"localhost", host.lower()} or _is_address(bare)


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _page(file: Path) -> web.RouteDef:
    content = file.read_bytes()
    name = file.name.removesuffix(".html")

    async def page(_request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=_TYPES[file.suffix], charset="utf-8")

    return web.get("/" if name == "index" else f"/{name}", page)


def _api(name: str, question: Question) -> web.RouteDef:
    async def answer(request: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(question, dict(request.query)))

    return web.get(f"/api/{name}", answer)


def _problem(status: int, message: str) -> web.Response:
    return _json({"error": message}, status)


def _json(value: JsonValue, status: int = 200) -> web.Response:
    return web.Response(body=to_json(value), status=status, content_type="application/json")
