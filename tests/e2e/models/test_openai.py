"""The OpenAI client against servers that misbehave."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import KEY, REQUEST, Handler, answering, client, endpoint
from trunchray.adapters.models.base import ModelReply
from trunchray.adapters.models.http import MAX_BODY
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.openai import OpenAIClient
from trunchray.core.agent import ModelAgent, Pacing
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError, UsageError

OK: dict[str, Any] = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}


class Listening:
    """Notes what it is asked; refuses the keys in `refused` with their status."""

    def __init__(self, refused: Mapping[str, int] | None = None) -> None:
        self._refused = refused or {}
        self.paths: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[Any] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.paths.append(request.path_qs)
        self.headers.append(request.headers)
        self.bodies.append(await request.json())
        status = self._refused.get(request.headers.get("Authorization", ""), 200)
        return web.json_response(OK if status == 200 else {"error": {"message": "no"}}, status=status)

    def keys(self) -> Counter[str]:
        """How often each was sent."""
        return Counter(headers["Authorization"] for headers in self.headers)


@asynccontextmanager
async def client_of(
    handler: Handler, *, api_key: str | None = KEY, path: str = "/v1", seconds: float = 30, wall_clock: float = 0
) -> AsyncGenerator[OpenAIClient]:
    async with endpoint(handler) as url:
        spec = ModelAgent(
            name="m",
            model="local/org/model",
            base_url=url + path,
            params={"temperature": 0},
            pacing=Pacing(timeout=seconds),
        )
        keys = [Key("LOCAL_KEY", api_key)] if api_key else []
        client = OpenAIClient(spec, keys=keys, wall_clock=lambda: wall_clock)
        try:
            yield client
        finally:
            await client.close()


async def reply_to(handler: Handler, **options: Any) -> ModelReply:
    async with client_of(handler, **options) as client:
        return await client.complete(REQUEST)


async def error_of(handler: Handler, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await reply_to(handler, **options)
    return caught.value


async def test_request_on_the_wire() -> None:
    """Path, key, content type and body are what the endpoint expects."""
    seen: list[web.Request] = []
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        bodies.append(await request.json())
        return web.json_response(OK)

    async with client_of(handler, path="/v1?api-version=1") as client:
        await client.complete(REQUEST)
        await client.complete(REQUEST)
    assert seen[0].path_qs == "/v1/chat/completions?api-version=1"
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert seen[0].headers["Content-Type"] == "application/json"
    assert bodies[0] == {
        "model": "org/model",
        "temperature": 0,
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 64,
    }
    assert seen[0].transport is seen[1].transport


@pytest.mark.parametrize(
    ("path", "limit"),
    [("/openai/deployments/d?api-version=2024-10-21", "max_tokens"), ("/openai/v1", "max_completion_tokens")],
)
async def test_azure_on_the_wire(path: str, limit: str) -> None:
    """Azure takes the key in a header of its own, the version in the query, and the undated limit by its new name."""
    asked = Listening()
    async with endpoint(asked.answer) as url, client("openai", model="azure/d", base_url=url + path) as asking:
        await asking.complete(REQUEST)
    place, _, query = path.partition("?")
    assert asked.paths == [f"{place}/chat/completions" + (f"?{query}" if query else "")]
    assert (asked.headers[0]["api-key"], asked.headers[0].get("Authorization")) == (KEY, None)
    assert asked.bodies[0][limit] == 64


async def test_further_fields_and_headers_on_the_wire() -> None:
    """Parameters go out as they are, those in extra_body beside them; headers, too."""
    asked = Listening()
    params = {"seed": 7, "reasoning_effort": "low", "response_format": {"type": "json_object"}}
    headers = {"HTTP-Referer": "https://example.org"}
    async with (
        endpoint(asked.answer) as url,
        client("openai", base_url=url, params={**params, "extra_body": {"top_k": 5}}, headers=headers) as asking,
    ):
        await asking.complete(REQUEST)
    assert asked.headers[0]["HTTP-Referer"] == "https://example.org"
    assert asked.bodies[0] == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 64,
        **params,
        "top_k": 5,
    }


async def test_keys_take_turns() -> None:
    """Requests are spread evenly over the keys."""
    asked = Listening()
    keys = [Key("A", "key-a"), Key("B", "key-b")]
    async with endpoint(asked.answer) as url, client("openai", base_url=url, keys=keys) as asking:
        await asyncio.gather(*(asking.complete(REQUEST) for _ in range(10)))
    assert asked.keys() == {"Bearer key-a": 5, "Bearer key-b": 5}


@pytest.mark.parametrize("status", [401, 402])
async def test_refused_keys_are_left_out(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """A key that is refused is named in a warning and not used again, and no request fails while another one works."""
    asked = Listening({"Bearer key-bad": status, "Bearer key-worse": status})
    keys = [Key("BAD", "key-bad"), Key("GOOD", "key-good"), Key("WORSE", "key-worse")]
    async with endpoint(asked.answer) as url, client("openai", base_url=url, keys=keys) as asking:
        replies = [await asking.complete(REQUEST) for _ in range(6)]
    assert [reply.text for reply in replies] == ["hello"] * 6
    assert asked.keys() == {"Bearer key-good": 6, "Bearer key-bad": 1, "Bearer key-worse": 1}
    warned = sorted(record.getMessage().partition(" is left")[0] for record in caplog.records)
    assert warned == ["the key in BAD", "the key in WORSE"]


async def test_a_key_that_is_refused_in_a_reply_is_left_out() -> None:
    """A gateway that answers 200 and says in the body that the key is no good has refused it, too."""
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        bad = seen[-1] == "Bearer key-bad"
        return web.json_response({"error": {"code": 401, "message": "no"}} if bad else OK)

    keys = [Key("BAD", "key-bad"), Key("GOOD", "key-good")]
    async with endpoint(handler) as url, client("openai", base_url=url, keys=keys) as asking:
        replies = [await asking.complete(REQUEST) for _ in range(4)]
    assert [reply.text for reply in replies] == ["hello"] * 4
    assert seen.count("Bearer key-bad") == 1


async def test_when_every_key_is_refused_the_call_fails() -> None:
    """The error names the variable of the last one; the keys themselves are not shown."""
    keys = [Key("A", "key-a-0123456789"), Key("B", "key-b-0123456789")]
    handler = answering({"error": {"message": "bad key-a-0123456789 key-b-0123456789"}}, 401)
    async with endpoint(handler) as url, client("openai", base_url=url, keys=keys) as asking:
        with pytest.raises(ProviderError, match=r"bad \[key\] \[key\] \(the key came from [AB]\)") as caught:
            await asking.complete(REQUEST)
    assert caught.value.type == "authentication"


async def test_without_a_key_none_is_sent() -> None:
    """Local servers get no Authorization header."""
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.json_response(OK)

    await reply_to(handler, api_key=None)
    assert seen == [None]


async def test_missing_usage_is_unknown() -> None:
    """A provider that is silent about tokens, model and id leaves None."""
    assert await reply_to(answering(OK)) == ModelReply("hello", usage=Usage())


async def test_request_id_comes_from_the_headers() -> None:
    """The header's id is the one that a provider's support asks for."""
    assert (await reply_to(answering({**OK, "id": "body"}, x_request_id="req_7"))).request_id == "req_7"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not JSON: ''"),
        (b"<html>oops</html>", "is not JSON: '<html>oops</html>'"),
        (b'{"choices": [{"mess', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b"{}", "has no choices"),
        (b'{"choices": []}', "has no choices"),
        (b'{"choices": [{"delta": {}}]}', "has no message"),
        (b'{"choices": [{"message": {"tool_calls": [1]}}]}', "tool call 1 has no function"),
    ],
)
async def test_odd_bodies_are_malformed(body: bytes, message: str) -> None:
    """A good status with no completion in it is a retryable error that shows what came."""
    error = await error_of(answering(body))
    assert (error.type, error.retryable) == ("malformed_response", True)
    assert message in str(error)


async def test_broken_unicode_is_repaired() -> None:
    """Invalid UTF-8 and halves of surrogate pairs become U+FFFD, in text and arguments."""
    call = b'{"id": "c", "function": {"name": "f", "arguments": "{\\"a\\": \\"\\udc00\\"}"}}'
    body = b'{"choices": [{"message": {"content": "a\\ud83d \xff", "tool_calls": [' + call + b"]}}]}"
    reply = await reply_to(answering(body))
    assert (reply.text, reply.tool_calls[0].arguments) == ("a\ufffd \ufffd", '{"a": "\ufffd"}')


async def test_errors_in_a_good_status() -> None:
    """A gateway's error in a reply with status 200 is an error."""
    error = await error_of(answering({"error": {"code": 429, "message": "upstream is busy"}}))
    assert (error.type, error.retryable) == ("rate_limited", True)
    assert "upstream is busy" in str(error)


