"""Fixtures that are fetched from GitHub, over real HTTP from a server that stands for it."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial

import pytest
from aiohttp import web

from support.endpoint import Handler, answering, endpoint
from trunchray.adapters.github_file import LARGEST, fetch
from trunchray.core.pinned_file import PinnedFile, read_address
from trunchray.errors import UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILE = PinnedFile("o", "r", COMMIT, "a b/memo.md")


async def fetched(handler: Handler, file: PinnedFile = FILE) -> bytes:
    async with endpoint(handler) as url:
        return await asyncio.to_thread(partial(fetch, file, raw=url))


async def refused(handler: Handler, file: PinnedFile = FILE) -> str:
    with pytest.raises(UsageError) as error:
        await fetched(handler, file)
    assert error.value.exit_code == 2
    return str(error.value)


async def test_a_file_comes_from_its_commit():
    """Byte for byte, and from nowhere else."""
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.raw_path)
        return web.Response(body=b"memo\r\n\xff")

    assert await fetched(handler) == b"memo\r\n\xff"
    assert asked == [f"/o/r/{COMMIT}/a%20b/memo.md"]


async def test_a_branch_is_not_found():
    """A name is asked for as a tag, so that the file of a branch of that name is never taken."""

    async def github(request: web.Request) -> web.Response:
        return web.Response(text="moves") if "/refs/tags/" not in request.path else web.Response(status=404)

    branch = read_address("https://github.com/o/r/blob/release/a.md")
    said = await refused(github, branch)
    assert said == "GitHub answers 404 (Not Found); is there such a file at 'release'?"


async def test_no_redirect_is_followed():
    """A file that is pinned is where it is."""
    assert "GitHub answers 302" in await refused(answering(b"", 302, Location="http://127.0.0.1:1/other"))


async def test_a_file_that_is_too_large_is_refused():
    """It is not read to its end."""

    async def endless(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for _ in range(LARGEST // 1_000_000 + 5):
            await reply.write(bytes(1_000_000))
        return reply

    assert await refused(endless) == "is larger than 50 MB, which is too much for each attempt; shorten it"


async def test_a_file_whose_connection_broke_is_fetched_again():
    """Its beginning is never taken for all of it."""
    answers = [b"the beg", b"the beginning"]

    async def handler(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "13"})
        await reply.prepare(request)
        await reply.write(answers.pop(0))
        if answers and request.transport:
            request.transport.close()
        return reply

    assert await fetched(handler) == b"the beginning"


async def test_a_file_that_comes_drop_by_drop_is_not_waited_for():
    """However often a byte arrives: there is one limit for all tries together."""
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        reply = web.StreamResponse()
        await reply.prepare(request)
        await reply.write(b"drop")
        return reply

    hours = itertools.count(0, 3600)
    async with endpoint(handler) as url:
        with pytest.raises(UsageError, match="has not come from GitHub within 600 seconds; try again"):
            await asyncio.to_thread(partial(fetch, FILE, raw=url, clock=lambda: next(hours)))
    assert len(asked) == 1


async def test_a_failure_that_may_pass_is_tried_again():
    """Once it has passed the file is there."""
    answers = [503, 429, 200]

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(status=answers.pop(0), body=b"there")

    assert await fetched(handler) == b"there"


async def test_nobody_answers():
    """The reason is told, and no traceback."""
    with pytest.raises(UsageError, match="cannot be fetched from GitHub"):
        await asyncio.to_thread(partial(fetch, FILE, raw="http://127.0.0.1:1"))
