"""The client for providers with protocols of their own, through litellm. The only module that imports it.

litellm translates a request into the provider's protocol and its answer back. Everything else is ours, because its own
costs half of its processor time or hides what happened: requests go over our connections, failures are read from the
provider's answers, nothing is logged, priced or asked again, and no exception of litellm's leaves this module (they
cannot be unpickled).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import httpx
from yarl import URL

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest
from trunchray.adapters.models.http import Answer, Http, host_of
from trunchray.adapters.models.keys import Key, Keys, hint
from trunchray.adapters.models.providers import litellm_name
from trunchray.adapters.models.proxy import proxies
from trunchray.adapters.models.redaction import Redaction
from trunchray.adapters.models.refusal import Refusal, read_error, read_refusal, retry_after
from trunchray.adapters.models.wire import MalformedReply, failure, function_of, read_reply, unpacked
from trunchray.core.agent import ModelAgent
from trunchray.errors import ProviderError, UsageError

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else importing it fetches a table of prices
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file
    "LITELLM_OFFLINE_MODE": "true",
}
_CONTROLS = frozenset(
    {"api_base", "base_url", "cache", "caching", "callbacks", "client", "custom_llm_provider", "fallbacks"}
    | {"context_window_fallback_dict", "max_retries", "mock_response", "mock_tool_calls", "model_list", "num_retries"}
    | {"shared_session", "timeout"}
)
"""Arguments of litellm's that say how to ask, and not what."""

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")
_SHORTEST_SECRET = 16
"""Characters of an environment variable's value that is taken for a secret."""
_NO_CREDENTIALS = re.compile(r"locate credentials|default credentials|api[_ ]?key|authenticat", re.IGNORECASE)
_HOP = frozenset({"accept-encoding", "connection", "content-encoding", "content-length", "host", "transfer-encoding"})
"""Headers that belong to a connection, not to what is said over it."""
_DROPPED = _HOP | {"location"}
"""Of an answer: without the last one, a redirect is not followed."""


class _Library(NamedTuple):
    """What is used of litellm."""

    complete: Callable[..., Any]
    """`acompletion` without the layers around it, which log, price, cache and repeat."""
    record: Callable[[str], Any]
    """What it notes of one call of a model: nothing."""
    timeout: type[Exception]


@cache
def load() -> _Library:
    """Import litellm, which takes seconds; without any network."""
    os.environ.update(_ENVIRONMENT)
    import litellm  # noqa: PLC0415 - see above
    from litellm.litellm_core_utils.litellm_logging import Logging  # noqa: PLC0415
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler  # noqa: PLC0415

    class Silent(Logging):
        """A record of a call that takes none."""

        def pre_call(self, *_args: Any, **_named: Any) -> None: ...
        def post_call(self, *_args: Any, **_named: Any) -> None: ...

    def record(model: str) -> Silent:
        return Silent(model, [], False, "acompletion", datetime.now(), "", "")  # noqa: FBT003 - its signature

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings: Any = litellm
    settings.suppress_debug_info = True
    settings.turn_off_message_logging = True
    settings.drop_params = False
    settings.num_retries = 0
    # Every client that it makes from now on, its own and those of OpenAI's library, sends through our connections.
    handler: Any = AsyncHTTPHandler
    handler.create_async_transport = staticmethod(lambda *_args, **_named: _Transport())
    handler.create_httpx_proxy_mounts = staticmethod(lambda *_args, **_named: None)
    settings.aclient_session = httpx.AsyncClient(transport=_Transport(), trust_env=False)
    return _Library(inspect.unwrap(settings.acompletion), record, settings.Timeout)


def prepare() -> None:
    """Import litellm and rehearse a call, without any network: the first one costs as much time as hundreds later.

    Not in a thread that runs an event loop.
    """
    asyncio.run(_rehearse(load()))


