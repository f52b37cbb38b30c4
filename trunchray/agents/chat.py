"""A model, asked directly: system prompt and prompt in, answer out."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelClient, ModelReply, ModelRequest, RequestedCall
from trunchray.adapters.models.retry import Completed, complete_with_retries
from trunchray.core.agent import ModelAgent, Price
from trunchray.core.case import CaseInput
from trunchray.core.trial import Step, ToolCall, Trace, Usage


class ChatAgent:
    """Puts a case's prompts to one model and records what it answers.

    A tool call ends the trial: it is recorded as refused, and what it is worth is for grading to say. `clock` is
    monotonic, in seconds; `sleep` and `uniform` are how waits between tries pass and are drawn.
    """

    def __init__(
        self,
        spec: ModelAgent,
        client: ModelClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._spec = spec
        self._client = client
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """One trial.

        Raises:
            ProviderError: the provider failed, also after retries.
        """
        talk = _Conversation(self._spec, opening(case))
        reply = await self._ask(talk, case_id, attempt)
        talk.refuse(reply.tool_calls)
        return talk.trace(reply)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _ask(self, talk: _Conversation, case_id: str, attempt: int) -> ModelReply:
        request = ModelRequest(
            tuple(talk.messages), self._spec.limits.max_output_tokens, case_id, attempt, step=len(talk.replies) + 1
        )
        started = self._clock()
        completed = await complete_with_retries(
            self._client, request, self._spec.pacing, clock=self._clock, sleep=self._sleep, uniform=self._uniform
        )
        talk.record(request, completed, self._clock() - started)
        return completed.reply


def opening(case: CaseInput) -> list[dict[str, Any]]:
    """The chat messages a case begins with."""
    system = [] if case.system_prompt is None else [{"role": "system", "content": case.system_prompt}]
    return [*system, {"role": "user", "content": case.prompt}]


def cost(usage: Usage, price: Price | None) -> float | None:
    """US dollars; None when the price or the number of tokens is unknown."""
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return (usage.input_tokens * price.input + usage.output_tokens * price.output) / 1e6


@dataclass(slots=True)
class _Conversation:
    """What has been said in one trial. `seconds` and `waited` are the time in requests, and between them."""

    spec: ModelAgent
    messages: list[dict[str, Any]]
    replies: list[ModelReply] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    retries: int = 0
    waited: float = 0
    seconds: float = 0

    def record(self, request: ModelRequest, completed: Completed, elapsed: float) -> None:
        """One model call, `elapsed` seconds long with all its tries and waits."""
        self.replies.append(completed.reply)
        self.steps.append(_model_step(self.spec.model, request, completed.reply))
        self.retries += completed.retries
        self.waited += completed.waited
        self.seconds += max(0.0, elapsed - completed.waited)

    def refuse(self, calls: tuple[RequestedCall, ...]) -> None:
        """Calls of tools that the model was never offered."""
        self.calls += [_observed(call, error=f"tool {call.name!r} is not available") for call in calls]

    def trace(self, last: ModelReply) -> Trace:
        costs = [cost(reply.usage, self.spec.price) for reply in self.replies]
        known = [usd for usd in costs if usd is not None]
        return Trace(
            output=last.text,
            finish_reason=last.finish_reason,
            tool_calls=tuple(self.calls),
            steps=tuple(self.steps),
            usage=sum((reply.usage for reply in self.replies[1:]), self.replies[0].usage),
            cost_usd=sum(known) if len(known) == len(costs) else None,
            model=last.model,
            request_id=last.request_id,
            retries=self.retries,
            waited=self.waited,
            model_seconds=self.seconds,
        )


def _observed(call: RequestedCall, *, error: str) -> ToolCall:
    parsed = json_text.parse_arguments(call.arguments)
    return ToolCall(tool_call_id=call.id, tool_name=call.name, input=parsed, error=error)


def _model_step(model: str, request: ModelRequest, reply: ModelReply) -> Step:
    """The request in numbers (its messages are in the release), the reply in full."""
    asked: dict[str, JsonValue] = {"messages": len(request.messages), "maxOutputTokens": request.max_output_tokens}
    said: dict[str, JsonValue] = {
        "text": reply.text,
        "finishReason": reply.finish_reason,
        "usage": reply.usage.model_dump(mode="json", exclude_none=True),
    }
    if reply.tool_calls:
        said["toolCalls"] = [
            {"toolCallId": call.id, "toolName": call.name, "arguments": call.arguments} for call in reply.tool_calls
        ]
    return Step(kind="model", name=model, input=asked, output=said)
