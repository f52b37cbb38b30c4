"""An HTTP endpoint that says what a test wants, and both real clients asking it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web

from trunchray.adapters.models.base import ModelClient, ModelRequest
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.litellm import LiteLLMClient
from trunchray.adapters.models.openai import OpenAIClient
from trunchray.core.agent import ModelAgent

KEY = "sk-very-secret-0123456789"
REQUEST = ModelRequest(({"role": "user", "content": "hi"},), 64, "case-1")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Kind = Literal["openai", "litellm"]


@asynccontextmanager
async def endpoint(handler: Handler) -> AsyncGenerator[str]:
    """The address of a server that gives every request to `handler`."""
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client(
    kind: Kind, *, keys: Sequence[Key] = (Key("LOCAL_KEY", KEY),), **spec: Any
) -> AsyncGenerator[ModelClient]:
    """A client of the kind; the rest is its spec."""
    made = OpenAIClient if kind == "openai" else LiteLLMClient
    asked = made(ModelAgent(**{"name": "m", "model": "openai/m", **spec}), keys=keys)
    try:
        yield asked
    finally:
        await asked.close()


def answering(body: Any, status: int = 200, **headers: str) -> Handler:
    """Always the same answer; `_` in the name of a header stands for `-`."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(body=content, status=status, headers=named, content_type="application/json")

    return handler


def completion(text: str | None = "hello", reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """An answer in OpenAI's protocol."""
    return {"choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}]}