async def test_content_filter_is_an_answer() -> None:
    """A prompt that the provider's filter stopped is model behaviour: an empty answer that goes to grading."""
    reply = await reply_to(answering({"error": {"code": "content_filter", "message": "no"}}, 400))
    assert reply == ModelReply("", finish_reason="content-filter")


async def test_bad_requests_show_the_providers_message() -> None:
    """Host, status and message, cut; not retryable."""
    error = await error_of(answering({"error": {"message": "no such field " + "x" * 5000}}, 400))
    assert (error.type, error.retryable) == ("bad_request", False)
    assert str(error).startswith("127.0.0.1:")
    assert "answered 400: no such field xxx" in str(error)
    assert len(str(error)) < 400


async def test_refused_keys_name_their_variable() -> None:
    """An authentication error says where the key came from, not what it is."""
    error = await error_of(answering({"error": {"message": "invalid key"}}, 401))
    assert (error.type, error.retryable) == ("authentication", False)
    assert str(error).endswith("answered 401: invalid key (the key came from LOCAL_KEY)")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "3"}, 3),
        ({"RETRY_AFTER": "0.5"}, 0.5),
        ({"Retry_After": "9", "Retry_After_Ms": "250"}, 0.25),
        ({"Retry_After": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50),
        ({"Retry_After": "later"}, None),
        ({}, None),
    ],
)
async def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Each form of the header arrives with the error."""
    error = await error_of(answering({}, 429, **headers), wall_clock=10)
    assert (error.type, error.retry_after) == ("rate_limited", seconds)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 429, 500])
@pytest.mark.parametrize("form", ["plain", "escaped", "long"])
async def test_an_echoed_key_is_never_recorded(status: int, form: str) -> None:
    """A server that sends the key back, in any field or header, does not get it into a message or a reply."""
    key = KEY.replace("-", "\\u002d") if form == "escaped" else KEY
    text = "x" * 290 + key if form == "long" else f"your key is {key}"
    call = f'{{"id": "{key}", "function": {{"name": "{key}", "arguments": "{key}"}}}}'
    message = f'{{"content": "{text}", "tool_calls": [{call}]}}'
    body = f'{{"id": "{key}", "model": "{key}", "choices": [{{"message": {message}}}]}}'
    if status != 200:
        body = f'{{"error": {{"message": "{text}", "code": "{key}"}}}}'
    handler = answering(body.encode(), status, x_request_id=KEY, Location="http://127.0.0.1:1/" + KEY)
    if status == 200:
        recorded = repr(await reply_to(handler))
    else:
        error = await error_of(handler)
        recorded = f"{error!r} {error}"
    assert "[key]" in recorded
    assert KEY[:8] not in recorded


async def test_an_echoed_key_in_a_broken_body_is_never_recorded() -> None:
    """Neither is it in what is shown of a body that is not JSON."""
    for body in (f"<p>{KEY}</p>".encode(), b"x" * 190 + KEY.encode()):
        assert KEY[:8] not in str(await error_of(answering(body)))


async def test_short_keys_leave_answers_alone() -> None:
    """A local server's key like "none" is not cut out of what a model says."""
    body = {"choices": [{"message": {"content": "there are none"}}]}
    assert (await reply_to(answering(body), api_key="none")).text == "there are none"


