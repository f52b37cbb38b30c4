"""The OpenAI chat format, as bytes and as our nouns. Pure: no sockets, no clock.

Format: https://platform.openai.com/docs/api-reference/chat, and what compatible servers do differently.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest, ReplyToken, RequestedCall, ToolDefinition
from trunchray.core.trial import FinishReason, Usage

Clean = Callable[[str], str]
"""Makes text from outside safe to record: well-formed, and without the key."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "content-filter": "content-filter",
    "tool_calls": "tool-calls",
    "tool-calls": "tool-calls",
    "function_call": "tool-calls",
    "error": "error",
}


MOST_TOKENS = 2**53
"""More than any call can take, and no more than every reader of a number holds exactly."""

_FAILED = frozenset({"error", "abort"})


class MalformedReply(ValueError):
    """The body is not a chat completion; the message says what is missing."""


def finish_reason(raw: object) -> FinishReason:
    """Ours for a provider's word; "other" for a word we do not know and for none."""
    return FINISH_REASONS.get(raw, "other") if isinstance(raw, str) else "other"


def failure(body: Mapping[str, Any]) -> object:
    """The error that a parsed body with a good status reports, however much of an answer stands beside it; else None.

    Gateways report what broke behind them in an `error` of the body or of its first choice, or only in its reason to
    finish. An answer that the content filter stopped is none of these.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    raw = choice.get("finish_reason")
    if finish_reason(raw) == "content-filter":
        return None
    error = body.get("error") or choice.get("error")
    if error:
        return error
    return f"the answer was given up (finish_reason {raw!r})" if isinstance(raw, str) and raw in _FAILED else None


def token_count(value: object) -> int | None:
    """A number of tokens as others report it; None for what is no integer from 0 to `MOST_TOKENS`."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


class RequestWriter:
    """Writes requests to one model; everything that is the same in all of them is encoded once.

    `limit_field` is what the endpoint calls the limit on output tokens. A limit in `params`, under either name, is sent
    instead of the one of the request.
    """

    def __init__(self, model: str, params: Mapping[str, JsonValue], limit_field: str) -> None:
        fields = unpacked(params)
        self._head = json_text.dump({"model": model, **fields})[:-1]
        self._limit = None if {"max_tokens", "max_completion_tokens"} & fields.keys() else limit_field.encode()

    def write(self, request: ModelRequest) -> bytes:
        """The body of one request."""
        parts = [self._head, b',"messages":', json_text.dump(request.messages)]
        if self._limit is not None:
            parts.append(b',"%s":%d' % (self._limit, request.max_output_tokens))
        if request.tools:
            parts += b',"tools":', json_text.dump([function_of(tool) for tool in request.tools])
        if request.response_format is not None:
            parts += b',"response_format":', json_text.dump(request.response_format)
        parts.append(b"}")
        return b"".join(parts)


