"""Providers with protocols of their own, as litellm speaks them, and what it must not do besides."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import KEY, REQUEST, Handler, answering, client, completion, endpoint
from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall, ToolDefinition
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.litellm import LiteLLMClient
from trunchray.adapters.models.providers import FOREIGN, LOCAL, PROVIDERS, litellm_name
from trunchray.core.agent import ModelAgent
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError, UsageError

pytestmark = pytest.mark.usefixtures("litellm")

CLAUDE = "anthropic/claude-3-5-haiku"
TOOL = ToolDefinition("add", "Adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASKED = ModelRequest(
    (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1 + 1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ),
    64,
    "case-1",
    tools=(TOOL,),
)


def message(*content: dict[str, Any], reason: str = "end_turn") -> dict[str, Any]:
    """An answer in Anthropic's protocol."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": reason}
    return {**head, "content": list(content), "usage": usage}


SAID = message({"type": "text", "text": "hello"})


class Listening:
    """Notes what it is asked, and answers alike."""

    def __init__(self, body: Any, **headers: str) -> None:
        self._answer = answering(body, **headers)
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path_qs)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(await request.json())
        return await self._answer(request)


async def reply_to(handler: Handler, request: ModelRequest = REQUEST, **spec: Any) -> ModelReply:
    async with endpoint(handler) as url, client("litellm", **{"model": CLAUDE, "base_url": url, **spec}) as asking:
        return await asking.complete(request)


async def error_of(handler: Handler, **spec: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await reply_to(handler, **spec)
    return caught.value


async def test_anthropic():
    """System prompt, tools, calls and results go out in Anthropic's form; text, calls and usage come back in ours."""
    asked = Listening(
        message(
            {"type": "text", "text": "hello"},
            {"type": "tool_use", "id": "tu1", "name": "add", "input": {"a": 1}},
            reason="tool_use",
        ),
        request_id="req_9",
    )
    reply = await reply_to(asked.answer, ASKED, params={"temperature": 0}, headers={"X-Team": "x"})
    assert reply == ModelReply(
        "hello",
        "tool-calls",
        (RequestedCall("tu1", "add", '{"a": 1}'),),
        Usage(input_tokens=15, output_tokens=7, cached_input_tokens=5, reasoning_tokens=0),
        "claude-x",
        "req_9",
    )
    [body], [headers] = asked.bodies, asked.headers
    assert asked.paths == ["/v1/messages"]
    assert (headers["x-api-key"], headers["x-team"]) == (KEY, "x")
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("claude-3-5-haiku", 64, 0)
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"][0]["tool_use_id"] == "c1"
    assert body["tools"][0]["input_schema"] == TOOL.parameters


@pytest.mark.parametrize(("reason", "text", "finish"), [("STOP", "hi", "stop"), ("SAFETY", "", "content-filter")])
async def test_gemini(reason: str, text: str, finish: str):
    """Thoughts are counted as output, and apart; what a safety filter stopped is an empty answer."""
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 4, "cachedContentTokenCount": 2}
    said = {"content": {"parts": [{"text": "hi"}], "role": "model"}, "finishReason": reason}
    body = {"candidates": [said], "usageMetadata": usage | {"totalTokenCount": 16}, "modelVersion": "gemini-x"}
    asked = Listening(body | {"responseId": "rid"})
    reply = await reply_to(asked.answer, model="gemini/gemini-2.5-flash")
    assert (reply.text, reply.finish_reason, reply.model, reply.request_id) == (text, finish, "gemini-x", "rid")
    counted = Usage(input_tokens=9, output_tokens=7, cached_input_tokens=2, reasoning_tokens=4)
    assert reply.usage == (counted if text else Usage(input_tokens=9, output_tokens=3))  # litellm drops the thoughts
    assert (asked.paths, asked.headers[0]["x-goog-api-key"]) == (["/models/gemini-2.5-flash:generateContent"], KEY)


