"""What comes of a provider that cannot be reached, refuses, breaks or talks nonsense: the same from both clients."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
from collections import Counter
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import REQUEST, Handler, Kind, answering, client, completion, endpoint
from trunchray.adapters.models.base import ModelReply, RequestedCall
from trunchray.adapters.models.retry import complete_with_retries
from trunchray.core.agent import Pacing
from trunchray.errors import ProviderError

pytestmark = pytest.mark.usefixtures("litellm")

BIG = json.dumps({"text": "x" * 500_000})


@pytest.fixture(params=["openai", "litellm"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def calls(*made: tuple[str, str]) -> dict[str, Any]:
    listed = [{"id": name, "type": "function", "function": {"name": "f", "arguments": text}} for name, text in made]
    return completion(None, "tool_calls", tool_calls=listed)


async def cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"choices": [{"message": ')
    assert request.transport is not None
    request.transport.close()
    return response


async def silent(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def elsewhere(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPTemporaryRedirect("/elsewhere")


def error(message: str, code: str | int | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


TOO_LONG = "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens."


@pytest.mark.parametrize(
    ("handler", "type", "retryable", "message"),
    [
        pytest.param(
            answering(error("Incorrect API key provided", "invalid_api_key"), 401),
            *("authentication", False, "answered 401: Incorrect API key provided (the key came from LOCAL_KEY)"),
            id="wrong key",
        ),
        pytest.param(
            answering(error("The model `m` does not exist", "model_not_found"), 404),
            *("not_found", False, "answered 404: The model `m` does not exist"),
            id="unknown model",
        ),
        pytest.param(
            answering(b"<html>Welcome</html>"),
            *("malformed_response", True, "'<html>Welcome</html>'"),
            id="a web page",
        ),
        pytest.param(
            answering(error("upstream is busy", 429)),
            *("rate_limited", True, "answered 429: upstream is busy"),
            id="200 with an error",
        ),
        pytest.param(
            answering(error("out of memory")),
            *("server_error", True, "answered 500: out of memory"),
            id="200 with an error without a code",
        ),
        pytest.param(
            answering({"choices": []}), *("malformed_response", True, "the reply has no choices"), id="no choices"
        ),
        pytest.param(
            answering(completion(None, None)),
            *("malformed_response", True, "no content, no tool calls and no finish_reason"),
            id="nothing said",
        ),
        pytest.param(
            answering(completion("par", "error")), *("server_error", True, "finish_reason 'error'"), id="given up"
        ),
        pytest.param(
            answering(error(TOO_LONG, "context_length_exceeded"), 400),
            *("context_length", False, "answered 400: This model's maximum context length"),
            id="context overflow",
        ),
        pytest.param(
            answering(error("insufficient funds", "insufficient_quota"), 429),
            *("quota_exhausted", False, "answered 429: insufficient funds"),
            id="no money",
        ),
        pytest.param(
            answering(error("overloaded"), 529), *("server_error", True, "answered 529: overloaded"), id="529"
        ),
        pytest.param(cut, *("connection", True, "payload is not completed"), id="cut in the body"),
        pytest.param(silent, *("timeout", True, "no answer in 0.5 s"), id="silence"),
        pytest.param(elsewhere, *("redirected", False, "redirects are not followed"), id="redirect"),
    ],
)
async def test_failures(kind: Kind, handler: Handler, type: str, retryable: bool, message: str):
    """Each failure has one type and a message that says what happened, and asks nothing twice by itself."""
    asked: Counter[str] = Counter()

    async def counting(request: web.Request) -> web.StreamResponse:
        asked[request.path] += 1
        return await handler(request)

    pacing = Pacing(timeout=0.5 if handler is silent else 30)
    async with endpoint(counting) as url, client(kind, base_url=f"{url}/v1", pacing=pacing) as asking:
        with pytest.raises(ProviderError) as caught:
            await asking.complete(REQUEST)
    assert (caught.value.type, caught.value.retryable) == (type, retryable)
    assert message in str(caught.value)
    assert asked == {"/v1/chat/completions": 1}
    assert builtins_only(caught.value)


def builtins_only(failure: ProviderError) -> bool:
    """What crosses between processes knows no library."""
    return b"litellm" not in pickle.dumps(failure.__cause__)


@pytest.mark.parametrize(
    ("body", "status", "reply"),
    [
        pytest.param(
            calls(("c", "{not json")),
            *(200, ModelReply("", "tool-calls", (RequestedCall("c", "f", "{not json"),))),
            id="arguments that are not JSON",
        ),
        pytest.param(
            calls(("c", "1"), ("c", "2"), ("d", "3")),
            200,
            ModelReply(
                "",
                "tool-calls",
                (RequestedCall("c", "f", "1"), RequestedCall("c_2", "f", "2"), RequestedCall("d", "f", "3")),
            ),
            id="duplicate ids",
        ),
        pytest.param(
            calls(("c", BIG)), *(200, ModelReply("", "tool-calls", (RequestedCall("c", "f", BIG),))), id="500 KB"
        ),
        pytest.param(
            error("The response was filtered", "content_filter"),
            *(400, ModelReply("", "content-filter")),
            id="filtered prompt",
        ),
        pytest.param(completion("par", "content_filter"), *(200, ModelReply("par", "content-filter")), id="filtered"),
    ],
)
async def test_what_the_model_did_is_an_answer(kind: Kind, body: Any, status: int, reply: ModelReply):
    """Odd tool calls and what a filter stopped go to grading, as they were sent."""
    async with endpoint(answering(body, status)) as url, client(kind, base_url=f"{url}/v1") as asking:
        assert await asking.complete(REQUEST) == reply


async def test_a_wait_of_a_day_is_not_waited_for(kind: Kind):
    """A Retry-After beyond the deadline ends the call at once, and is told."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with (
        endpoint(answering(error("slow down"), 429, Retry_After="86400")) as url,
        client(kind, base_url=f"{url}/v1") as asking,
    ):
        with pytest.raises(ProviderError, match=r"slow down .*gave up after 1 try") as caught:
            await complete_with_retries(
                asking, REQUEST, Pacing(), clock=lambda: 0, sleep=sleep, uniform=lambda _low, _high: 0
            )
    assert (caught.value.type, caught.value.retry_after, waits) == ("rate_limited", 86400, [])


async def test_nobody_there(kind: Kind):
    """A port that nobody serves is a connection error: a server may be starting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with client(kind, base_url=f"http://127.0.0.1:{port}/v1") as asking:
            with pytest.raises(ProviderError, match=f"127.0.0.1:{port}") as caught:
                await asking.complete(REQUEST)
    assert (caught.value.type, caught.value.retryable) == ("connection", True)


async def test_no_such_host(kind: Kind):
    """So is a name that leads nowhere."""
    async with client(kind, base_url="http://nowhere.invalid/v1") as asking:
        with pytest.raises(ProviderError, match=r"nowhere\.invalid") as caught:
            await asking.complete(REQUEST)
    assert (caught.value.type, caught.value.retryable) == ("connection", True)