class LiteLLMClient:
    """One model of any provider that litellm knows. Connects on the first call, in the event loop of that call.

    Keys, proxies' logins and what the environment holds of secrets are replaced in everything that is recorded.
    """

    def __init__(
        self,
        spec: ModelAgent,
        *,
        keys: Sequence[Key] = (),
        environ: Mapping[str, str] = {},
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        params = unpacked(spec.params)
        taken = sorted(name for name in params if name in _CONTROLS or name.startswith("litellm_"))
        if taken:
            raise UsageError(f"model {spec.model!r}: params may not set {', '.join(taken)}, which are trunchray's own")
        self._model = litellm_name(spec.model)
        self._provider = self._model.partition("/")[0]
        self._keys = Keys(keys)
        ambient = (text for name, text in environ.items() if _SECRET.search(name) and len(text) >= _SHORTEST_SECRET)
        self._redaction = Redaction({*self._keys.texts, *ambient}, proxies())
        self._pacing, self._wall_clock = spec.pacing, wall_clock
        self._http = Http(spec.pacing, self._redaction)
        self._fixed: dict[str, Any] = {"model": self._model, "timeout": spec.pacing.timeout, "api_base": spec.base_url}
        self._fixed |= {"extra_headers": dict(spec.headers) or None, "num_retries": 0, "max_retries": 0, **params}
        self._limited = bool({"max_tokens", "max_completion_tokens"} & params.keys())

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One request, and another for each key that is refused while there are more of them.

        Raises:
            ProviderError: as `refusal` lists them, and timeout, connection, malformed_response and
                response_too_large.
        """
        while True:
            key = self._keys.next()
            exchange = _Exchange(self._http)
            outcome = await self._ask(request, key, exchange)
            if isinstance(outcome, ModelReply):
                return outcome
            if outcome.filtered:
                return ModelReply(text="", finish_reason="content-filter")
            host = exchange.host or self._provider
            if not (outcome.of_the_key and self._keys.refused(key, str(outcome.error(host)))):
                raise outcome.error(host, hint(key) if key else "")

    async def close(self) -> None:
        """Close every connection; may be called more than once."""
        await self._http.close()

    async def _ask(self, request: ModelRequest, key: Key | None, exchange: _Exchange) -> ModelReply | Refusal:
        library = load()
        token = _EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(self._pacing.timeout):
                reply = await library.complete(**self._arguments(request, key, library))
        except Exception as e:  # whatever litellm makes of it: what the provider said decides
            return self._failed(e, exchange, library)
        finally:
            _EXCHANGE.reset(token)
        return self._reply(reply, exchange)

    def _arguments(self, request: ModelRequest, key: Key | None, library: _Library) -> dict[str, Any]:
        # A copy, because some adapters change what they are given; written and read, so that it is well-formed.
        messages = json_text.parse(json_text.dump(request.messages))
        asked = {**self._fixed, "messages": messages, "litellm_logging_obj": library.record(self._model)}
        if not self._limited:
            asked["max_tokens"] = request.max_output_tokens
        if request.tools:
            asked["tools"] = [function_of(tool) for tool in request.tools]
        if request.response_format is not None:
            asked["response_format"] = dict(request.response_format)
        if key is not None:
            asked["api_key"] = key.text
        return asked

    def _reply(self, reply: Any, exchange: _Exchange) -> ModelReply | Refusal:
        body = _object(exchange.answer)
        if "choices" in body:  # OpenAI's protocol, in which litellm takes some failures for answers
            error = failure(body)
            if error is not None:
                return read_error(error, self._redaction.message)
        else:
            body = _translated(reply, body)
        try:
            return read_reply(body, exchange.answer.request_id if exchange.answer else None, self._redaction.answer)
        except MalformedReply as e:
            raise self._malformed(str(e), exchange) from e

    def _failed(self, error: Exception, exchange: _Exchange, library: _Library) -> Refusal:
        if exchange.error is not None:
            raise exchange.error from None
        answer = exchange.answer
        if isinstance(error, TimeoutError | library.timeout) and (answer is None or answer.status < 300):
            message = f"{self._provider}, through litellm: no answer in {self._pacing.timeout:g} s"
            raise ProviderError(message, type="timeout", retryable=True) from None
        if answer is None:
            raise self._not_sent(error) from None
        if answer.status >= 300:
            return read_refusal(*answer, self._redaction.message, now=self._wall_clock())
        stated = _object(answer).get("error")
        if stated:
            return read_error(stated, self._redaction.message)
        text = answer.body[:4096].decode("utf-8", "replace")
        raise self._malformed(f"the reply cannot be read: {self._redaction.message(text)[:200]!r}", exchange) from None

    def _not_sent(self, error: Exception) -> ProviderError:
        """Refused by litellm itself, without credentials, or sent over connections that are not ours."""
        message = " ".join(self._redaction.message(str(error).partition("\nTraceback")[0]).split())[:300]
        status: Any = getattr(error, "status_code", None)
        headers = getattr(error, "litellm_response_headers", None) or {}
        if not isinstance(status, int) or not 400 <= status < 600:
            status = 500
        if _NO_CREDENTIALS.search(message):
            status = 401
        elif _caused_by(error, ImportError):
            status = 400
        refusal = Refusal(status, "", message, retry_after(headers, now=self._wall_clock()))
        return ProviderError(
            f"{self._provider}, through litellm: {message}",
            type=refusal.type,
            retryable=refusal.retryable,
            retry_after=refusal.retry_after,
        )

    def _malformed(self, what: str, exchange: _Exchange) -> ProviderError:
        host = exchange.host or self._provider
        return ProviderError(f"{host}: {what}", type="malformed_response", retryable=True)


class _Exchange:
    """What one call sent and got over HTTP; `error` when it got nothing. Of several requests the last one counts."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.host: str | None = None
        self.answer: Answer | None = None
        self.error: ProviderError | None = None

    async def send(self, request: httpx.Request) -> httpx.Response:
        url = URL(str(request.url), encoded=True)
        self.host, self.answer, self.error = host_of(url), None, None
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        try:
            answer = await self._http.send(request.method, url, await request.aread() or None, headers)
        except ProviderError as e:
            self.error = e
            raise httpx.ReadError(str(e), request=request) from e
        self.answer = answer
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _DROPPED]
        return httpx.Response(answer.status, headers=kept, content=answer.body, request=request)