async def test_bedrock(monkeypatch: pytest.MonkeyPatch):
    """Requests are signed with the credentials of the environment, which are never recorded."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0123456789ABCDEF")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret-0123456789")
    text = "your key is AKIA0123456789ABCDEF"
    said = {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}, "stopReason": "max_tokens"}
    usage = {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}
    asked = Listening(said | {"usage": usage, "metrics": {"latencyMs": 1}}, x_amzn_requestid="amz1")
    spec = ModelAgent(
        name="m",
        model="bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
        params={"aws_region_name": "us-east-1"},
    )
    environ = {"AWS_ACCESS_KEY_ID": "AKIA0123456789ABCDEF"}
    async with endpoint(asked.answer) as url:
        asking = LiteLLMClient(spec.model_copy(update={"base_url": url}), environ=environ)
        reply = await asking.complete(REQUEST)
        await asking.close()
    assert (reply.text, reply.finish_reason, reply.request_id) == ("your key is [key]", "length", "amz1")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 2)
    assert asked.headers[0]["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA0123456789ABCDEF")


async def test_cohere():
    """A full address of an endpoint is asked as it is."""
    body = {"id": "c1", "finish_reason": "COMPLETE", "message": {"content": [{"type": "text", "text": "hi"}]}}
    usage = {"billed_units": {"input_tokens": 5, "output_tokens": 2}, "tokens": {"input_tokens": 9, "output_tokens": 2}}
    asked = Listening(body | {"usage": usage})
    async with (
        endpoint(asked.answer) as url,
        client("litellm", model="cohere/command-a-03-2025", base_url=f"{url}/v2/chat") as asking,
    ):
        reply = await asking.complete(REQUEST)
    assert (reply.text, reply.finish_reason, reply.request_id) == ("hi", "stop", "c1")
    assert asked.paths == ["/v2/chat"]


async def test_azure_ai():
    """An endpoint that speaks OpenAI's protocol behind another address and header is read like one."""
    asked = Listening({**completion(), "id": "a1", "model": "phi"})
    reply = await reply_to(asked.answer, model="azure_ai/phi")
    assert reply == ModelReply("hello", model="phi", request_id="a1")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool-calls"),
        ("refusal", "content-filter"),
    ],
)
async def test_reasons_to_finish(reason: str, finish: str):
    """Each of Anthropic's reasons is one of ours."""
    assert (await reply_to(answering(message({"type": "text", "text": "x"}, reason=reason)))).finish_reason == finish


async def test_uncounted_tokens_are_unknown():
    """A provider that is silent about tokens leaves None, not zero, and so does one without an id."""
    said = {name: value for name, value in SAID.items() if name != "id"}
    reply = await reply_to(answering({**said, "usage": {"input_tokens": 0, "output_tokens": 0}}))
    assert (reply.usage, reply.request_id) == (Usage(), None)


@pytest.mark.parametrize(
    ("status", "body", "type", "retryable"),
    [
        (401, {"type": "authentication_error", "message": "invalid x-api-key"}, "authentication", False),
        (404, {"type": "not_found_error", "message": "model: claude"}, "not_found", False),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}, "context_length", False),
        (400, {"type": "invalid_request_error", "message": "temperature: range"}, "bad_request", False),
        (429, {"type": "rate_limit_error", "message": "slow down"}, "rate_limited", True),
        (500, {"type": "api_error", "message": "internal"}, "server_error", True),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, "server_error", True),
    ],
)
async def test_failures_of_anthropic(status: int, body: dict[str, str], type: str, retryable: bool):
    """Whatever litellm makes of them, the provider's status and message decide, and its Retry-After counts."""
    error = await error_of(answering({"type": "error", "error": body}, status, retry_after="7"))
    assert (error.type, error.retryable, error.retry_after) == (type, retryable, 7)
    assert f"answered {status}: {body['message']}" in str(error)
    assert b"litellm" not in pickle.dumps(error)


