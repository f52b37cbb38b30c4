"""What every model client does alike: the mock in process, and the real clients against the same mock over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Protocol

import pytest

from trunchray.adapters.models.base import ModelClient, ModelReply, ModelRequest, RequestedCall, ToolDefinition
from trunchray.adapters.models.chance import Chance
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.litellm import LiteLLMClient
from trunchray.adapters.models.mock import MockClient
from trunchray.adapters.models.openai import OpenAIClient
from trunchray.adapters.models.replay import load_replay
from trunchray.adapters.models.retry import complete_with_retries
from trunchray.adapters.models.server import serve
from trunchray.core.agent import Faults, Latency, Mock, ModelAgent, Pacing, ScriptedCall, ScriptedReply
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError

PACING = Pacing()
CASES = [f"case-{n}" for n in range(40)]
PROMPTS = {f"prompt of {case}": case for case in CASES}
FAULTS = Faults(rate_limited=0.1, rate_limited_silently=0.1, server_error=0.2, malformed=0.1, retry_after=0)


class Connect(Protocol):
    def __call__(
        self, model: str, *, recorded: bytes | None = None, pacing: Pacing = ..., **mock: Any
    ) -> AbstractAsyncContextManager[ModelClient]: ...


@asynccontextmanager
async def in_process(
    model: str, *, recorded: bytes | None = None, pacing: Pacing = PACING, **mock: Any
) -> AsyncGenerator[ModelClient]:
    spec = ModelAgent(name="m", model=model, mock=Mock(**mock), pacing=pacing)
    client = MockClient(spec, replay=load_replay(recorded, "recorded") if recorded else None)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def over_http(
    make: Callable[[ModelAgent], ModelClient],
    model: str,
    *,
    recorded: bytes | None = None,
    pacing: Pacing = PACING,
    **mock: Any,
) -> AsyncGenerator[ModelClient]:
    served = ModelAgent(name="m", model=model, mock=Mock(**mock), pacing=pacing)
    replay = load_replay(recorded, "recorded") if recorded else None
    async with serve(served, replay=replay, prompts=PROMPTS) as url:
        client = make(ModelAgent(name="m", model="openai/m", base_url=url, pacing=pacing))
        try:
            yield client
        finally:
            await client.close()


CLIENTS = {
    "in process": in_process,
    "openai": partial(over_http, OpenAIClient),
    "litellm": partial(over_http, partial(LiteLLMClient, keys=[Key("ANY", "any")])),
}


@pytest.fixture(params=CLIENTS)
def connect(request: pytest.FixtureRequest) -> Connect:
    if request.param == "litellm":
        request.getfixturevalue("litellm")
    return CLIENTS[request.param]


def request(case_id: str = "case-0", **more: Any) -> ModelRequest:
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": f"prompt of {case_id}"})
    return ModelRequest(messages, 64, case_id, **more)


def recorded(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


async def with_retries(client: ModelClient, asked: ModelRequest, pacing: Pacing) -> tuple[str, int]:
    done = await complete_with_retries(
        client, asked, pacing, clock=asyncio.get_running_loop().time, sleep=asyncio.sleep, uniform=lambda _low, _high: 0
    )
    return done.reply.text, done.retries


async def test_echo(connect: Connect) -> None:
    """Text, finish reason, usage, model and request id arrive."""
    async with connect("mock/echo") as client:
        assert await client.complete(request()) == ModelReply(
            text="prompt of case-0",
            finish_reason="stop",
            usage=Usage(input_tokens=7, output_tokens=4),
            model="mock/echo",
            request_id="mock-case-0-1.1.0",
        )


async def test_any_text_survives(connect: Connect) -> None:
    """Every kind of character comes back as it was sent; half a surrogate pair as U+FFFD."""
    text = 'é 😀 \u2028 \x00 \x7f "quoted" \\ \r\n\t \ufeff'
    async with connect("mock/echo") as client:
        for sent, returned in ((text, text), ("x\ud83d", "x\ufffd"), ("", "")):
            reply = await client.complete(ModelRequest(({"role": "user", "content": sent},), 64, "case-0"))
            assert reply.text == returned


async def test_script_follows_the_conversation(connect: Connect) -> None:
    """Each model call of a trial gets the next reply, tool calls with their raw arguments, the last one again."""
    replies = (
        ScriptedReply(tool_calls=(ScriptedCall(name="add", arguments={"a": 1}), ScriptedCall(name="b", arguments="{"))),
        ScriptedReply(text="3"),
    )
    async with connect("mock/script", script=replies) as client:
        texts: list[str] = []
        messages = request().messages
        for step in (1, 2, 3):
            reply = await client.complete(ModelRequest(messages, 64, "case-0", step=step))
            texts.append(reply.text)
            messages = (*messages, {"role": "assistant", "content": reply.text})
            if step == 1:
                calls = (RequestedCall("call_1_1", "add", '{"a":1}'), RequestedCall("call_1_2", "b", "{"))
                assert (reply.tool_calls, reply.finish_reason) == (calls, "tool-calls")
        assert texts == ["", "3", "3"]


async def test_a_conversation_with_tools(connect: Connect) -> None:
    """Tools are offered, calls come back, and their results go on to the next request, three times over."""
    call = ScriptedReply(tool_calls=(ScriptedCall(name="add", arguments={"a": 1}),))
    tool = ToolDefinition("add", "Adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
    async with connect("mock/script", script=(call, call, ScriptedReply(text="2"))) as client:
        messages, made, texts = request().messages, [], []
        for step in (1, 2, 3):
            reply = await client.complete(ModelRequest(messages, 64, "case-0", step=step, tools=(tool,)))
            texts.append(reply.text)
            made += [(each.id, each.name, each.arguments) for each in reply.tool_calls]
            said = [
                {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
                for each in reply.tool_calls
            ]
            results = [{"role": "tool", "tool_call_id": each.id, "content": "1"} for each in reply.tool_calls]
            messages = (*messages, {"role": "assistant", "content": None, "tool_calls": said}, *results)
    assert texts == ["", "", "2"]
    assert made == [("call_1_1", "add", '{"a":1}'), ("call_2_1", "add", '{"a":1}')]


@pytest.mark.parametrize("reason", ["stop", "length", "content-filter", "tool-calls", "other"])
async def test_finish_reasons(connect: Connect, reason: str) -> None:
    """Every finish reason arrives as it is, also with an empty answer."""
    async with connect("mock/script", script=(ScriptedReply.model_validate({"finish_reason": reason}),)) as client:
        reply = await client.complete(request())
        assert (reply.text, reply.finish_reason) == ("", reason)


async def test_an_answer_that_was_given_up_is_an_error(connect: Connect) -> None:
    """What finished with an error is the provider's failure, never graded as what the model said."""
    given_up = (ScriptedReply(text="par", finish_reason="error"),)
    async with connect("mock/script", script=given_up) as client:
        with pytest.raises(ProviderError, match="finish_reason 'error'") as caught:
            await client.complete(request())
    assert caught.value.type == "server_error"