async def test_redirects_are_not_followed() -> None:
    """The key is not carried to another address."""
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.path)
        raise web.HTTPTemporaryRedirect("/elsewhere")

    error = await error_of(handler)
    assert (error.type, error.retryable, seen) == ("redirected", False, ["/v1/chat/completions"])


async def test_silence_is_a_timeout() -> None:
    """A server that never answers costs one request timeout."""

    async def handler(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    error = await error_of(handler, seconds=0.1)
    assert (error.type, error.retryable) == ("timeout", True)
    assert "no answer in 0.1 s" in str(error)


async def test_a_reply_that_never_ends_is_a_timeout() -> None:
    """The timeout covers the body, too."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"choices"')
        await asyncio.Event().wait()
        return response

    assert (await error_of(handler, seconds=0.2)).type == "timeout"


async def test_a_cut_stream_is_a_connection_error() -> None:
    """A body that ends before its announced length is worth a retry."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": []}')
        assert request.transport is not None
        request.transport.close()
        return response

    error = await error_of(handler)
    assert (error.type, error.retryable) == ("connection", True)


async def test_a_dropped_connection_is_a_connection_error() -> None:
    """So is a server that hangs up without a word."""

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    error = await error_of(handler)
    assert (error.type, error.retryable) == ("connection", True)


