"""A provider that keeps count: what was asked how often, and how many requests were under way at once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from trunchray.adapters.models.rate_limit import Limiter


class CountingProvider:
    """An OpenAI-compatible server in a thread of its own; answers each prompt with itself after `latency` seconds.

    `answer` makes another answer, of the model's name and the prompt.
    """

    def __init__(self, latency: float = 0.0, answer: Callable[[str, str], str] = lambda _, prompt: prompt) -> None:
        self.latency, self._text = latency, answer
        self.asked: Counter[str] = Counter()
        self.asked_of: Counter[tuple[str, str]] = Counter()
        """By model and prompt."""
        self.answered: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._now = 0
        self.reached = threading.Event()
        """Set once `reach` requests have come."""
        self.reach = 1
        self.failing: dict[str, int] = {}
        """Prompts that are refused with this status."""
        self.limiter: Limiter | None = None
        """What refuses a request that is one too many."""
        self.counts = True
        """Whether answers say how many tokens they took."""
        self.sends: dict[str, str] = {}
        """Headers of every answer."""

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()

    def _serve(self, started: threading.Event) -> None:
        async def main() -> None:
            self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
            app = web.Application()
            app.router.add_post("/v1/chat/completions", self._answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            started.set()
            await self._done.wait()
            await runner.cleanup()

        asyncio.run(main())

    async def _answer(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        prompt = body["messages"][-1]["content"]
        self.asked[prompt] += 1
        self.asked_of[body["model"], prompt] += 1
        self.headers.append(dict(request.headers))
        if self.limiter and self.limiter.refuses()[0]:
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        if self.asked.total() >= self.reach:
            self.reached.set()
        try:
            await asyncio.sleep(self.latency)
        finally:
            self._now -= 1
        if status := self.failing.get(prompt):
            return web.json_response({"error": {"message": "no"}}, status=status, headers=self.sends)
        self.answered[prompt] += 1
        text = self._text(body["model"], prompt)
        return web.json_response(
            {
                "id": "r",
                "model": "counting",
                "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3} if self.counts else None,
            },
            headers=self.sends,
        )
