"""The agent that asks a model directly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall
from trunchray.adapters.models.mock import MockClient
from trunchray.agents.base import build_agent
from trunchray.agents.chat import ChatAgent
from trunchray.agents.toolbox import Toolbox
from trunchray.core.agent import Limits, Mock, ModelAgent, Price, ScriptedReply
from trunchray.core.case import CaseInput
from trunchray.core.trial import FinishReason, ToolCall, Trace, Usage
from trunchray.errors import ProviderError

CASE = CaseInput(prompt="2 + 2?", system_prompt="Be brief.")


@dataclass
class Provider:
    """Gives one outcome after another; each try takes two seconds, each wait what it says."""

    outcomes: list[ModelReply | ProviderError]
    now: float = 0
    seen: list[ModelRequest] = field(default_factory=list)
    closed: int = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.seen.append(request)
        self.now += 2
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    async def close(self) -> None:
        self.closed += 1

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def agent(provider: Provider, **spec: Any) -> ChatAgent:
    model = ModelAgent(name="m", model="mock/echo", **spec)
    return ChatAgent(
        model, provider, Toolbox(), clock=lambda: provider.now, sleep=provider.sleep, uniform=lambda _low, high: high
    )


async def test_prompts_become_messages() -> None:
    """The system prompt comes first, and the request says which call of which trial it is."""
    provider = Provider([ModelReply("4"), ModelReply("4")])
    asking = agent(provider, limits=Limits(max_output_tokens=77))
    await asking.run(CASE, case_id="sum", attempt=3)
    await asking.run(CaseInput(prompt="hi"), case_id="hi", attempt=1)
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"})
    assert provider.seen[0] == ModelRequest(messages, 77, "sum", attempt=3, step=1)
    assert provider.seen[1].messages == ({"role": "user", "content": "hi"},)


@pytest.mark.parametrize(
    ("placement", "messages"),
    [
        ("developer", ({"role": "developer", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"})),
        ("user", ({"role": "user", "content": "Be brief.\n\n2 + 2?"},)),
    ],
)
async def test_system_prompts_go_where_the_model_takes_them(placement: str, messages: tuple[object, ...]) -> None:
    """Some models take them from a developer only, and some only before the prompt; without one nothing changes."""
    provider = Provider([ModelReply("4"), ModelReply("4")])
    asking = agent(provider, system_prompt=placement)
    await asking.run(CASE, case_id="sum", attempt=1)
    await asking.run(CaseInput(prompt="hi"), case_id="hi", attempt=1)
    assert provider.seen[0].messages == messages
    assert provider.seen[1].messages == ({"role": "user", "content": "hi"},)


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (Price(input=2, output=10), Usage(input_tokens=1000, output_tokens=100, cached_input_tokens=900), 0.003),
        (
            Price(input=2, output=10, cached_input=0.5),
            Usage(input_tokens=1000, output_tokens=100, cached_input_tokens=900),
            0.00165,
        ),
        (
            Price(input=2, output=10, reasoning=20),
            Usage(input_tokens=1000, output_tokens=100, reasoning_tokens=50),
            0.0035,
        ),
        (Price(input=2, output=10, cached_input=0), Usage(input_tokens=5, output_tokens=0, cached_input_tokens=9), 0),
        (Price(input=2, output=10), Usage(output_tokens=100), None),
    ],
)
def test_prices(price: Price, usage: Usage, dollars: float | None) -> None:
    """Kept input and thoughts cost what the price says, or as much as the rest; uncounted tokens are unknown."""
    assert price.cost(usage) == (None if dollars is None else pytest.approx(dollars))


async def test_trace_tells_what_happened() -> None:
    """Answer, usage, cost, identity and times of a call that needed one retry."""
    usage = Usage(input_tokens=1000, output_tokens=100)
    limited = ProviderError("slow down", type="rate_limited", retryable=True, retry_after=8)
    provider = Provider([limited, ModelReply("4", usage=usage, model="gpt-x", request_id="req-1")])
    trace = await agent(provider, price=Price(input=2, output=10)).run(CASE, case_id="sum", attempt=1)
    assert (trace.output, trace.finish_reason, trace.usage) == ("4", "stop", usage)
    assert trace.cost_usd == pytest.approx(0.003)
    assert (trace.model, trace.request_id) == ("gpt-x", "req-1")
    assert (trace.retries, trace.waited, trace.model_seconds, trace.tools_seconds) == (1, 8.5, 4, 0)
    [step] = trace.steps
    assert (step.kind, step.name) == ("model", "mock/echo")
    assert step.input == {"messages": 2, "maxOutputTokens": 4096}
    said = {"text": "4", "finishReason": "stop", "usage": {"inputTokens": 1000, "outputTokens": 100}}
    assert step.output == said


@pytest.mark.parametrize(
    ("price", "usage"),
    [
        (None, Usage(input_tokens=1, output_tokens=1)),
        (Price(input=1, output=1), Usage()),
        (Price(input=1, output=1), Usage(input_tokens=1)),
    ],
)
async def test_unknown_cost_is_none(price: Price | None, usage: Usage) -> None:
    """Without a price or without all tokens there is no cost, and never a cost of 0."""
    provider = Provider([ModelReply("4", usage=usage)])
    assert (await agent(provider, price=price).run(CASE, case_id="sum", attempt=1)).cost_usd is None


@pytest.mark.parametrize("reason", ["stop", "length", "content-filter", "error", "other"])
async def test_what_a_model_does_is_never_an_error(reason: FinishReason) -> None:
    """An empty answer, a filter and a length stop go on to grading."""
    provider = Provider([ModelReply("", finish_reason=reason)])
    trace = await agent(provider).run(CASE, case_id="sum", attempt=1)
    assert (trace.output, trace.finish_reason) == ("", reason)


async def test_calls_of_tools_that_do_not_exist_are_answered() -> None:
    """In order, arguments parsed where they are JSON, each with the reason; the model sees it and answers."""
    arguments = ['{"a": [1, 2.5]}', '{"a": ', "", "[1]", "NaN", '{"a": 1e999}', "[" * 9999, '"\\ud83d"']
    calls = tuple(RequestedCall(f"c{n}", "add", text) for n, text in enumerate(arguments))
    provider = Provider([ModelReply("", "tool-calls", calls), ModelReply("4")])
    trace = await agent(provider).run(CASE, case_id="sum", attempt=1)
    inputs = [{"a": [1, 2.5]}, '{"a": ', {}, [1], "NaN", '{"a": 1e999}', "[" * 9999, "\ufffd"]
    unknown = "Model tried to call unavailable tool 'add'. No tools are available."
    assert trace.tool_calls == tuple(
        ToolCall(tool_call_id=f"c{n}", tool_name="add", input=value, error=unknown) for n, value in enumerate(inputs)
    )
    assert (trace.output, trace.finish_reason) == ("4", "stop")
    output: Any = trace.steps[0].output
    assert output["toolCalls"][1] == {"toolCallId": "c1", "toolName": "add", "arguments": '{"a": '}
    assert [step.kind for step in trace.steps] == ["model", *["tool"] * 8, "model"]
    second = provider.seen[1]
    assert second.step == 2
    assert second.messages[:2] == provider.seen[0].messages
    assert second.messages[2]["tool_calls"][2]["function"] == {"name": "add", "arguments": "{}"}
    assert second.messages[3] == {"role": "tool", "tool_call_id": "c0", "content": unknown}


async def test_the_last_step_is_the_answer() -> None:
    """A model that never stops calling is stopped by its limit, which the trace says; that is graded, not an error."""
    call = RequestedCall("c", "add", "{}")
    provider = Provider([ModelReply(f"still {n}", "tool-calls", (call,)) for n in range(5)])
    trace = await agent(provider, limits=Limits(max_steps=3)).run(CASE, case_id="sum", attempt=1)
    assert (trace.output, trace.finish_reason, len(trace.tool_calls)) == ("still 2", "tool-calls", 3)
    assert (trace.steps[-1].kind, trace.steps[-1].name, trace.steps[-1].input) == ("limit", "max_steps", 3)
    assert len(provider.seen) == 3


async def test_calls_over_the_limit_are_answered_with_an_error() -> None:
    """They are not executed, but the model sees why and may still answer; grading sees them as observed calls."""
    calls = tuple(RequestedCall(f"c{n}", "add", '{"n": 1}') for n in range(3))
    provider = Provider([ModelReply("", "tool-calls", calls), ModelReply("done")])
    trace = await agent(provider, limits=Limits(max_tool_calls=1)).run(CASE, case_id="sum", attempt=1)
    errors = [call.error or "" for call in trace.tool_calls]
    assert "unavailable" in errors[0]
    assert all("limit of 1 tool calls is reached" in error for error in errors[1:])
    assert trace.output == "done"
    assert [step.name for step in trace.steps if step.kind == "limit"] == ["max_tool_calls"]


async def test_usage_and_cost_are_summed_over_steps() -> None:
    """A trial costs what all of its model calls cost; one without a known cost makes the sum unknown."""
    call = RequestedCall("c", "add", "{}")
    usage = Usage(input_tokens=1000, output_tokens=100)
    for second, total in ((usage, 0.006), (Usage(), None)):
        provider = Provider([ModelReply("", "tool-calls", (call,), usage=usage), ModelReply("4", usage=second)])
        trace = await agent(provider, price=Price(input=2, output=10)).run(CASE, case_id="sum", attempt=1)
        assert trace.cost_usd == (None if total is None else pytest.approx(total))
    assert trace.usage == usage


async def test_provider_failure_leaves_the_trial() -> None:
    """A provider that fails for good is raised, not turned into an answer."""
    provider = Provider([ProviderError("no key", type="authentication")])
    with pytest.raises(ProviderError, match="no key"):
        await agent(provider).run(CASE, case_id="sum", attempt=1)


async def test_closing_closes_the_client() -> None:
    """An agent owns its client."""
    provider = Provider([])
    await agent(provider).close()
    assert provider.closed == 1


async def test_a_model_spec_builds_a_chat_agent() -> None:
    """From the spec alone, with real clocks, against a mock."""
    spec = ModelAgent(name="m", model="mock/script", mock=Mock(script=(ScriptedReply(text="4"),)))
    asking = build_agent(spec, MockClient(spec), Toolbox())
    trace = await asking.run(CASE, case_id="sum", attempt=1)
    await asking.close()
    assert (trace.output, trace.model, trace.usage.input_tokens) == ("4", "mock/script", 4)
    assert trace.model_seconds >= 0


async def test_what_was_paid_before_a_failure_is_kept() -> None:
    """A trial whose second call fails was asked once nonetheless; one that never got an answer has nothing to keep."""
    call = RequestedCall("c", "add", "{}")
    refused = ProviderError("no", type="bad_request")
    provider = Provider([ModelReply("", "tool-calls", (call,), usage=Usage(input_tokens=7, output_tokens=3)), refused])
    with pytest.raises(ProviderError) as caught:
        await agent(provider, price=Price(input=1, output=1)).run(CASE, case_id="sum", attempt=1)
    trace = caught.value.trace
    assert isinstance(trace, Trace)
    assert (trace.cost_usd, trace.usage.total_tokens, len(trace.tool_calls)) == (pytest.approx(1e-5), 10, 1)
    with pytest.raises(ProviderError) as caught:
        await agent(Provider([ProviderError("no", type="bad_request")])).run(CASE, case_id="sum", attempt=1)
    assert caught.value.trace is None


@dataclass
class Slow(Provider):
    """Really takes its time: as long as somebody waits for it, from the reply after the given ones on."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.outcomes:
            return await super().complete(request)
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_trial_ends_at_its_wall() -> None:
    """The call in flight is cancelled, the limit is in the record, and what the model said last is its answer."""
    asks = ModelReply("let me see", finish_reason="tool-calls", tool_calls=(RequestedCall("1", "nothing", "{}"),))
    provider = Slow([asks])
    trace = await agent(provider, limits=Limits(wall=2.01)).run(CASE, case_id="sum", attempt=1)
    assert (trace.output, trace.finish_reason) == ("let me see", "tool-calls")
    assert [(step.kind, step.name, step.input) for step in trace.steps][-1] == ("limit", "wall", 2.01)


