"""What is said in one trial: the messages so far, and the trace they leave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall
from trunchray.adapters.models.retry import Completed
from trunchray.adapters.sandbox.tools import ToolOutcome
from trunchray.core.agent import ModelAgent, SystemPrompt
from trunchray.core.case import CaseInput
from trunchray.core.trial import Step, ToolCall, Trace


def opening(case: CaseInput, placement: SystemPrompt = "system") -> list[dict[str, Any]]:
    """The chat messages a case begins with, its system prompt where the model takes it."""
    if case.system_prompt is None:
        return [{"role": "user", "content": case.prompt}]
    if placement == "user":
        return [{"role": "user", "content": f"{case.system_prompt}\n\n{case.prompt}"}]
    return [{"role": placement, "content": case.system_prompt}, {"role": "user", "content": case.prompt}]


@dataclass(slots=True)
class Conversation:
    """One trial's messages and record.

    `seconds` is the time spent in requests, `waited` between their tries, `tools_seconds` in tools.
    """

    spec: ModelAgent
    messages: list[dict[str, Any]]
    replies: list[ModelReply] = field(default_factory=list[ModelReply])
    steps: list[Step] = field(default_factory=list[Step])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    retries: int = 0
    waited: float = 0
    seconds: float = 0
    tools_seconds: float = 0
    hits: set[int] = field(default_factory=set[int])
    """Which replies, from 0, came from the cache."""

    @property
    def last(self) -> ModelReply:
        return self.replies[-1]

    def replied(self, request: ModelRequest, completed: Completed, elapsed: float) -> None:
        """One model call, `elapsed` seconds long with all its tries and waits."""
        reply = completed.reply
        if completed.cached:
            self.hits.add(len(self.replies))
        self.replies.append(reply)
        self.steps.append(_model_step(self.spec.model, request, completed))
        self.retries += completed.retries
        self.waited += completed.waited
        self.seconds += max(0.0, elapsed - completed.waited)
        if reply.tool_calls:
            self.messages.append(_assistant(reply))

    def answered(self, calls: Sequence[RequestedCall], outcomes: Sequence[ToolOutcome], elapsed: float) -> None:
        """The calls of the last reply with what came of them, in its order; they took `elapsed` seconds together."""
        self.tools_seconds += elapsed
        for call, outcome in zip(calls, outcomes, strict=True):
            self.calls.append(_observed(call, outcome))
            self.steps.append(_tool_step(call, outcome))
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": _shown(outcome.shown)})

    def limited(self, name: str, value: float | None) -> None:
        """A limit that was reached."""
        self.steps.append(Step(kind="limit", name=name, input=value))

    def trace(self) -> Trace:
        costs = [self._cost(place) for place in range(len(self.replies))]
        known = [usd for usd in costs if usd is not None]
        return Trace(
            output=self.last.text,
            finish_reason=self.last.finish_reason,
            tool_calls=tuple(self.calls),
            steps=tuple(self.steps),
            usage=sum((reply.usage for reply in self.replies[1:]), self.replies[0].usage),
            cost_usd=sum(known) if len(known) == len(costs) else None,
            model=self.last.model,
            request_id=self.last.request_id,
            retries=self.retries,
            waited=self.waited,
            model_seconds=self.seconds,
            tools_seconds=self.tools_seconds,
            cache_hits=len(self.hits),
            saved_tokens=sum(self.replies[place].usage.total_tokens for place in self.hits),
        )

    def _cost(self, place: int) -> float | None:
        """US dollars of a reply, counted from 0; None when the price or the number of tokens is unknown."""
        if place in self.hits:
            return 0.0
        price = self.spec.price
        return price.cost(self.replies[place].usage) if price else None


def _assistant(reply: ModelReply) -> dict[str, Any]:
    """A reply with calls, as the next request repeats it."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in reply.tool_calls
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls}


def _observed(call: RequestedCall, outcome: ToolOutcome) -> ToolCall:
    """The call as the model sent it, for grading."""
    return ToolCall(
        tool_call_id=call.id,
        tool_name=call.name,
        input=json_text.parse_arguments(call.arguments),
        output=outcome.output,
        error=outcome.error,
    )


def _model_step(model: str, request: ModelRequest, completed: Completed) -> Step:
    """The request in numbers (its messages are in the release and in earlier steps), the reply in full."""
    reply = completed.reply
    asked: dict[str, JsonValue] = {"messages": len(request.messages), "maxOutputTokens": request.max_output_tokens}
    if request.tools:
        asked["tools"] = [tool.name for tool in request.tools]
    said: dict[str, JsonValue] = {
        "text": reply.text,
        "finishReason": reply.finish_reason,
        "usage": reply.usage.model_dump(mode="json", exclude_none=True),
    }
    if reply.tool_calls:
        said["toolCalls"] = [
            {"toolCallId": call.id, "toolName": call.name, "arguments": call.arguments} for call in reply.tool_calls
        ]
    if completed.cached:
        said["cached"] = True
    return Step(kind="model", name=model, input=asked, output=said)


def _tool_step(call: RequestedCall, outcome: ToolOutcome) -> Step:
    """The call with the input that the tool got, and what the model was shown."""
    return Step(
        kind="tool",
        name=call.name,
        input={"toolCallId": call.id, "input": outcome.input},
        output=outcome.shown,
    )


def _shown(shown: dict[str, JsonValue]) -> str:
    """A tool's result as the text of a chat message."""
    value = shown.get("value")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
