"""A mock model over HTTP, in the OpenAI format: what `trunchray mock-server` runs, so that real clients are exercised.

Requests carry neither case nor attempt nor retry. The case is found by its prompt (or named by the prompt's hash); the
n-th request with the same prompt and step is a retry while it has only met faults, and another attempt after each
answer. So clients that ask one after the other see exactly what they would see from the mock in their own process.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from aiohttp import web

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall
from trunchray.adapters.models.chance import Draw
from trunchray.adapters.models.mock import MockClient, message_text
from trunchray.adapters.models.rate_limit import Limiter, RateLimit
from trunchray.adapters.models.replay import Replay
from trunchray.adapters.web_listener import listening
from trunchray.core.agent import Mock, ModelAgent
from trunchray.core.trial import FinishReason, Usage
from trunchray.errors import ProviderError

MAX_REQUEST = 64 * 2**20
"""Bytes of a request's body."""

_REASONS: Mapping[FinishReason, str] = {"content-filter": "content_filter", "tool-calls": "tool_calls"}
_CLOSING = web.AppKey("closing", asyncio.Event)


def mock_app(
    spec: ModelAgent,
    *,
    replay: Replay | None = None,
    prompts: Mapping[str, str] | None = None,
    limit: RateLimit | None = None,
) -> web.Application:
    """The server as an application. `prompts` maps a case's prompt to its id, which replay needs.

    What exceeds the `limit` is refused with 429 before anything else happens to it.

    Raises:
        UsageError: the spec is not one of a mock, or what the mock plays is missing.
    """
    endpoint = _Endpoint(spec, replay, prompts or {}, Limiter(limit) if limit else None)
    app = web.Application(client_max_size=MAX_REQUEST)
    app[_CLOSING] = asyncio.Event()
    app.on_shutdown.append(_release_hanging)
    app.add_routes(
        [
            web.post("/v1/chat/completions", endpoint.chat),
            web.post("/chat/completions", endpoint.chat),
            web.get("/v1/models", endpoint.models),
            web.get("/health", _health),
        ]
    )
    return app


@asynccontextmanager
async def serve(
    spec: ModelAgent,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    replay: Replay | None = None,
    prompts: Mapping[str, str] | None = None,
    limit: RateLimit | None = None,
) -> AsyncGenerator[str]:
    """Serve until the block ends; gives the base URL, ending in /v1. Port 0 takes any free one.

    Raises:
        UsageError: the address cannot be bound, and as `mock_app`.
    """
    app = mock_app(spec, replay=replay, prompts=prompts, limit=limit)
    async with listening(app, host, port) as address:
        yield f"{address}/v1"


async def _release_hanging(app: web.Application) -> None:
    app[_CLOSING].set()


async def _health(_request: web.Request) -> web.Response:
    return _json({"status": "ok"})


class _Endpoint:
    def __init__(
        self, spec: ModelAgent, replay: Replay | None, prompts: Mapping[str, str], limiter: Limiter | None
    ) -> None:
        self._limiter = limiter
        self._client = MockClient(spec, replay=replay)
        self._faults = (spec.mock or Mock()).faults
        self._replay = replay
        self._prompts = prompts
        self._seen = _Seen()

    async def models(self, _request: web.Request) -> web.Response:
        name = self._client.model.partition("/")[2]
        return _json({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "trunchray"}]})

    async def chat(self, http: web.Request) -> web.StreamResponse:
        if self._limiter:
            refused, wait = self._limiter.refuses()
            if refused:
                headers = {} if wait is None else {"Retry-After": str(wait)}
                return _refusal(429, "too many requests a minute", "rate_limit_exceeded", headers=headers)
        try:
            request = self._read(await http.read())
        except ValueError as e:
            return _refusal(400, str(e), "invalid_request_error")
        draw = self._client.draw(request)
        self._seen.met(request, draw)
        if draw.fault == "timeout":
            await http.app[_CLOSING].wait()
            return _refusal(503, "the server is closing", "server_error")
        if draw.seconds:
            await asyncio.sleep(draw.seconds)
        return self._fault(draw) if draw.fault else self._answer(request)

    def _read(self, content: bytes) -> ModelRequest:
        messages = _messages(json_text.parse(content))
        prompt = next((message_text(message) for message in messages if message.get("role") == "user"), "")
        case_id = self._prompts.get(prompt) or "prompt-" + hashlib.sha256(prompt.encode()).hexdigest()[:16]
        step = 1 + sum(message.get("role") == "assistant" for message in messages)
        return self._seen.identified(ModelRequest(messages, max_output_tokens=1, case_id=case_id, step=step))

    def _answer(self, request: ModelRequest) -> web.Response:
        if self._replay is not None:
            request = replace(request, attempt=self._replay.nth(request.case_id, request.attempt))
        try:
            reply = self._client.answer(request)
        except ProviderError as error:
            return _refusal(404, str(error), error.type)
        request_id = quote(reply.request_id or "")
        return _json(_completion(reply, request_id), headers={"x-request-id": request_id})

    def _fault(self, draw: Draw) -> web.Response:
        match draw.fault:
            case "rate_limited":
                wait = f"{self._faults.retry_after:.3f}".rstrip("0").rstrip(".")
                return _refusal(429, "too many requests", "rate_limit_exceeded", headers={"Retry-After": wait})
            case "rate_limited_silently":
                return _refusal(429, "too many requests", "rate_limit_exceeded")
            case "server_error":
                return _refusal(draw.status, "something broke", "server_error")
            case _:
                return web.Response(body=b'{"choices": [{"mess', content_type="application/json")


class _Seen:
    """How often each prompt and step has been answered, and refused since: what attempt and retry follow from."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], tuple[int, int]] = {}

    def identified(self, request: ModelRequest) -> ModelRequest:
        answered, refused = self._counts.get((request.case_id, request.step), (0, 0))
        return replace(request, attempt=answered + 1, retry=refused)

    def met(self, request: ModelRequest, draw: Draw) -> None:
        counts = (request.attempt - 1, request.retry + 1) if draw.fault else (request.attempt, 0)
        self._counts[request.case_id, request.step] = counts


def _messages(body: Any) -> tuple[dict[str, Any], ...]:
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise ValueError("messages must be a list of objects with a role and a content")
    if body.get("stream"):
        raise ValueError("this server does not stream: leave stream out")
    return tuple(messages)


def _json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=json_text.dump(value), status=status, headers=headers, content_type="application/json")


def _refusal(status: int, message: str, code: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    return _json({"error": {"message": message, "type": code, "code": code}}, status=status, headers=headers)


def _completion(reply: ModelReply, request_id: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call) for call in reply.tool_calls]
    reason = _REASONS.get(reply.finish_reason, reply.finish_reason)
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": _usage(reply.usage),
    }


def _call(call: RequestedCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> dict[str, Any] | None:
    if usage == Usage():
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
