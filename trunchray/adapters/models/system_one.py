"""A decision model over HTTP ("System One", such as Jev): a state and typed questions in, typed answers out.

It is not a language model, and does not speak OpenAI's protocol. The body of a request is `{model, state, questions:
{id: question}}`, that of an answer `{answers: {id: answer}}`, whose other keys are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue
from yarl import URL

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.http import Answer, Http, host_of
from trunchray.adapters.models.keys import Key, hint
from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.adapters.models.refusal import read_refusal
from trunchray.adapters.models.retry import Waits, complete_with_retries
from trunchray.core.agent import Pacing
from trunchray.core.decision_reply import read_decisions
from trunchray.core.decisions import Decision, Fallback, FallbackReason, Question
from trunchray.core.json_object import parse_object
from trunchray.errors import ProviderError

RETRIES = 2
LONGEST_WAIT = 60.0
"""Seconds; a longer `Retry-After` is ignored."""

_HTTP = "http_"
_REASONS: Mapping[str, FallbackReason] = {"timeout": "timeout", "connection": "network"}


class SystemOneClient:
    """One decision model behind one address. Connects on the first call, in the event loop of that call.

    `timeout` bounds one request until its answer is read, in seconds. 408, 429, 5xx and broken connections are tried
    twice more; a request that timed out is not. The key is sent to `url` and nowhere else, and replaced in every
    message. `wall_clock` (Unix time) reads a Retry-After that is a date.
    """

    def __init__(
        self,
        url: str,
        model: str,
        key: Key,
        *,
        timeout: float,
        waits: Waits | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._model, self._key = URL(url), model, key
        self._host = host_of(self._url)
        proxy = proxy_for(url)
        self._redaction = Redaction([key.text], [proxy] if proxy else [])
        deadline = (RETRIES + 1) * timeout + RETRIES * (LONGEST_WAIT + 1)
        self._pacing = Pacing(timeout=timeout, max_retries=RETRIES, deadline=deadline)
        self._http = Http(self._pacing, self._redaction)
        self._waits, self._wall_clock = waits or Waits(), wall_clock

    async def decide(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """One request with all questions: one decision for each, in their order, or why there is none."""
        began = self._waits.clock()
        found = await self._decided(state, questions)
        if isinstance(found, Fallback):
            return replace(found, backend=self._host, latency_ms=(self._waits.clock() - began) * 1000)
        return found

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One try: the request's only message is the body that is sent, the reply's text the body that comes back.

        Raises:
            ProviderError: timeout, connection, response_too_large, or `http_<status>`.
        """
        headers = {"Authorization": f"Bearer {self._key.text}"}
        try:
            answer = await self._http.send("POST", self._url, request.messages[0]["content"].encode(), headers)
        except ProviderError as e:
            raise ProviderError(str(e), type=e.type, retryable=e.type == "connection" and e.retryable) from e
        if not 200 <= answer.status < 300:
            raise self._refused(answer)
        return ModelReply(answer.body.decode("utf-8", "replace"))

    async def close(self) -> None:
        """Close every connection; may be called more than once."""
        await self._http.close()

    def _refused(self, answer: Answer) -> ProviderError:
        refusal = read_refusal(*answer, self._redaction.message, now=self._wall_clock())
        after = refusal.retry_after
        return ProviderError(
            str(refusal.error(self._host, hint(self._key))),
            type=f"{_HTTP}{answer.status}",
            retryable=answer.status in (408, 429) or answer.status >= 500,
            retry_after=after if after is not None and after <= LONGEST_WAIT else None,
        )

    async def _decided(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        body = {"model": self._model, "state": state, "questions": {each.id: each.to_wire() for each in questions}}
        content = json_text.dump(body).decode()
        request = ModelRequest(({"role": "user", "content": content},), max_output_tokens=1, case_id="judge")
        clock, sleep, uniform = self._waits
        try:
            done = await complete_with_retries(self, request, self._pacing, clock=clock, sleep=sleep, uniform=uniform)
        except ProviderError as e:
            return _failed(e)
        found = _read(questions, done.reply.text)
        if isinstance(found, Fallback):
            return replace(found, detail=f"{self._host}: {self._redaction.message(found.detail or '')}")
        return found


def _read(questions: Sequence[Question], body: str) -> tuple[Decision, ...] | Fallback:
    try:
        answers = parse_object(body).get("answers")
    except ValueError as e:
        return Fallback("parse-error", str(e))
    if not isinstance(answers, dict):
        return Fallback("parse-error", "the answer holds no object `answers`")
    return read_decisions(questions, answers)


def _failed(error: ProviderError) -> Fallback:
    if error.type.startswith(_HTTP):
        return Fallback("http-error", str(error), http_status=int(error.type.removeprefix(_HTTP)))
    return Fallback(_REASONS.get(error.type, "parse-error"), str(error))
