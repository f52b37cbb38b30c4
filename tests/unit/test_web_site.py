"""Who the viewer's server answers, and what it says about itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
from pydantic import JsonValue

from trunchray.adapters.web_listener import listening
from trunchray.adapters.web_site import HEADERS, serve
from trunchray.adapters.web_site import site as site_of
from trunchray.errors import StoreError, UsageError


def _answer(query: Mapping[str, str]) -> JsonValue:
    match query.get("fail"):
        case "usage":
            raise UsageError("page: must be a number")
        case "store":
            raise StoreError("the disk is gone")
        case _:
            return {"given": dict(query)}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a site with one page, a script and one question."""
    (tmp_path / "index.html").write_text("<h1>Ä</h1>", encoding="utf-8")
    (tmp_path / "list.js").write_text("export {}", encoding="utf-8")
    (tmp_path / "secret.pem").write_text("key", encoding="utf-8")
    async with (
        serve(tmp_path, {"ask": _answer}, host="127.0.0.1", port=0) as address,
        aiohttp.ClientSession(address) as client,
    ):
        yield client


async def test_pages_and_answers_have_their_types_and_every_header(site: aiohttp.ClientSession):
    """Nothing is guessed, framed, stored or told to other sites; also not with what is missing."""
    for path, status, kind in (
        ("/", 200, "text/html"),
        ("/list.js", 200, "text/javascript"),
        ("/api/ask?a=ä", 200, "application/json"),
        ("/api/nothing", 404, "application/json"),
        ("/secret.pem", 404, "application/json"),
        ("/../index.html", 404, "application/json"),
    ):
        async with site.get(path) as response:
            assert (response.status, response.content_type) == (status, kind), path
            assert HEADERS.items() <= dict(response.headers).items(), path
    assert HEADERS["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")


async def test_answers_and_refusals_are_json(site: aiohttp.ClientSession):
    """The query as it was meant; what is wrong with it; what is wrong here."""
    for query, status, body in (
        ({"text": "a&b=c"}, 200, {"given": {"text": "a&b=c"}}),
        ({"fail": "usage"}, 400, {"error": "page: must be a number"}),
        ({"fail": "store"}, 503, {"error": "the disk is gone"}),
    ):
        async with site.get("/api/ask", params=query) as response:
            assert (response.status, await response.json()) == (status, body)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost:9000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8420", 200),
        ("192.168.0.7:8420", 200),
        ("evil.example", 403),
        ("evil.example:8420", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
async def test_only_names_that_cannot_be_a_strangers_are_answered(site: aiohttp.ClientSession, name: str, status: int):
    """A page whose name was made to lead here cannot read anything, neither pages nor answers."""
    for path in ("/", "/api/ask"):
        async with site.get(path, headers={"Host": name}) as response:
            assert response.status == status


async def test_nothing_but_reading(site: aiohttp.ClientSession):
    """GET and HEAD; whatever would change something is refused."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        async with site.request(method, "/api/ask") as response:
            assert response.status == 405, method
    async with site.head("/") as response:
        assert (response.status, await response.read()) == (200, b"")


async def test_pages_of_other_sites_may_not_ask(site: aiohttp.ClientSession):
    """Not even for an answer that they could not read: it may cost much."""
    for origin, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        async with site.get("/api/ask", headers={"Sec-Fetch-Site": origin}) as response:
            assert response.status == status


async def test_a_name_that_was_given_is_ours(tmp_path: Path):
    """As people call the machine who start it with --host."""
    for given, status in (("Eval-Box", 200), ("127.0.0.1", 403)):
        async with (
            listening(site_of(tmp_path, {"ask": _answer}, given), "127.0.0.1", 0) as address,
            aiohttp.ClientSession(address) as client,
            client.get("/api/ask", headers={"Host": "eval-box:8420"}) as response,
        ):
            assert response.status == status


async def test_a_port_that_is_taken_is_said(site: aiohttp.ClientSession, tmp_path: Path):
    """With the way out."""
    base = site._base_url
    assert base
    with pytest.raises(UsageError, match="choose another port, or 0"):
        async with serve(tmp_path, {}, host="127.0.0.1", port=base.port or 0):
            pass