@pytest.mark.parametrize("body", [b"<html>oops</html>", b"{}", b"[]", b"", b'{"content": [{"te'])
async def test_odd_answers_are_malformed(body: bytes):
    """A good status without an answer in it is worth a retry, and shown."""
    error = await error_of(answering(body))
    assert (error.type, error.retryable) == ("malformed_response", True)
    assert repr(body.decode()) in str(error)


@pytest.mark.parametrize("status", [200, 401, 500])
async def test_an_echoed_key_is_never_recorded(status: int):
    """A provider that sends the key back does not get it into a message or a reply."""
    said = message({"type": "text", "text": KEY}, {"type": "tool_use", "id": KEY, "name": KEY, "input": {"a": KEY}})
    if status == 200:
        recorded = repr(await reply_to(answering({**said, "model": KEY}, request_id=KEY)))
    else:
        error = await error_of(answering({"error": {"message": f"bad {KEY}", "type": KEY}}, status))
        recorded = f"{error!r} {error}"
    assert "[key]" in recorded
    assert KEY[:8] not in recorded


async def test_a_parameter_that_the_provider_does_not_know_is_refused():
    """It is neither dropped nor sent: the row says which one it is."""
    asked = Listening(SAID)
    error = await error_of(asked.answer, params={"logprobs": True})
    assert (error.type, error.retryable, asked.paths) == ("bad_request", False, [])
    assert "logprobs" in str(error)


async def test_missing_credentials_are_an_authentication_error(monkeypatch: pytest.MonkeyPatch):
    """A provider whose key is looked for in the environment and not there is not asked again and again."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    asked = Listening(SAID)
    error = await error_of(asked.answer, keys=[])
    assert (error.type, error.retryable, asked.paths) == ("authentication", False, [])


async def test_requests_go_out_once_and_to_the_address_alone():
    """Neither litellm nor what it is built on asks again, and a redirect does not carry the key elsewhere."""
    paths: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        paths.append(request.path)
        raise web.HTTPTemporaryRedirect("/elsewhere")

    assert (await error_of(handler)).type == "redirected"
    assert paths == ["/v1/messages"]


async def test_params_that_steer_litellm_are_refused():
    """Where requests go, and how often, is not a model's parameter."""
    with pytest.raises(UsageError, match="params may not set fallbacks, mock_response"):
        LiteLLMClient(ModelAgent(name="m", model=CLAUDE, params={"fallbacks": ["x"], "mock_response": "42"}))


def test_providers_are_known_to_litellm():
    """What is sent through litellm without being asked for is called there as it is here."""
    import litellm

    known = {getattr(provider, "value", provider) for provider in litellm.provider_list}
    assert {*FOREIGN, *(litellm_name(f"{name}/m").partition("/")[0] for name in (*PROVIDERS, *LOCAL))} <= known


def test_importing_asks_nobody(tmp_path: Any):
    """Importing litellm and rehearsing a call opens no connection, looks up no name and reads no .env file."""
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=from-a-file\n")
    script = (
        "import os, sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto'): print(event, args, flush=True)\n"
        "sys.addaudithook(hook)\n"
        "from trunchray.adapters.models.litellm import prepare\n"
        "prepare()\n"
        "print(os.environ.get('ANTHROPIC_API_KEY'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path, env={"PATH": ""}
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


async def test_refused_keys_are_left_out(caplog: pytest.LogCaptureFixture):
    """With two keys, the one that is refused costs one request, is named in a warning, and is not used again."""
    used: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        used.append(request.headers["x-api-key"])
        good = request.headers["x-api-key"] == "good-key"
        body = SAID if good else {"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}
        return web.json_response(body, status=200 if good else 401)

    async with (
        endpoint(handler) as url,
        client("litellm", model=CLAUDE, base_url=url, keys=[Key("GOOD", "good-key"), Key("BAD", "bad-key")]) as asking,
    ):
        texts = [(await asking.complete(REQUEST)).text for _ in range(4)]
    assert texts == ["hello"] * 4
    assert sorted(used) == ["bad-key", *["good-key"] * 4]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the key in BAD is left out from now on"
    ]
    assert "bad-key" not in json.dumps([record.getMessage() for record in caplog.records])
