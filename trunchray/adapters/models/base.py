"""What every model client is: one method that turns a request into a reply, or raises `ProviderError`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import JsonValue

from trunchray.core.trial import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool the model may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    `messages` are OpenAI chat messages (role, content, tool_calls, tool_call_id). `case_id`, `attempt` (from 1) and
    `step` (from 1, the n-th model call of the trial) say which call this is; clients that send requests to a provider
    never send them.
    """

    messages: tuple[dict[str, Any], ...]
    max_output_tokens: int
    case_id: str
    attempt: int = 1
    step: int = 1
    tools: tuple[ToolDefinition, ...] = ()
    retry: int = 0
    """0 for the first try, then the number of the retry."""
    response_format: dict[str, JsonValue] | None = None
    """OpenAI's field of that name, for models whose params do not have it; None: it is not sent."""


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as the model wrote it; `arguments` is raw text, valid JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReplyToken:
    """One token of a reply, and the likeliest tokens in its place with the natural logarithms of their probabilities.

    Providers give a handful of them, likeliest first; the token that was taken need not be among them.
    """

    text: str
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the provider returned. `usage` has None where the provider was silent."""

    text: str
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    request_id: str | None = None
    tokens: tuple[ReplyToken, ...] = ()
    """Those of the text, where log-probabilities were asked for and given; none otherwise."""


class ModelClient(Protocol):
    """One model behind one endpoint; safe to share between concurrent trials of one event loop."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One try, without retries.

        Raises:
            ProviderError: the provider failed; `retryable` and `retry_after` say whether and when to try again.
        """
        ...

    async def close(self) -> None:
        """Give back connections; the client is not used afterwards."""
        ...
