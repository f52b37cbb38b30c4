"""The mock in process, with time injected."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunchray.adapters.models.base import ModelRequest
from trunchray.adapters.models.mock import MockClient
from trunchray.adapters.models.replay import load_replay
from trunchray.core.agent import Faults, Latency, Mock, ModelAgent, Pacing, ScriptedCall, ScriptedReply
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError, UsageError


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def request(prompt: str = "hello", *, step: int = 1, **more: Any) -> ModelRequest:
    return ModelRequest(({"role": "user", "content": prompt},), 16, "case-1", step=step, **more)


def client(model: str = "mock/echo", clock: Clock | None = None, **mock: Any) -> MockClient:
    spec = ModelAgent(name="m", model=model, mock=Mock(**mock), pacing=Pacing(timeout=30))
    return MockClient(spec, sleep=(clock or Clock()).sleep)


async def test_echo_answers_with_the_last_user_message() -> None:
    """The echo is deterministic, names its model and request, and estimates tokens."""
    messages = (
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "sec"}, {"type": "text", "text": "ond"}]},
    )
    reply = await client().complete(ModelRequest(messages, 16, "case-1", attempt=2))
    assert (reply.text, reply.finish_reason, reply.model) == ("second", "stop", "mock/echo")
    assert reply.request_id == "mock-case-1-2.1.0"
    assert reply.usage == Usage(input_tokens=5, output_tokens=2)


async def test_echo_of_half_an_emoji_is_well_formed() -> None:
    """A lone surrogate in a prompt never reaches what is stored."""
    assert (await client().complete(request("x\ud83d"))).text == "x\ufffd"


async def test_script_gives_the_nth_reply_to_the_nth_call() -> None:
    """The last reply is given from then on; tool calls carry raw argument text."""
    replies = (
        ScriptedReply(tool_calls=(ScriptedCall(name="add", arguments={"a": 1}), ScriptedCall(name="x", arguments="{"))),
        ScriptedReply(text="3", finish_reason="length"),
    )
    mock = client("mock/script", script=replies)
    first, second, third = [await mock.complete(request(step=step)) for step in (1, 2, 3)]
    assert [(call.id, call.name, call.arguments) for call in first.tool_calls] == [
        ("call_1_1", "add", '{"a":1}'),
        ("call_1_2", "x", "{"),
    ]
    assert (first.text, first.finish_reason) == ("", "tool-calls")
    assert (second.text, second.finish_reason) == (third.text, third.finish_reason) == ("3", "length")


async def test_replay_gives_calls_with_the_first_model_call_only() -> None:
    """A tool loop over a recorded trial ends: later calls get the recorded text alone, and usage counts once."""
    row = b'{"case_id": "case-1", "output": "done", "tool_calls": [{"name": "f"}], "usage": {"input_tokens": 9}}'
    mock = MockClient(ModelAgent(name="m", model="mock/replay"), replay=load_replay(row, "r"))
    first, second = [await mock.complete(request(step=step)) for step in (1, 2)]
    assert (first.text, len(first.tool_calls), first.usage) == ("done", 1, Usage(input_tokens=9))
    assert (second.text, second.tool_calls, second.finish_reason, second.usage) == ("done", (), "stop", Usage())


async def test_case_without_recorded_output_is_a_provider_error() -> None:
    """The error names the case and attempt and says what to add; trying again would not help."""
    mock = MockClient(
        ModelAgent(name="m", model="mock/replay"), replay=load_replay(b'{"case_id": "other", "output": ""}', "r")
    )
    with pytest.raises(
        ProviderError, match=r"case 'case-1', attempt 1: add a line \{\"case_id\": \"case-1\""
    ) as caught:
        await mock.complete(request())
    assert (caught.value.type, caught.value.retryable) == ("no_recorded_output", False)
    assert "choose another --run-id, because with other outputs it is another model" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "type", "slept", "retry_after"),
    [
        ("rate_limited", "rate_limited", [], 2.5),
        ("rate_limited_silently", "rate_limited", [], None),
        ("server_error", "server_error", [0.1], None),
        ("timeout", "timeout", [30], None),
        ("malformed", "malformed_response", [0.1], None),
    ],
)
async def test_faults(kind: str, type: str, slept: list[float], retry_after: float | None) -> None:
    """Each fault is the retryable provider error that the real one would be, after the time that it would take."""
    clock = Clock()
    faults = Faults.model_validate({kind: 1, "retry_after": 2.5})
    mock = client(clock=clock, latency=Latency(p50=0.1, p99=0.1), faults=faults)
    with pytest.raises(ProviderError) as caught:
        await mock.complete(request())
    error = caught.value
    assert (error.type, error.retryable, error.retry_after, clock.slept) == (type, True, retry_after, slept)


async def test_results_do_not_depend_on_order() -> None:
    """The same requests meet the same latencies and faults in any order, from any client."""
    settings: dict[str, Any] = {"latency": Latency(p50=0.1, p99=1), "faults": Faults(server_error=0.5), "seed": 3}

    async def outcome(mock: MockClient, clock: Clock, case: int) -> tuple[int, str, float]:
        try:
            reply = await mock.complete(ModelRequest(({"role": "user", "content": "x"},), 16, f"case-{case}"))
        except ProviderError as error:
            return case, str(error), clock.slept[-1]
        return case, reply.text, clock.slept[-1]

    async def outcomes(order: list[int]) -> list[tuple[int, str, float]]:
        clock = Clock()
        mock = client(clock=clock, **settings)
        return sorted([await outcome(mock, clock, case) for case in order])

    forward = await outcomes(list(range(40)))
    assert forward == await outcomes(list(reversed(range(40))))
    assert len({text for _, text, _ in forward}) > 1


async def test_without_latency_nothing_is_awaited() -> None:
    """A calm mock answers without giving up control, so a batch of them costs no scheduling."""
    order: list[str] = []
    other = asyncio.create_task(asyncio.sleep(0))
    other.add_done_callback(lambda _: order.append("other"))
    await client().complete(request())
    order.append("reply")
    await other
    assert order[0] == "reply"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"model": "mock/script"}, "mock/script needs mock.script"),
        ({"model": "mock/replay"}, "mock/replay needs recorded outputs"),
        ({"model": "mock/ecoh"}, "did you mean 'mock/echo'"),
        ({"model": "openai/gpt"}, "is not a mock"),
        ({"model": "mock/echo", "base_url": "http://localhost"}, "answers inside trunchray"),
    ],
)
def test_impossible_mocks_are_refused(spec: dict[str, Any], message: str) -> None:
    """A mock with nothing to play is refused when it is built, with what is missing."""
    with pytest.raises(UsageError, match=message):
        MockClient(ModelAgent(name="m", **spec))