_EXCHANGE: ContextVar[_Exchange] = ContextVar("_EXCHANGE")
"""The call that a request belongs to: litellm shares its connections between all of them."""


class _Rehearsal(_Exchange):
    """Answers as a provider would, and sends nothing."""

    def __init__(self) -> None: ...

    async def send(self, request: httpx.Request) -> httpx.Response:
        content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "i", "name": "n", "input": {}}]
        body = {"id": "i", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx.Response(200, json={**body, "content": content, "usage": usage}, request=request)


async def _rehearse(library: _Library) -> None:
    token = _EXCHANGE.set(_Rehearsal())
    try:
        reply = await library.complete(
            model="anthropic/claude", messages=[{"role": "user", "content": "x"}], api_key="none", max_tokens=1,
            num_retries=0, max_retries=0, litellm_logging_obj=library.record("claude"),
        )  # fmt: skip
    finally:
        _EXCHANGE.reset(token)
    _translated(reply, {})


class _Transport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _EXCHANGE.get(None)
        if exchange is None:
            raise httpx.ReadError("no model is being asked", request=request)
        return await exchange.send(request)


def _translated(reply: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What litellm made of a reply, without what it made up: an id, and counts of tokens that nobody counted."""
    body: dict[str, Any] = reply.model_dump(warnings=False)
    usage = body.get("usage") or {}
    counted = usage.get("prompt_tokens") or usage.get("completion_tokens")
    return {**body, "id": raw.get("id") or raw.get("responseId"), "usage": usage if counted else None}


def _object(answer: Answer | None) -> dict[str, Any]:
    """The JSON object in an answer; empty when it is none."""
    try:
        value = json_text.parse(answer.body) if answer else None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _caused_by(error: BaseException | None, kind: type[Exception]) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
