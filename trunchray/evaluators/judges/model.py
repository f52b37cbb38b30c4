"""A language model as a judge, through any of our model clients."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models.base import ModelClient, ModelRequest
from trunchray.adapters.models.connect import build_client, load_clients
from trunchray.adapters.models.providers import check_headers, check_params, is_mock, resolve
from trunchray.adapters.models.retry import Completed, Waits, complete_with_retries
from trunchray.core.agent import ModelAgent
from trunchray.core.decisions import Decision, Fallback, FallbackReason, Question, Thresholds, check_questions
from trunchray.core.digest import sha256
from trunchray.errors import ProviderError, UsageError
from trunchray.evaluators.judges.bars import checked_agent
from trunchray.evaluators.judges.labelled import read_labelled
from trunchray.evaluators.judges.prompt import INSTRUCTIONS, messages

_JSON: dict[str, JsonValue] = {"response_format": {"type": "json_object"}, "temperature": 0}
WAYS: tuple[dict[str, JsonValue], ...] = (
    {**_JSON, "logprobs": True, "top_logprobs": 5},
    _JSON,
    {"response_format": {"type": "json_object"}},
    {},
)
"""Request fields, best first: a model that refuses some is asked the next way, and from then on that way."""

_REASONS: Mapping[str, FallbackReason] = {
    "timeout": "timeout",
    "connection": "network",
    "malformed_response": "parse-error",
    "response_too_large": "parse-error",
}


class ModelJudge:
    """A language model that answers all questions about a state in one request, in JSON.

    Its probabilities are those of the tokens of its answers where the provider gives them, else the ones it states;
    each decision's `method` says which. The first call finds out what the model takes: token probabilities, JSON as a
    format, a temperature of 0. Params of the spec's own go before these. `timeout` bounds one request, in seconds, in
    place of the spec's; retries are those of `pacing`, with `waits` between them. Keys are read from the environment
    where requests are made.

    Raises:
        UsageError: the model cannot be asked.
    """

    def __init__(
        self,
        spec: ModelAgent,
        *,
        thresholds: Mapping[str, float] | Thresholds | None = None,
        escalate: object = None,
        timeout: float | None = None,
        waits: Waits | None = None,
    ) -> None:
        self._route = resolve(spec.model, spec.base_url, spec.key_names, transport=spec.transport)
        if spec.model == "mock/replay":
            raise UsageError("a judge answers what nobody recorded: take mock/script in place of mock/replay")
        if not is_mock(spec.model):
            check_params(spec.model, spec.params)
            check_headers(spec.model, spec.headers)
        if timeout is not None:
            spec = spec.model_copy(update={"pacing": spec.pacing.model_copy(update={"timeout": timeout})})
        self.thresholds, self.escalate = Thresholds.of(thresholds), checked_agent(escalate)
        self.timeout = spec.pacing.timeout
        self._spec = spec
        self._clients: dict[int, ModelClient] = {}
        """By way."""
        self._way = 0
        self._waits = waits

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """As `Judge.invoke`; the reason is no-key, and nobody is asked, where the environment holds none."""
        check_questions(questions)
        if not questions:
            return ()
        chat = messages(state, questions, self._spec.system_prompt)
        request = ModelRequest(chat, self._spec.limits.max_output_tokens, case_id="judge")
        waits = self._waits or Waits()
        began = waits.clock()
        try:
            done = await self._ask(request, waits)
        except UsageError as e:  # all else of the spec has been checked
            return Fallback("no-key", str(e))
        except ProviderError as e:
            reason = _REASONS.get(e.type, "http-error")
            return Fallback(reason, str(e), backend=self._spec.model, latency_ms=(waits.clock() - began) * 1000)
        return read_labelled(questions, done.reply)

    async def close(self) -> None:
        """Close every connection."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    @property
    def identity(self) -> JsonValue:
        """What is asked of the model, the digest of the prompt, and how its probabilities are found."""
        odds = "logprobs, else stated"
        return {"kind": "model", **self._spec.asked, "prompt": sha256(INSTRUCTIONS.encode()), "probabilities": odds}

    def __getstate__(self) -> dict[str, Any]:
        """Without connections: they are made in the process that asks."""
        return {**vars(self), "_clients": {}}

    async def _ask(self, request: ModelRequest, waits: Waits) -> Completed:
        """The reply to a request asked in the best way that the model takes."""
        way = self._way
        while True:
            try:
                done = await self._asked(way, request, waits)
            except ProviderError as e:
                if e.type != "bad_request" or way + 1 == len(WAYS):
                    raise
                way += 1
            else:
                self._way = max(self._way, way)
                return done

    async def _asked(self, way: int, request: ModelRequest, waits: Waits) -> Completed:
        client, (clock, sleep, uniform) = await self._client(way), waits
        return await complete_with_retries(
            client, request, self._spec.pacing, clock=clock, sleep=sleep, uniform=uniform
        )

    async def _client(self, way: int) -> ModelClient:
        if self._route.transport == "litellm" and not self._clients:
            await asyncio.to_thread(load_clients, [self._spec])
        if way not in self._clients:
            spec = self._spec.model_copy(update={"params": {**WAYS[way], **self._spec.params}})
            self._clients[way] = build_client(spec, environ=os.environ)
        return self._clients[way]