async def test_a_model_that_never_replied_by_the_wall_failed() -> None:
    """There is nothing to grade: that is an error of the provider, and is not tried again within the trial."""
    with pytest.raises(ProviderError, match=r"limits\.wall") as caught:
        await agent(Slow([]), limits=Limits(wall=0.01)).run(CASE, case_id="sum", attempt=1)
    assert (caught.value.type, caught.value.retryable) == ("wall_limit", True)


async def test_a_provider_that_failed_until_the_wall_failed() -> None:
    """Its trouble has taken the time, so that the model's last words are not its answer."""
    asks = ModelReply("let me see", finish_reason="tool-calls", tool_calls=(RequestedCall("1", "nothing", "{}"),))
    provider = Slow([asks, ProviderError("503", type="server_error", retryable=True)])
    with pytest.raises(ProviderError, match=r"limits\.wall allows; before that: 503") as caught:
        await agent(provider, limits=Limits(wall=4.01)).run(CASE, case_id="sum", attempt=1)
    assert (caught.value.type, caught.value.retryable) == ("server_error", True)
    assert caught.value.trace
    assert caught.value.trace.output == "let me see"


async def test_a_try_that_the_wall_cuts_short_is_no_refusal() -> None:
    """Whoever paces requests is told of the refusals that there were, and of no others."""
    heard: list[str] = []

    class Listening:
        async def enter(self) -> float:
            return 0

        def leave(self, outcome: object) -> None:
            heard.append(outcome.type if isinstance(outcome, ProviderError) else type(outcome).__name__)

    provider = Slow([ProviderError("429", type="rate_limited", retryable=True)])
    model = ModelAgent(name="m", model="mock/echo", limits=Limits(wall=2.01))
    asking = ChatAgent(
        model, provider, Toolbox(), admission=Listening(), clock=lambda: provider.now, sleep=provider.sleep
    )
    with pytest.raises(ProviderError) as caught:
        await asking.run(CASE, case_id="sum", attempt=1)
    assert (heard, caught.value.type) == (["rate_limited", "wall_limit"], "rate_limited")


async def test_waiting_for_a_rate_limit_does_not_count_toward_the_wall() -> None:
    """Only the time that the model and its tools take does; what was waited is told apart."""

    class Late:
        async def enter(self) -> float:
            return 5000

        def leave(self, outcome: object) -> None: ...

    provider = Provider([ModelReply("4")])
    spec = ModelAgent(name="m", model="mock/echo", limits=Limits(wall=3))
    asking = build_agent(spec, provider, Toolbox(), admission=Late())
    trace = await asking.run(CASE, case_id="sum", attempt=1)
    assert (trace.output, trace.waited) == ("4", 5000)


def test_a_wall_is_part_of_what_is_asked_only_when_set() -> None:
    """Limits without one have the digest they always had."""
    plain = ModelAgent(name="m", model="mock/echo")
    assert "wall" not in plain.model_dump(mode="json")["limits"]
    walled = plain.model_copy(update={"limits": Limits(wall=5)})
    assert walled.digest != plain.digest
    assert ModelAgent.model_validate(walled.model_dump(mode="json")) == walled
