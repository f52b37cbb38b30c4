"""A model with tools: prompts in, its calls executed, until it answers without calling or a limit is reached."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from math import inf

from trunchray.adapters.models.base import ModelClient, ModelRequest, RequestedCall, ToolDefinition
from trunchray.adapters.models.cache import ReplyCache, request_key
from trunchray.adapters.models.json_text import parse_arguments
from trunchray.adapters.models.retry import WALL, Admission, Completed, Open, complete_with_retries
from trunchray.adapters.sandbox.tools import ToolOutcome
from trunchray.agents.conversation import Conversation, opening
from trunchray.agents.toolbox import Toolbox, TrialTools
from trunchray.core.agent import ModelAgent
from trunchray.core.case import CaseInput
from trunchray.core.trial import Trace
from trunchray.errors import ProviderError, TrialError


class ChatAgent:
    """Puts a case's prompts to one model, executes the tools it calls, and records everything.

    The calls of one reply run concurrently. Reaching a limit is the model's doing and ends in grading: after
    `max_steps` model calls the last reply is the answer; calls over `max_tool_calls` are answered with an error, and
    the model may still answer within its steps; after `wall` seconds the last reply is the answer, and what is under
    way is cancelled. A provider failed that has not replied even once by then, or whose tries had failed before the
    one that is cancelled. What the cache knows is not asked; everything else waits for `admission`. `clock` is
    monotonic, in seconds; `sleep` and `uniform` are how waits between tries pass and are drawn.
    """

    def __init__(
        self,
        spec: ModelAgent,
        client: ModelClient,
        toolbox: Toolbox,
        *,
        admission: Admission | None = None,
        cache: ReplyCache | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._spec = spec
        self._client = client
        self._toolbox = toolbox
        self._admission = admission or Open()
        self._cache = cache
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """One trial. An error carries the trace so far, when the model has replied.

        Raises:
            ProviderError: the provider failed, also after retries.
            ToolError: the process of the trial's tools died.
            SandboxError: it could not be started.
        """
        talk = Conversation(self._spec, opening(case, self._spec.system_prompt))
        offered = self._toolbox.definitions(case.tools)
        tools = self._toolbox.open(case.tools)
        try:
            while await self._step(talk, offered, tools, case_id, attempt):
                pass
        except TrialError as error:
            error.trace = talk.trace() if talk.replies else None
            raise
        finally:
            await tools.close()
        return talk.trace()

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _step(
        self, talk: Conversation, offered: tuple[ToolDefinition, ...], tools: TrialTools, case_id: str, attempt: int
    ) -> bool:
        """One model call and the tool calls it asks for; whether another step follows."""
        before = tuple(talk.messages)
        step = len(talk.replies) + 1
        request = ModelRequest(before, self._spec.limits.max_output_tokens, case_id, attempt, step=step, tools=offered)
        started = self._clock()
        try:
            completed = await self._complete(request, self._left(talk))
        except ProviderError as error:
            if error.type != WALL or not talk.replies:
                raise
            return self._out_of_time(talk, self._clock() - started)
        talk.replied(request, completed, self._clock() - started)
        calls = completed.reply.tool_calls
        if not calls:
            return False
        started = self._clock()
        outcomes, in_time = await self._execute(talk, calls, tools, before)
        talk.answered(calls, outcomes, self._clock() - started)
        if not in_time:
            return self._out_of_time(talk, 0)
        if step == self._spec.limits.max_steps:
            talk.limited("max_steps", step)
            return False
        return True

    def _left(self, talk: Conversation) -> float | None:
        """Seconds that the trial still has; None when it has any number."""
        wall = self._spec.limits.wall
        return None if wall is None else max(0.0, wall - talk.seconds - talk.tools_seconds)

    def _out_of_time(self, talk: Conversation, seconds: float) -> bool:
        """The wall was reached in a model call that had taken so many seconds; the trial ends."""
        talk.seconds += seconds
        talk.limited("wall", self._spec.limits.wall)
        return False

    async def _complete(self, request: ModelRequest, left: float | None) -> Completed:
        """What the cache knows, or else what the model says within the `left` seconds."""
        key = request_key(self._spec, request) if self._cache else None
        if self._cache and key and (known := await self._cache.find(key)):
            return Completed(known, cached=True)
        completed = await complete_with_retries(
            self._client,
            request,
            self._spec.pacing,
            admission=self._admission,
            wall=inf if left is None else left,
            clock=self._clock,
            sleep=self._sleep,
            uniform=self._uniform,
        )
        if self._cache and key:
            await self._cache.keep(key, completed.reply)
        return completed

    async def _execute(
        self, talk: Conversation, calls: Sequence[RequestedCall], tools: TrialTools, before: Sequence[dict[str, object]]
    ) -> tuple[list[ToolOutcome], bool]:
        """What came of each call, in order, and whether all ended in time; those over the limit are not executed."""
        limit = self._spec.limits.max_tool_calls
        allowed = max(0, limit - len(talk.calls))
        if len(calls) > allowed:
            talk.limited("max_tool_calls", limit)
        running = [asyncio.ensure_future(tools.call(call, before)) for call in calls[:allowed]]
        in_time = True
        try:
            async with asyncio.timeout(self._left(talk)):
                await asyncio.gather(*running)
        except TimeoutError:
            in_time = False
        ended = [
            _cut_short(call) if task.cancelled() else task.result() for call, task in zip(calls, running, strict=False)
        ]
        return [*ended, *(_over_limit(call, limit) for call in calls[allowed:])], in_time


def _over_limit(call: RequestedCall, limit: int) -> ToolOutcome:
    error = f"The limit of {limit} tool calls is reached; this call was not executed. Answer without further calls."
    return ToolOutcome(call.arguments, {"type": "error-text", "value": error}, error=error, invalid=True)


def _cut_short(call: RequestedCall) -> ToolOutcome:
    error = "The time of the trial, limits.wall, was over before this call had ended."
    return ToolOutcome(parse_arguments(call.arguments), {"type": "error-text", "value": error}, error=error)