async def test_replay(connect: Connect) -> None:
    """Recorded outputs come back with their calls, finish reason and usage, attempt by attempt."""
    usage = {"input_tokens": 5, "output_tokens": 6, "cached_input_tokens": 1, "reasoning_tokens": 2}
    call = {"name": "add", "arguments": '{"a": 1}', "id": "c1"}
    rows = [
        {"case_id": "case-0", "output": "plain"},
        {"case_id": "case-1", "attempt": 1, "output": "first", "tool_calls": [call], "usage": usage},
        {"case_id": "case-1", "attempt": 2, "output": "second", "finish_reason": "length"},
    ]
    async with connect("mock/replay", recorded=recorded(*rows)) as client:
        plain = await client.complete(request("case-0"))
        first, second = [await client.complete(request("case-1", attempt=attempt)) for attempt in (1, 2)]
    assert (plain.text, plain.finish_reason) == ("plain", "stop")
    assert (first.text, first.tool_calls) == ("first", (RequestedCall("c1", "add", '{"a": 1}'),))
    assert first.usage == Usage(**usage)
    assert (second.text, second.finish_reason) == ("second", "length")


async def test_case_that_was_not_recorded(connect: Connect) -> None:
    """The error names the case, and is not worth a retry."""
    async with connect("mock/replay", recorded=recorded({"case_id": "other", "output": ""})) as client:
        with pytest.raises(ProviderError, match="no recorded output for case 'case-0', attempt 1") as caught:
            await client.complete(request())
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("kind", "type", "retry_after"),
    [
        ("rate_limited", "rate_limited", 2.5),
        ("rate_limited_silently", "rate_limited", None),
        ("server_error", "server_error", None),
        ("timeout", "timeout", None),
        ("malformed", "malformed_response", None),
    ],
)
async def test_faults(connect: Connect, kind: str, type: str, retry_after: float | None) -> None:
    """Each fault is the same provider error, with the same advice."""
    faults = Faults.model_validate({kind: 1, "retry_after": 2.5})
    pacing = Pacing(timeout=0.1 if kind == "timeout" else 30)
    async with connect("mock/echo", faults=faults, pacing=pacing) as client:
        with pytest.raises(ProviderError) as caught:
            await client.complete(request())
    error = caught.value
    assert (error.type, error.retryable, error.retry_after) == (type, True, retry_after)


