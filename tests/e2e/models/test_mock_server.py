"""The mock server, as any OpenAI-compatible tool sees it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from trunchray.adapters.models.replay import load_replay
from trunchray.adapters.models.server import serve
from trunchray.core.agent import Faults, Mock, ModelAgent, Pacing
from trunchray.errors import UsageError

ECHO = ModelAgent(name="m", model="mock/echo")
BODY = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}


async def post(url: str, body: Any, **options: Any) -> tuple[int, Any, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with aiohttp.ClientSession() as session, session.post(url, data=data, **options) as response:
        return response.status, json.loads(await response.read()), response.headers


async def get(url: str) -> Any:
    async with aiohttp.ClientSession(raise_for_status=True) as session, session.get(url) as response:
        return await response.json()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
async def test_completions_have_the_openai_shape(path: str) -> None:
    """Both paths answer what an SDK expects."""
    async with serve(ECHO) as url:
        status, body, headers = await post(url.removesuffix("/v1") + path, BODY)
    assert status == 200
    assert body["choices"] == [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]
    assert (body["object"], body["model"]) == ("chat.completion", "mock/echo")
    assert body["usage"]["total_tokens"] == 2
    assert headers["x-request-id"] == body["id"]


async def test_models_and_health() -> None:
    """What health checks and model pickers ask for."""
    async with serve(ECHO) as url:
        assert [model["id"] for model in (await get(f"{url}/models"))["data"]] == ["echo"]
        assert await get(url.removesuffix("/v1") + "/health") == {"status": "ok"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "line 1 column 2"),
        (b"[]", "messages must be a list"),
        ({"messages": []}, "messages must be a list"),
        ({"messages": ["hi"]}, "messages must be a list"),
        ({**BODY, "stream": True}, "does not stream"),
    ],
)
async def test_bad_requests_are_refused(body: Any, message: str) -> None:
    """A request that cannot be answered gets status 400 and the reason."""
    async with serve(ECHO) as url:
        status, answer, _ = await post(f"{url}/chat/completions", body)
    assert status == 400
    assert message in answer["error"]["message"]


async def test_rate_limits_name_the_wait_in_the_header() -> None:
    """A 429 carries Retry-After as a plain number of seconds."""
    spec = ModelAgent(name="m", model="mock/echo", mock=Mock(faults=Faults(rate_limited=1, retry_after=1.5)))
    async with serve(spec) as url:
        status, _, headers = await post(f"{url}/chat/completions", BODY)
    assert (status, headers["Retry-After"]) == (429, "1.5")


async def test_recorded_attempts_are_played_in_turn() -> None:
    """A server that is asked again, by a second run, starts again with the first recorded attempt."""
    rows = [{"case_id": "a", "attempt": n, "output": str(n)} for n in (1, 2)]
    replay = load_replay("\n".join(map(json.dumps, rows)).encode(), "r")
    async with serve(ModelAgent(name="m", model="mock/replay"), replay=replay, prompts={"hi": "a"}) as url:
        answers = [(await post(f"{url}/chat/completions", BODY))[1] for _ in range(4)]
    assert [answer["choices"][0]["message"]["content"] for answer in answers] == ["1", "2", "1", "2"]


async def test_closing_does_not_wait_for_hanging_requests() -> None:
    """A request that the mock lets hang is answered when the server stops."""
    spec = ModelAgent(name="m", model="mock/echo", mock=Mock(faults=Faults(timeout=1)), pacing=Pacing(timeout=600))
    async with serve(spec) as url:
        hanging = asyncio.create_task(post(f"{url}/chat/completions", BODY))
        for _ in range(3):  # later requests are answered, so the first has arrived
            await get(url.removesuffix("/v1") + "/health")
        assert not hanging.done()
    assert (await hanging)[0] == 503


async def test_a_taken_port_is_a_usage_error() -> None:
    """The message says which address, and what to choose instead."""
    async with serve(ECHO) as url:
        port = int(url.split(":")[2].removesuffix("/v1"))
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serve(ECHO, port=port):
                pass
