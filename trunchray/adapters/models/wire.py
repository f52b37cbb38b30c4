"""The OpenAI chat format, as bytes and as our nouns. Pure: no sockets, no clock.

Format: https://platform.openai.com/docs/api-reference/chat, and what compatible servers do differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall, ToolDefinition
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


class MalformedReply(ValueError):
    """The body is not a chat completion; the message says what is missing."""


def finish_reason(raw: object) -> FinishReason:
    """Ours for a provider's word; "other" for a word we do not know and for none."""
    return FINISH_REASONS.get(raw, "other") if isinstance(raw, str) else "other"


class RequestWriter:
    """Writes requests to one model; everything that is the same in all of them is encoded once.

    `limit_field` is what the endpoint calls the limit on output tokens. A limit in `params`, under either name, is sent
    instead of the one of the request.
    """

    def __init__(self, model: str, params: Mapping[str, JsonValue], limit_field: str) -> None:
        self._head = json_text.dump({"model": model, **params})[:-1]
        self._limit = None if {"max_tokens", "max_completion_tokens"} & params.keys() else limit_field.encode()

    def write(self, request: ModelRequest) -> bytes:
        """The body of one request."""
        parts = [self._head, b',"messages":', json_text.dump(request.messages)]
        if self._limit is not None:
            parts.append(b',"%s":%d' % (self._limit, request.max_output_tokens))
        if request.tools:
            parts += b',"tools":', json_text.dump([_function(tool) for tool in request.tools])
        parts.append(b"}")
        return b"".join(parts)


def read_reply(body: Mapping[str, Any], request_id: str | None, clean: Clean) -> ModelReply:
    """The reply in a parsed body. `request_id` comes from the headers; without it the body's own id is taken.

    Raises:
        MalformedReply: there is no choice with a message in it.
    """
    choice, message = _first_choice(body)
    identity = request_id or body.get("id")
    model = body.get("model")
    return ModelReply(
        text=clean(_text(message.get("content"))),
        finish_reason=finish_reason(choice.get("finish_reason")),
        tool_calls=_calls(message, clean) if "tool_calls" in message or "function_call" in message else (),
        usage=_usage(body.get("usage")),
        model=clean(model) if isinstance(model, str) else None,
        request_id=clean(identity)[:200] if isinstance(identity, str) else None,
    )


def _function(tool: ToolDefinition) -> dict[str, Any]:
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
    return tuple(_call(call, place, clean) for place, call in enumerate(listed, start=1))


def _call(call: object, place: int, clean: Clean) -> RequestedCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise MalformedReply(f"tool call {place} has no function")
    identity, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    return RequestedCall(
        id=clean(identity) if isinstance(identity, str) and identity else f"call_{place}",
        name=clean(name) if isinstance(name, str) else "",
        arguments=clean(arguments_text(arguments)),
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
    return Usage(
        input_tokens=_count(raw, "prompt_tokens"),
        output_tokens=_count(raw, "completion_tokens"),
        cached_input_tokens=_count(raw, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning_tokens=_count(raw.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(raw: object, name: str) -> int | None:
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