@pytest.mark.parametrize("kind", ["rate_limited", "rate_limited_silently", "server_error", "timeout", "malformed"])
async def test_retries_recover_from_faults(connect: Connect, kind: str) -> None:
    """With half of the requests failing, every call ends in its answer."""
    patience = 0.1 if connect is in_process else 1  # a busy machine answers within that
    pacing = Pacing(timeout=patience if kind == "timeout" else 30, max_retries=30)
    cases = CASES[:3] if kind == "timeout" else CASES[:12]
    faults = Faults.model_validate({kind: 0.5, "retry_after": 0})
    async with connect("mock/echo", faults=faults, pacing=pacing) as client:
        answers = await asyncio.gather(*(with_retries(client, request(case), pacing) for case in cases))
    assert [text for text, _ in answers] == [f"prompt of {case}" for case in cases]
    assert any(retries for _, retries in answers)


async def test_faults_are_deterministic(connect: Connect) -> None:
    """The same seed gives every case the same number of retries, in any order and on every client."""
    pacing = Pacing(max_retries=30)

    async def retries(cases: list[str], seed: int) -> dict[str, int]:
        async with connect("mock/echo", faults=FAULTS, seed=seed, pacing=pacing) as client:
            answers = await asyncio.gather(*(with_retries(client, request(case), pacing) for case in cases))
        return {case: count for case, (_, count) in zip(cases, answers, strict=True)}

    async with in_process("mock/echo", faults=FAULTS, seed=1, pacing=pacing) as reference:
        expected = {case: (await with_retries(reference, request(case), pacing))[1] for case in CASES}
    assert await retries(CASES, 1) == await retries(CASES[::-1], 1) == expected
    assert await retries(CASES, 2) != expected


async def test_200_requests_in_flight(connect: Connect) -> None:
    """All are in flight together, and each gets its own answer."""
    count = 200
    pacing = Pacing(max_in_flight=count)
    latency = Latency(p50=0.3, p99=0.3)
    async with connect("mock/echo", latency=latency, pacing=pacing) as client:
        in_flight = most = 0

        async def ask(number: int) -> str:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            reply = await client.complete(ModelRequest(({"role": "user", "content": str(number)},), 64, f"n-{number}"))
            in_flight -= 1
            return reply.text

        assert await asyncio.gather(*map(ask, range(count))) == [str(number) for number in range(count)]
    assert most == count


async def test_cancelled_requests_leave_the_client_usable(connect: Connect) -> None:
    """Cancelling requests that hang disturbs no other, before or after."""
    faults = Faults(timeout=0.4)
    drawn = {case: Chance(Mock(faults=faults), 120).draw(request(case)).fault for case in CASES}
    async with connect("mock/echo", faults=faults) as client:
        asked = {case: asyncio.create_task(client.complete(request(case))) for case in CASES[:20]}
        answered = await asyncio.gather(*(task for case, task in asked.items() if drawn[case] is None))
        hanging = [task for case, task in asked.items() if drawn[case] is not None]
        for task in hanging:
            task.cancel()
        cancelled = await asyncio.gather(*hanging, return_exceptions=True)
        calm = [case for case in CASES[20:] if drawn[case] is None]
        after = await asyncio.gather(*(client.complete(request(case)) for case in calm))
    assert len(answered) + len(cancelled) == 20
    assert {type(result) for result in cancelled} == {asyncio.CancelledError}
    assert [reply.text for reply in after] == [f"prompt of {case}" for case in calm]


async def test_closing_twice_is_harmless(connect: Connect) -> None:
    """A client may be closed before it was used, and again."""
    async with connect("mock/echo") as client:
        await client.close()
        await client.close()