@pytest.mark.parametrize(
    "content", [b"not http at all\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
)
async def test_what_is_not_http_is_a_connection_error(content: bytes) -> None:
    """Garbage on the socket is a retryable error, not a crash."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(content)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = OpenAIClient(ModelAgent(name="m", model="a/b", base_url=f"http://127.0.0.1:{port}"))
    try:
        with pytest.raises(ProviderError) as caught:
            await client.complete(REQUEST)
    finally:
        await client.close()
        server.close()
        await server.wait_closed()
    assert (caught.value.type, caught.value.retryable) == ("connection", True)


async def test_connection_refused() -> None:
    """Nobody listening is retryable: a server may be starting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = OpenAIClient(ModelAgent(name="m", model="a/b", base_url=f"http://127.0.0.1:{port}/v1"))
        with pytest.raises(ProviderError, match=f"127.0.0.1:{port}") as caught:
            await client.complete(REQUEST)
        await client.close()
    assert (caught.value.type, caught.value.retryable) == ("connection", True)


@pytest.mark.parametrize("status", [200, 500])
async def test_huge_bodies_are_not_read(status: int) -> None:
    """Reading stops at the bound, whatever the server says about the length."""
    chunk = b" " * 2**20
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        while sent < 8 * MAX_BODY:
            await response.write(chunk)
            sent += len(chunk)
        return response

    error = await error_of(handler)
    assert (error.type, error.retryable) == ("response_too_large", False)
    assert sent < 2 * MAX_BODY


def test_a_base_url_is_needed() -> None:
    """There is no default endpoint in the client itself."""
    with pytest.raises(UsageError, match="needs a base_url"):
        OpenAIClient(ModelAgent(name="m", model="openai/gpt"))


def test_connecting_does_not_load_http() -> None:
    """Reading configurations and planning stay light: aiohttp loads when the first real client is built."""
    script = "import sys, trunchray.adapters.models.connect; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_building_a_client_does_not_load_litellm() -> None:
    """A driver that checks its models has no use for it; workers load it before their first trial."""
    script = (
        "import sys; from trunchray.adapters.models.connect import build_client; "
        "from trunchray.core.agent import ModelAgent; "
        "build_client(ModelAgent(name='m', model='anthropic/claude'), environ={'ANTHROPIC_API_KEY': 'sk'}); "
        "print('litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
