"""The client for every OpenAI-compatible endpoint: aiohttp, straight to `/chat/completions`.

No provider library stands between: one costs several times the processor time of the request itself, and the
memory of a worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from yarl import URL

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.http import Answer, Http, host_of
from trunchray.adapters.models.keys import Key, Keys, hint
from trunchray.adapters.models.providers import address_shown
from trunchray.adapters.models.proxy import proxy_for
from trunchray.adapters.models.redaction import Redaction
from trunchray.adapters.models.refusal import Refusal, read_error, read_refusal
from trunchray.adapters.models.wire import MalformedReply, RequestWriter, failure, read_reply
from trunchray.core.agent import ModelAgent
from trunchray.errors import ProviderError, UsageError


class OpenAIClient:
    """One model behind one endpoint. Connects on the first call, in the event loop of that call.

    The output limit is sent as `max_completion_tokens` to api.openai.com and to Azure's undated interface, whose newer
    models refuse the other name, and as `max_tokens` to everybody else. Keys are sent to the endpoint and nowhere else:
    redirects are not followed, and their text is replaced in everything that is recorded, and so is the login of a
    proxy. `wall_clock` (Unix time) reads a Retry-After that is a date.
    """

    def __init__(
        self, spec: ModelAgent, *, keys: Sequence[Key] = (), wall_clock: Callable[[], float] = time.time
    ) -> None:
        if spec.base_url is None:
            raise UsageError(f"model {spec.model!r} needs a base_url, such as 'http://localhost:8000/v1'")
        base = _parsed(spec.base_url)
        self._url = (base / "chat/completions").with_query(base.query)
        self._host = host_of(base)
        self._keys = Keys(keys)
        proxy = proxy_for(spec.base_url)
        self._redaction = Redaction(self._keys.texts, [proxy] if proxy else [])
        provider, _, name = spec.model.partition("/")
        self._headers = {None: dict(spec.headers)} | {key: _headers(provider, key, spec) for key in keys}
        undated = base.host == "api.openai.com" or (provider == "azure" and base.path.endswith("/openai/v1"))
        self._writer = RequestWriter(name, spec.params, "max_completion_tokens" if undated else "max_tokens")
        self._http = Http(spec.pacing, self._redaction)
        self._wall_clock = wall_clock

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One request, and another for each key that is refused while there are more of them.

        Raises:
            ProviderError: as `refusal` lists them, and timeout, connection, malformed_response and
                response_too_large.
        """
        content = self._writer.write(request)
        while True:
            key = self._keys.next()
            outcome = self._read(await self._http.send("POST", self._url, content, self._headers[key]))
            if isinstance(outcome, ModelReply):
                return outcome
            if outcome.filtered:
                return ModelReply(text="", finish_reason="content-filter")
            if not (outcome.of_the_key and self._keys.refused(key, str(outcome.error(self._host)))):
                raise outcome.error(self._host, hint(key))

    async def close(self) -> None:
        """Close every connection; may be called more than once."""
        await self._http.close()

    def _read(self, answer: Answer) -> ModelReply | Refusal:
        if answer.status >= 300:
            return read_refusal(*answer, self._redaction.message, now=self._wall_clock())
        try:
            value: Any = json_text.parse(answer.body)
        except ValueError as e:
            text = self._redaction.message(answer.body[:4096].decode("utf-8", "replace"))[:200]
            page = "; is base_url right? It often ends in /v1" if text.lstrip()[:1] == "<" else ""
            raise self._malformed(f"the reply is not JSON: {text!r}{page}") from e
        if not isinstance(value, dict):
            raise self._malformed("the reply is not a JSON object")
        error = failure(value)
        if error is not None:
            return read_error(error, self._redaction.message)
        try:
            return read_reply(value, answer.request_id, self._redaction.answer)
        except MalformedReply as e:
            raise self._malformed(str(e)) from e

    def _malformed(self, what: str) -> ProviderError:
        message = f"{self._host}: {self._redaction.message(what)}"
        return ProviderError(message, type="malformed_response", retryable=True)


def _headers(provider: str, key: Key, spec: ModelAgent) -> dict[str, str]:
    secret = {"api-key": key.text} if provider == "azure" else {"Authorization": f"Bearer {key.text}"}
    return {**spec.headers, **secret}


def _parsed(base_url: str) -> URL:
    try:
        return URL(base_url)
    except ValueError as e:
        raise UsageError(
            f"base_url {address_shown(base_url)!r} is not an address like 'http://localhost:8000/v1'"
        ) from e
