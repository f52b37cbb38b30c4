"""Models that live inside trunchray: offline, deterministic, free.

- `mock/echo` answers with the last user message.
- `mock/script` gives the n-th of its scripted replies to the n-th model call of a trial, the last one from then on.
- `mock/replay` gives recorded outputs. Recorded tool calls come with a trial's first model call only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall
from trunchray.adapters.models.chance import Chance, Draw
from trunchray.adapters.models.providers import is_mock, resolve
from trunchray.adapters.models.replay import Replay
from trunchray.adapters.models.wire import arguments_text
from trunchray.core.agent import Faults, Mock, ModelAgent, ScriptedReply
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError, UsageError


class MockClient:
    """One mock model. `sleep` is how latency and timeouts pass; without latency and faults nothing is awaited.

    Raises:
        UsageError: the spec is not one of a mock, or what the mock plays is missing.
    """

    def __init__(
        self,
        spec: ModelAgent,
        *,
        replay: Replay | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        mock = spec.mock or Mock()
        self.model = spec.model
        self._answer = _answers(spec, mock, replay)
        self._chance = Chance(mock, spec.pacing.timeout)
        self._faults = mock.faults
        self._sleep = sleep

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One try; a drawn fault is raised as the provider error it stands for.

        Raises:
            ProviderError: a drawn fault; no_recorded_output, naming the case; or server_error, where what is played is
                an answer that the provider gave up. That one is not worth a retry: it would be the same again.
        """
        draw = self.draw(request)
        if draw.fault or draw.seconds:
            await self._meet(draw)
        reply = self.answer(request)
        if reply.finish_reason == "error":
            which = f"case {request.case_id!r}, attempt {request.attempt}"
            raise ProviderError(f"{self.model}: {which} has finish_reason 'error': no answer", type="server_error")
        return reply

    async def close(self) -> None:
        """Nothing is open."""

    def draw(self, request: ModelRequest) -> Draw:
        """How long this request takes, and what goes wrong with it."""
        return self._chance.draw(request)

    def answer(self, request: ModelRequest) -> ModelReply:
        """What the model says when nothing goes wrong on the way, also where its finish reason is "error".

        Raises:
            ProviderError: no_recorded_output.
        """
        text, reason, calls, usage = self._answer(request)
        identity = f"mock-{request.case_id}-{request.attempt}.{request.step}.{request.retry}"
        return ModelReply(text, reason, calls, usage, self.model, identity)

    async def _meet(self, draw: Draw) -> None:
        if draw.seconds:
            await self._sleep(draw.seconds)
        if draw.fault:
            raise _error(draw, self._faults)


_Answer = tuple[str, Any, tuple[RequestedCall, ...], Usage]


def _answers(spec: ModelAgent, mock: Mock, replay: Replay | None) -> Callable[[ModelRequest], _Answer]:
    if not is_mock(spec.model):
        raise UsageError(f"model {spec.model!r} is not a mock")
    resolve(spec.model, spec.base_url)
    match spec.model.partition("/")[2]:
        case "script":
            if not mock.script:
                raise UsageError(f"agent {spec.name!r}: mock/script needs mock.script, a list of replies")
            return _Script(mock.script)
        case "replay":
            if replay is None:
                raise UsageError(f"agent {spec.name!r}: mock/replay needs recorded outputs: name their file as replay")
            return _Player(replay)
        case _:
            return _echo


def _echo(request: ModelRequest) -> _Answer:
    text = last_user_text(request.messages)
    return text, "stop", (), _estimated(request, text, ())


class _Script:
    def __init__(self, replies: tuple[ScriptedReply, ...]) -> None:
        self._replies = [(reply, _scripted_calls(reply, step)) for step, reply in enumerate(replies, start=1)]

    def __call__(self, request: ModelRequest) -> _Answer:
        reply, calls = self._replies[min(request.step, len(self._replies)) - 1]
        reason = reply.finish_reason or ("tool-calls" if calls else "stop")
        return reply.text, reason, calls, _estimated(request, reply.text, calls)


class _Player:
    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def __call__(self, request: ModelRequest) -> _Answer:
        row = self._replay.find(request.case_id, request.attempt)
        if row is None:
            which = f"case {request.case_id!r}, attempt {request.attempt}"
            raise ProviderError(
                f'mock/replay has no recorded output for {which}: add a line {{"case_id": "{request.case_id}", '
                '"output": …} to the recorded outputs, and choose another --run-id, because with other outputs it is '
                "another model",
                type="no_recorded_output",
            )
        if request.step > 1:
            return row.text, "stop", (), Usage()
        usage = row.usage or _estimated(request, row.text, row.tool_calls)
        return row.text, row.finish_reason, row.tool_calls, usage


def _scripted_calls(reply: ScriptedReply, step: int) -> tuple[RequestedCall, ...]:
    return tuple(
        RequestedCall(f"call_{step}_{place}", call.name, arguments_text(call.arguments))
        for place, call in enumerate(reply.tool_calls, start=1)
    )


def message_text(message: Mapping[str, Any]) -> str:
    """The text of a chat message, whose content is a string, a list of parts, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return json_text.well_formed(content)
    texts = [part.get("text") for part in content or () if isinstance(part, dict)]
    return json_text.well_formed("".join(text for text in texts if isinstance(text, str)))


def last_user_text(messages: tuple[Mapping[str, Any], ...]) -> str:
    """The text of the last user message; empty when there is none."""
    return next((message_text(message) for message in reversed(messages) if message.get("role") == "user"), "")


def _estimated(request: ModelRequest, text: str, calls: tuple[RequestedCall, ...]) -> Usage:
    """About four characters a token: enough to test budgets with, and the same everywhere."""
    read = sum(len(message_text(message)) for message in request.messages)
    written = len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
    return Usage(input_tokens=-(-read // 4), output_tokens=-(-written // 4))


def _error(draw: Draw, faults: Faults) -> ProviderError:
    match draw.fault:
        case "rate_limited":
            wait = faults.retry_after
            return ProviderError("mock answered 429", type="rate_limited", retryable=True, retry_after=wait)
        case "rate_limited_silently":
            return ProviderError("mock answered 429", type="rate_limited", retryable=True)
        case "server_error":
            return ProviderError(f"mock answered {draw.status}", type="server_error", retryable=True)
        case "timeout":
            return ProviderError(f"mock: no answer in {draw.seconds:g} s", type="timeout", retryable=True)
        case _:
            return ProviderError("mock: the reply is not JSON", type="malformed_response", retryable=True)
