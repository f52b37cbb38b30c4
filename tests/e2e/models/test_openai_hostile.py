"""The OpenAI client against servers and proxies that say what they should not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelRequest
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.openai import OpenAIClient
from trunchray.core.agent import ModelAgent
from trunchray.errors import ProviderError

KEY = "sk-very-secret-0123456789"
REQUEST = ModelRequest(({"role": "user", "content": "hi"},), 64, "case-1")

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def response(body: Any, status: str = "200 OK") -> bytes:
    content = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def completion(text: str | None, reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text, **message}, "finish_reason": reason}]}


async def request_of(reader: asyncio.StreamReader) -> bytes | None:
    """One request's head; None when the client has hung up."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        await reader.readexactly(int(length.partition(b":")[2]))
    except asyncio.IncompleteReadError:
        return None
    return head


def always(content: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request_of(reader) is not None:
            writer.write(content)
            await writer.drain()

    return talk


@asynccontextmanager
async def listening(talk: Talk) -> AsyncGenerator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def client_at(base_url: str) -> AsyncGenerator[OpenAIClient]:
    client = OpenAIClient(ModelAgent(name="m", model="a/b", base_url=base_url), keys=[Key("KEY", KEY)])
    try:
        yield client
    finally:
        await client.close()


async def error_of(base_url: str) -> ProviderError:
    async with client_at(base_url) as client:
        with pytest.raises(ProviderError) as caught:
            await client.complete(REQUEST)
    return caught.value


@pytest.mark.parametrize(
    ("body", "type"),
    [
        (completion("", "error"), "server_error"),
        (completion("part", "abort"), "server_error"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502}}]}, "server_error"),
        ({**completion("par", None), "error": {"code": 502, "message": "upstream died"}}, "server_error"),
        ({**completion("par", None), "error": {"code": 429, "message": "slow down"}}, "rate_limited"),
        (completion(None, None), "malformed_response"),
    ],
)
async def test_failures_in_a_good_status_are_errors(body: Any, type: str) -> None:
    """What broke behind a gateway is worth a retry, and is never graded as an answer."""
    async with listening(always(response(body))) as port:
        error = await error_of(f"http://127.0.0.1:{port}")
    assert (error.type, error.retryable) == (type, True)


async def test_failures_in_a_good_status_do_not_show_the_key() -> None:
    """Neither does the message of an error beside an answer."""
    async with listening(always(response({**completion("x"), "error": {"message": f"bad {KEY}"}}))) as port:
        assert str(await error_of(f"http://127.0.0.1:{port}")).endswith("bad [key]")


async def test_an_escaped_key_in_arguments_is_never_recorded() -> None:
    """A key behind JSON's escapes is found before the arguments are read."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY)
    call = {"id": "c", "function": {"name": "f", "arguments": f'{{"a": ["{escaped}"], "{escaped}": 1}}'}}
    async with (
        listening(always(response(completion(None, "tool_calls", tool_calls=[call])))) as port,
        client_at(f"http://127.0.0.1:{port}") as client,
    ):
        reply = await client.complete(REQUEST)
    assert json_text.parse_arguments(reply.tool_calls[0].arguments) == {"a": ["[key]"], "[key]": 1}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", b"garbage\r\n\r\n", b""])
async def test_the_login_of_a_proxy_is_never_recorded(
    monkeypatch: pytest.MonkeyPatch, scheme: str, answer: bytes
) -> None:
    """A proxy that refuses, breaks or hangs up is named without its user and password."""
    seen: list[bytes | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_of(reader))
        writer.write(answer)
        await writer.drain()

    async with listening(talk) as port:
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv(f"{scheme}_proxy", f"http://ann:hun%40ter2@127.0.0.1:{port}")
        error = await error_of(f"{scheme}://api.example/v1")
    assert b"proxy-authorization: Basic" in (seen[0] or b"").replace(b"Proxy-A", b"proxy-a")
    assert "ter2" not in f"{error} {error!r}"
    assert "ann" not in str(error)


async def test_a_proxy_that_nobody_serves_is_shown_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that cannot be reached."""
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "http://ann:hunter2@127.0.0.1:1")
    error = await error_of("http://api.example/v1")
    assert (error.type, error.retryable) == ("connection", True)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("answer", [b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nX Bad\r\n\r\n"])
async def test_queries_are_not_shown(answer: bytes) -> None:
    """What went wrong on the connection is told without the query of the address."""
    async with listening(always(answer)) as port:
        error = await error_of(f"http://127.0.0.1:{port}/v1?deployment=private")
    assert "private" not in str(error)


async def test_what_nobody_asked_for_is_not_an_answer() -> None:
    """A response that a server sends unasked on a kept connection is not taken for the answer to the next request."""
    connections = 0
    answered, sent = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        while await request_of(reader) is not None:
            writer.write(response(completion(f"answer {number}")))
            await writer.drain()
            await answered.wait()
            writer.write(response(completion("unasked")))
            await writer.drain()
            sent.set()

    async with listening(talk) as port, client_at(f"http://127.0.0.1:{port}") as client:
        first = await client.complete(REQUEST)
        answered.set()
        await sent.wait()
        for _ in range(20):  # turns of the event loop, in which the client reads what has come
            await asyncio.sleep(0)
        second = await client.complete(REQUEST)
    assert (first.text, second.text) == ("answer 1", "answer 2")
