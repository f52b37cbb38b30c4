"""A language model that is asked for JSON, in the strictest way that it supports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import JsonValue

from trunchray.adapters.models.base import ModelClient, ModelRequest
from trunchray.adapters.models.connect import build_client, load_clients
from trunchray.adapters.models.providers import check_headers, check_params, is_mock, resolve
from trunchray.adapters.models.retry import Completed, Waits, complete_with_retries
from trunchray.core.agent import ModelAgent
from trunchray.errors import ProviderError

JSON_MODE: Mapping[str, JsonValue] = {"response_format": {"type": "json_object"}}
GREEDY: Mapping[str, JsonValue] = {"temperature": 0}


class Way(NamedTuple):
    """One way to ask: further request fields, and whether the schema of the answer is sent."""

    fields: Mapping[str, JsonValue]
    schema: bool = False


WAYS = (Way(GREEDY, schema=True), Way({}, schema=True), Way({**JSON_MODE, **GREEDY}), Way(JSON_MODE), Way({}))
"""Strictest first. A model that refuses one is asked in the next way; the first that works is kept."""


class JsonModel:
    """One model. Connections are made in the process and event loop of the first call; keys are read there, too.

    Params in the spec override those of the `ways`. It can be pickled, without its connections.

    Raises:
        UsageError: the model cannot be asked.
    """

    def __init__(self, spec: ModelAgent, *, ways: Sequence[Way] = WAYS, waits: Waits | None = None) -> None:
        self._route = resolve(spec.model, spec.base_url, spec.key_names, transport=spec.transport)
        if not is_mock(spec.model):
            check_params(spec.model, spec.params)
            check_headers(spec.model, spec.headers)
        self.spec = spec
        self._ways, self._waits = tuple(ways), waits
        self._way = 0
        self._works = False
        self._clients: dict[int, ModelClient] = {}
        """By way."""
        self._first: asyncio.Event | None = None
        """Set when the first call has ended; until then the others wait, as it finds out which way works."""

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, JsonValue], *, step: int = 1
    ) -> Completed:
        """The reply to a chat, with as many retries as the spec's pacing allows; `schema` is that of the reply.

        `step` counts the replies that are asked for in one matter, from 1.

        Raises:
            UsageError: its key is not in the environment.
            ProviderError: the last one, when nothing is left to try.
        """
        chat = tuple(dict(message) for message in messages)
        request = ModelRequest(chat, self.spec.limits.max_output_tokens, case_id="judge", step=step)
        if self._first is None and not self._works:
            first = self._first = asyncio.Event()
            try:
                return await self._ask(request, schema)
            finally:
                first.set()
        if self._first is not None:
            await self._first.wait()
        return await self._ask(request, schema)

    async def close(self) -> None:
        """Close every connection; it may be asked again."""
        clients, self._clients, self._first = self._clients, {}, None
        for client in clients.values():
            await client.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_clients": {}, "_first": None}

    async def _ask(self, request: ModelRequest, schema: Mapping[str, JsonValue]) -> Completed:
        way = self._way
        while True:
            try:
                done = await self._asked(way, request, schema)
            except ProviderError as e:
                if e.type != "bad_request" or self._works or way + 1 == len(self._ways):
                    raise
                way += 1
            else:
                self._works, self._way = True, max(self._way, way)
                return done

    async def _asked(self, way: int, request: ModelRequest, schema: Mapping[str, JsonValue]) -> Completed:
        if self._ways[way].schema and "response_format" not in self.spec.params:
            form: dict[str, JsonValue] = {"name": "answer", "strict": True, "schema": dict(schema)}
            request = replace(request, response_format={"type": "json_schema", "json_schema": form})
        client, (clock, sleep, uniform) = await self._client(way), self._waits or Waits()
        return await complete_with_retries(client, request, self.spec.pacing, clock=clock, sleep=sleep, uniform=uniform)

    async def _client(self, way: int) -> ModelClient:
        if self._route.transport == "litellm" and not self._clients:
            await asyncio.to_thread(load_clients, [self.spec])
        if way not in self._clients:
            spec = self.spec.model_copy(update={"params": {**self._ways[way].fields, **self.spec.params}})
            self._clients[way] = build_client(spec, environ=os.environ)
        return self._clients[way]
