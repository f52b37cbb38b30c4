"""Answers that were paid for once: replies of models under the digest of the whole request, in any store.

An entry is one object, `<first two digits>/<digest>`: a line with the format, the digest and the hash of the rest, and
the reply as JSON. Whoever can write to the store decides what models "said"; nothing else in an entry is trusted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from pydantic import JsonValue, TypeAdapter

from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.providers import is_mock
from trunchray.adapters.models.wire import token_count
from trunchray.adapters.store import Patience, Store
from trunchray.core.agent import ModelAgent
from trunchray.core.digest import digest, sha256
from trunchray.core.trial import Usage
from trunchray.errors import StoreError

FORMAT = "trunchray.reply/1"
THREADS = 32
"""Entries that are read or written at a time."""
PATIENCE = 10.0
"""Seconds that a call waits for the store; after that the model is asked."""
REST = 60.0
"""Seconds for which a store that failed is left alone."""

_KEPT = frozenset({"stop", "length", "tool-calls", "other"})
"""Reasons to finish of answers. What a filter stopped, or a provider gave up, may be answered another time."""

_REPLY = TypeAdapter(ModelReply)

T = TypeVar("T")


def request_key(spec: ModelAgent, request: ModelRequest) -> str | None:
    """The digest of all that decides an answer: the model, its endpoint and parameters, the request, and the attempt.

    The attempt, because several attempts are asked for to see how answers differ. A mock looks at the case, too. None
    when the request holds numbers that have no canonical form.
    """
    asked: dict[str, JsonValue] = {name: value for name, value in spec.asked.items() if name != "limits"}
    tools: list[JsonValue] = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    try:
        return digest(
            [
                FORMAT,
                asked,
                list(request.messages),
                tools,
                request.max_output_tokens,
                request.attempt,
                [request.case_id, request.step] if is_mock(spec.model) else None,
                *([request.response_format] if request.response_format is not None else ()),
            ]
        )
    except ValueError:
        return None


class ReplyCache:
    """Replies in a store, shared by all models of a worker and all workers that name the same store.

    A store that fails is a cache without entries: no call fails because of it, and it is left alone for a minute.
    `warnings` then says so, once. `clock` counts seconds from anywhere.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="trunchray-cache")
        self._rests_until = float("-inf")
        self.warnings: tuple[str, ...] = ()

    @classmethod
    def at(cls, uri: str) -> Self:
        """The cache in a store, which is given up on as soon as a call would no longer wait for it."""
        return cls(Store(uri, Patience(total=PATIENCE, short=PATIENCE)))

    async def find(self, key: str) -> ModelReply | None:
        """The reply under a key; None when there is none, or what is there is not one."""
        content = await self._try(key, lambda: self._read(key))
        return _reply(key, content) if content is not None else None

    async def keep(self, key: str, reply: ModelReply) -> None:
        """Store an answer, in place of whatever is there; what is no whole answer is not stored."""
        try:
            entry = _entry(key, reply)
        except ValueError:  # text that is not Unicode
            return
        if reply.finish_reason in _KEPT:
            await self._try(key, lambda: self._store.write(_path(key), entry))

    def close(self) -> None:
        """Wait for nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(_path(key))
        except FileNotFoundError:
            return None

    async def _try(self, key: str, action: Callable[[], T]) -> T | None:
        if self._clock() < self._rests_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.get_running_loop().run_in_executor(self._threads, action)
        except TimeoutError:
            self._failed(f"no answer in {PATIENCE:g} s")
        except StoreError as e:
            # Without the path: all workers should say the same.
            whole = str(e).removeprefix(f"{self._store.uri}/{_path(key)}: ")
            self._failed(getattr(e.__cause__, "strerror", None) or whole)
        return None

    def _failed(self, reason: str) -> None:
        self._rests_until = self._clock() + REST
        if not self.warnings:
            self.warnings = (f"the cache {self._store.uri} cannot be used ({reason}); models are asked instead",)


def _path(key: str) -> str:
    return f"{key[:2]}/{key}"


def _head(key: str, body: bytes) -> bytes:
    return f"{FORMAT} {key} {sha256(body)}".encode()


def _entry(key: str, reply: ModelReply) -> bytes:
    body = _REPLY.dump_json(reply)
    return _head(key, body) + b"\n" + body


def _reply(key: str, content: bytes) -> ModelReply | None:
    head, _, body = content.partition(b"\n")
    if head != _head(key, body):
        return None
    try:
        reply = _REPLY.validate_json(body, strict=True)
    except ValueError:
        return None
    return reply if reply.finish_reason in _KEPT and _countable(reply.usage) else None


def _countable(usage: Usage) -> bool:
    counts = [getattr(usage, name) for name in Usage.model_fields]
    return all(count is None or token_count(count) is not None for count in counts)