def unpacked(params: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The request fields of `params`, those inside `extra_body` among them."""
    extra = params.get("extra_body")
    fields = {name: value for name, value in params.items() if name != "extra_body"}
    return fields | extra if isinstance(extra, dict) else fields


def read_reply(body: Mapping[str, Any], request_id: str | None, clean: Clean) -> ModelReply:
    """The reply in a parsed body. `request_id` comes from the headers; without it the body's own id is taken.

    Raises:
        MalformedReply: there is no choice with a message in it, or nothing in the message and no reason to finish.
    """
    choice, message = _first_choice(body)
    if _says_nothing(choice, message):
        raise MalformedReply("the first choice has no content, no tool calls and no finish_reason")
    identity = request_id or body.get("id")
    model = body.get("model")
    return ModelReply(
        text=clean(_text(message.get("content"))),
        finish_reason=finish_reason(choice.get("finish_reason")),
        tool_calls=_calls(message, clean) if "tool_calls" in message or "function_call" in message else (),
        usage=_usage(body.get("usage")),
        model=clean(model) if isinstance(model, str) else None,
        request_id=clean(identity)[:200] if isinstance(identity, str) else None,
        tokens=_tokens(choice["logprobs"], clean) if choice.get("logprobs") else (),
    )


def function_of(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _first_choice(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise MalformedReply("the reply has no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise MalformedReply("the first choice has no message")
    return choice, message


def _says_nothing(choice: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls") or message.get("function_call")
    return message.get("content") is None and not calls and choice.get("finish_reason") is None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") in ("text", None)]
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: Mapping[str, Any], clean: Clean) -> tuple[RequestedCall, ...]:
    listed = message.get("tool_calls") or []
    legacy = message.get("function_call")
    if not listed and legacy:
        listed = [{"function": legacy}]
    if not isinstance(listed, list):
        raise MalformedReply("tool_calls is not a list")
    calls = [_call(call, place, clean) for place, call in enumerate(listed, start=1)]
    return tuple(_distinct(calls))


def _distinct(calls: list[RequestedCall]) -> list[RequestedCall]:
    """Calls whose ids differ: a model that uses one twice must not make the provider refuse what it said itself."""
    seen: Counter[str] = Counter()
    out: list[RequestedCall] = []
    for call in calls:
        seen[call.id] += 1
        out.append(call if seen[call.id] == 1 else replace(call, id=f"{call.id}_{seen[call.id]}"))
    return out


def _call(call: object, place: int, clean: Clean) -> RequestedCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise MalformedReply(f"tool call {place} has no function")
    identity, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    return RequestedCall(
        id=clean(identity) if isinstance(identity, str) and identity else f"call_{place}",
        name=clean(name) if isinstance(name, str) else "",
        arguments=_clean_arguments(arguments_text(arguments), clean),
    )


def _clean_arguments(text: str, clean: Clean) -> str:
    """Also where JSON escapes hide what is to be cleaned; otherwise the text stays as the model wrote it."""
    text = clean(text)
    if "\\" not in text:
        return text
    try:
        value = json_text.parse(text)
    except ValueError:
        return text
    cleaned = _clean_strings(value, clean)
    return text if cleaned == value else json_text.dump(cleaned).decode()


def _clean_strings(value: JsonValue, clean: Clean) -> JsonValue:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_strings(item, clean) for item in value]
    if isinstance(value, dict):
        return {clean(name): _clean_strings(item, clean) for name, item in value.items()}
    return value


def _tokens(raw: object, clean: Clean) -> tuple[ReplyToken, ...]:
    """The tokens with their log-probabilities; none when any of them is not as it should be."""
    listed = raw.get("content") if isinstance(raw, dict) else None
    if not isinstance(listed, list):
        return ()
    try:
        return tuple(ReplyToken(clean(item["token"]), _likeliest(item, clean)) for item in listed)
    except (KeyError, TypeError, AttributeError, UnicodeError):
        return ()


def _likeliest(item: Mapping[str, Any], clean: Clean) -> tuple[tuple[str, float], ...]:
    found = [(entry["token"], entry["logprob"]) for entry in item.get("top_logprobs") or ()]
    return tuple(
        (clean(token), float(logprob))
        for token, logprob in found
        if isinstance(logprob, int | float) and math.isfinite(logprob)
    )


def arguments_text(arguments: JsonValue) -> str:
    """The raw text of a call's arguments: some servers send the value itself, or null."""
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else json_text.dump(arguments).decode()


def _usage(raw: object) -> Usage:
    if not isinstance(raw, dict):
        return Usage()
    cached = _count(raw.get("prompt_tokens_details"), "cached_tokens")
    read, written = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    thought = _count(raw.get("completion_tokens_details"), "reasoning_tokens")
    if read is not None and written is not None and thought and _count(raw, "total_tokens") == read + written + thought:
        written += thought  # xAI counts them apart; everybody else, and we, as part of the output
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_input_tokens=_count(raw, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning_tokens=thought,
    )


def _count(raw: object, name: str) -> int | None:
    return token_count(raw.get(name)) if isinstance(raw, dict) else None
