"""Agents as tasks: what is sent, what is replied, and what their streams tell."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from support.places import unplaced_run
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.events import EventReader
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import as_task
from trunchray.core.case import CaseInput
from trunchray.core.record import Returned, StepRecord
from trunchray.errors import UsageError

LLM = StepRecord("llm")


async def run(task: object, value: Any = "hi") -> Returned:
    return unplaced_run(await as_task(task).run(value, CancelSignal()))


def steps_of(*events: object) -> tuple[StepRecord, ...]:
    steps = Steps()
    reader = EventReader(steps)
    for event in events:
        reader.read(event)
    return steps.records()


def model(*calls: tuple[str, str]) -> dict[str, Any]:
    """`inference.done`, its turn with these calls by id and name."""
    blocks = [{"type": "tool_call", "id": call, "name": name, "arguments": {"q": 1}} for call, name in calls]
    return {"type": "inference.done", "data": {"turn": {"content": [{"type": "text", "text": "…"}, *blocks]}}}


def named(call: str, name: str) -> dict[str, Any]:
    return {"type": "inference.tool_call.end", "data": {"callId": call, "name": name}}


def start(call: str, name: str = "search") -> dict[str, Any]:
    return {"type": "tool.start", "data": {"call": {"id": call, "name": name, "arguments": {"q": 1}}}}


def done(call: str, content: Any = "found", **more: Any) -> dict[str, Any]:
    return {"type": "tool.done", "data": {"result": {"callId": call, "content": content, **more}}}


class Replies:
    """Replies what it is given, whatever it is sent."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.sent: list[object] = []

    async def send(self, text: object) -> Any:
        self.sent.append(text)
        return self.reply


class RepliesInAThread(Replies):
    def send(self, text: object) -> Any:
        self.sent.append(text)
        return self.reply


@pytest.mark.parametrize("kind", [Replies, RepliesInAThread])
@pytest.mark.parametrize("reply", [{"type": "reply", "reply": "done"}, SimpleNamespace(type="reply", reply="done")])
async def test_the_output_is_the_reply(kind: Callable[[Any], Replies], reply: Any) -> None:
    """An agent, known by its `send`, sync or async, is sent the input, and its reply is the output."""
    agent = kind(reply)
    assert await run(agent) == Returned(output="done")
    assert agent.sent == ["hi"]


async def test_an_input_that_is_no_text_is_sent_as_its_json() -> None:
    """Agents are sent text: anything else is canonical JSON, so that the same input is always the same message."""
    agent = Replies({"type": "reply", "reply": ""})
    for value in ({"b": 1.0, "a": "é"}, [None], True, {"id": 2**60}):
        assert (await run(agent, value)).error is None
    assert agent.sent == ['{"a":"é","b":1}', "[null]", "true", '{"id":1152921504606846976}']


async def test_a_send_that_takes_a_signal_is_given_it() -> None:
    """An agent that can stop learns that it should."""

    class Agent:
        async def send(self, _text: str, *, signal: CancelSignal) -> Any:
            return {"type": "reply", "reply": signal.aborted}

    assert await run(Agent()) == Returned(output=False)


@pytest.mark.parametrize(
    ("suspended", "said"),
    [
        ({"type": "suspended"}, "suspended"),
        (SimpleNamespace(type="suspended", correlation_id="1"), "suspended"),
        ({"type": "suspended", "reason": "a person"}, "suspended: the agent waits for a person"),
        (
            {"type": "suspended", "correlationId": "1", "approvalSnapshot": {"name": "refund", "arguments": {}}},
            "suspended: the agent waits for refund",
        ),
    ],
)
async def test_an_agent_that_is_suspended_is_a_run_error(suspended: Any, said: str) -> None:
    """Whoever waits for somebody has no output."""
    assert await run(Replies(suspended)) == Returned(error=said)


@pytest.mark.parametrize("answer", ["done", None, {"reply": "done"}, {"type": "done"}, ["reply"]])
async def test_an_answer_of_another_form_is_a_run_error(answer: Any) -> None:
    """What is no reply is not guessed at; the message shows it, and what it should have been."""
    error = (await run(Replies(answer))).error or ""
    assert error.startswith(f"send returned {answer!r}; it returns ")


async def test_a_reply_without_anything_is_a_run_error() -> None:
    """A reply that says nothing at all is not an output."""
    assert "empty" in ((await run(Replies({"type": "reply"}))).error or "")


async def test_a_send_that_throws_is_a_run_error() -> None:
    """What an agent raises is the error of the run."""

    class Agent:
        async def send(self, _text: str) -> Any:
            raise ConnectionError("no model")

    assert await run(Agent()) == Returned(error="ConnectionError: no model")


async def test_a_class_in_place_of_an_agent_is_refused() -> None:
    """Who forgot to make the agent is told so before anything runs."""
    with pytest.raises(UsageError, match=r"Replies is a class: give an agent, such as Replies\(…\)"):
        as_task(Replies)


async def test_a_reply_only_agent_leaves_steps_empty() -> None:
    """Without a stream nothing is observed."""
    assert (await run(Replies({"type": "reply", "reply": "done"}))).steps == ()


def test_inference_done_is_an_llm_step() -> None:
    """A model's turn is a step without a name, its calls alone are none."""
    assert steps_of(model(), model(("1", "search"))) == (LLM, LLM)


def test_tool_start_and_done_are_one_step() -> None:
    """A call is a step with its arguments as input and its content as output, where it began."""
    calls = steps_of(model(("1", "search")), start("1"), model(), done("1", ["a"]))
    assert calls == (LLM, StepRecord("tool", "search", {"q": 1}, ["a"]), LLM)


def test_calls_at_the_same_time_are_told_apart_by_id() -> None:
    """Each end belongs to the call of its id."""
    assert steps_of(start("1", "a"), start("2", "b"), done("2", "second"), done("1", "first")) == (
        StepRecord("tool", "a", {"q": 1}, "first"),
        StepRecord("tool", "b", {"q": 1}, "second"),
    )


def test_a_tool_start_that_is_never_closed_is_still_a_step() -> None:
    """A call without an end is what the agent did, as far as is known."""
    assert steps_of(start("1")) == (StepRecord("tool", "search", {"q": 1}),)


def test_an_error_of_a_tool_is_its_error() -> None:
    """Content that is an error is not an output."""
    blocks = [{"type": "text", "text": "no "}, {"type": "text", "text": "such order"}]
    assert steps_of(start("1"), done("1", blocks, isError=True)) == (
        StepRecord("tool", "search", {"q": 1}, error="no such order"),
    )
    assert steps_of(start("1"), done("1", {"code": 3}, isError=True))[0].error == '{"code":3}'
    assert steps_of(start("1"), done("1", isError=False))[0].output == "found"


def test_a_denied_tool_named_by_the_end_of_its_call_is_recorded() -> None:
    """A policy that denies a call emits its end alone; what the model called is a step."""
    assert steps_of(named("1", "refund"), done("1", "denied", isError=True)) == (
        StepRecord("tool", "refund", error="denied"),
    )


def test_a_denied_tool_named_by_the_turn_is_recorded() -> None:
    """The block of the assistant's turn names a denied call as well, with what it was called with."""
    assert steps_of(model(("1", "refund")), done("1", "denied")) == (
        LLM,
        StepRecord("tool", "refund", {"q": 1}, "denied"),
    )


def test_a_tool_done_that_nothing_names_is_dropped() -> None:
    """An end without a beginning and without a name says nothing about what the agent did."""
    assert steps_of(model(("1", "refund")), done("2"), done("3", isError=True)) == (LLM,)


def test_a_call_is_recorded_once() -> None:
    """A second end of a call that began, or was denied, is no other call."""
    assert len(steps_of(named("1", "a"), start("1", "a"), done("1"), done("1"))) == 1
    assert len(steps_of(named("1", "a"), done("1"), done("1"))) == 1


def test_an_id_may_be_used_again() -> None:
    """Models that number the calls of each turn from 1 are understood."""
    once = (model(("1", "a")), start("1", "a"), done("1", "x"))
    assert [step.name for step in steps_of(*once, *once)] == [None, "a", None, "a"]
    assert [step.name for step in steps_of(model(("1", "a")), done("1"), model(("1", "b")), done("1"))] == [
        None,
        "a",
        None,
        "b",
    ]


def test_events_may_be_objects_with_names_of_either_kind() -> None:
    """Fields are found in mappings and objects, camelCase or snake_case, beside the type or under `data`."""
    assert steps_of(
        SimpleNamespace(type="inference.tool_call.end", call_id="1", name="a"),
        SimpleNamespace(type="tool.done", result=SimpleNamespace(call_id="1", content="no", is_error=True)),
        {"type": "tool.start", "call": {"id": 2, "name": "b", "arguments": None}},
        {"type": "tool.done", "result": {"call_id": 2, "content": "yes"}},
    ) == (StepRecord("tool", "a", error="no"), StepRecord("tool", "b", output="yes"))


@pytest.mark.parametrize(
    "event",
    [
        None,
        "tool.start",
        {},
        {"type": "inference.text.delta", "data": {"token": "a"}},
        {"type": 3},
        {"type": "tool.done"},
        {"type": "tool.done", "data": {"result": "found"}},
        {"type": "inference.tool_call.end", "data": {"callId": "1"}},
    ],
)
def test_other_events_are_passed_over(event: object) -> None:
    """What is none of these events, or says too little, is not a step."""
    assert steps_of(event) == ()


@dataclass
class Streams:
    """Tells its events to whoever listens while it is sent something, all at once."""

    events: list[Any]
    listeners: list[asyncio.Queue[Any]] = field(default_factory=list[Any])
    stopped: list[str] = field(default_factory=list[str])
    error: Exception | None = None

    async def stream(self) -> AsyncGenerator[Any]:
        listener: asyncio.Queue[Any] = asyncio.Queue()
        self.listeners.append(listener)
        try:
            while True:
                yield await listener.get()
        finally:
            self.listeners.remove(listener)
            self.stopped.append("stopped")

    async def send(self, text: str) -> Any:
        for event in self.events:
            for listener in self.listeners:
                listener.put_nowait(event)
            await asyncio.sleep(0)
        if self.error:
            raise self.error
        return {"type": "reply", "reply": text.upper()}


async def test_the_stream_is_subscribed_to_before_send_and_stopped_after_it() -> None:
    """No event is missed, of those that come last neither, and nobody listens any longer."""
    agent = Streams([model(("1", "search")), start("1"), done("1"), model()])
    assert await run(agent) == Returned(output="HI", steps=(LLM, StepRecord("tool", "search", {"q": 1}, "found"), LLM))
    assert (agent.listeners, agent.stopped) == ([], ["stopped"])


async def test_more_events_than_are_read_at_once_are_all_read() -> None:
    """Events that pile up while the agent is busy are still steps."""
    assert len((await run(Streams([model()] * 3000))).steps) == 3000


async def test_a_send_that_throws_keeps_what_the_stream_told() -> None:
    """The steps before a failure are kept, and the stream is stopped."""
    agent = Streams([model(), start("1")], error=ValueError("no"))
    failed = await run(agent)
    assert failed == Returned(error="ValueError: no", steps=(LLM, StepRecord("tool", "search", {"q": 1})))
    assert agent.stopped == ["stopped"]


async def test_a_stream_that_throws_is_a_run_error() -> None:
    """A stream whose buffer overflows has lost events: the run has failed, though there is a reply."""

    class Agent(Streams):
        async def stream(self) -> AsyncGenerator[Any]:
            yield model()
            raise BufferError("1024 events wait to be read")

    failed = await run(Agent([]))
    assert failed == Returned(
        error="the stream of events failed: BufferError: 1024 events wait to be read", steps=(LLM,)
    )


@pytest.mark.parametrize("call", [{"id": "1"}, {"id": "1", "tool": "search"}, {"name": 3}, None])
async def test_a_tool_without_a_name_is_a_run_error(call: Any) -> None:
    """A step without a name would fail every check of steps, and nobody would see why."""
    failed = await run(Streams([{"type": "tool.start", "call": call}]))
    assert "a tool.start has no call.name; an event is {type, call: {id, name, arguments}}" in (failed.error or "")


async def test_a_stream_that_throws_at_once_is_a_run_error() -> None:
    """A stream that cannot even be opened fails the run with what it raised."""

    class Agent(Replies):
        def stream(self) -> Any:
            raise RuntimeError("the agent is closed")

    assert await run(Agent({"type": "reply", "reply": "done"})) == Returned(error="RuntimeError: the agent is closed")


@pytest.mark.parametrize("stream", [None, "events", {"type": "tool.start"}, 3])
async def test_what_is_no_stream_is_a_run_error(stream: Any) -> None:
    """An agent that says it can be observed and cannot has failed, instead of having done nothing."""

    class Agent(Replies):
        def stream(self) -> Any:
            return stream

    assert "is not an iterable of events" in ((await run(Agent({"type": "reply", "reply": "done"}))).error or "")


async def test_a_stream_may_end_by_itself() -> None:
    """Events that end are read to their end."""

    class Agent(Replies):
        async def stream(self) -> AsyncIterator[Any]:
            async def events() -> AsyncGenerator[Any]:
                yield model()

            return events()

    assert (await run(Agent({"type": "reply", "reply": "done"}))).steps == (LLM,)


async def test_a_stream_without_an_end_is_not_read_forever() -> None:
    """A stream that never stops talking does not keep the run from ending."""

    class Agent(Replies):
        async def stream(self) -> AsyncGenerator[Any]:
            while True:
                yield {"type": "heartbeat"}

    assert (await run(Agent({"type": "reply", "reply": "done"}))).output == "done"


async def test_an_iterator_that_is_no_generator_is_closed() -> None:
    """Whoever gave a subscription with `aclose` is told that it is over."""
    closed: Future[str] = Future()

    class Events:
        def __aiter__(self) -> Events:
            return self

        async def __anext__(self) -> Any:
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.set_result("closed")

    class Agent(Replies):
        def stream(self) -> Events:
            return Events()

    await run(Agent({"type": "reply", "reply": "done"}))
    assert closed.result(0) == "closed"


class StreamsInAThread:
    """The same without asyncio: a generator that waits for events in its thread."""

    def __init__(self, events: list[Any], *, ends: bool) -> None:
        self.events, self.ends = events, ends
        self.listening: queue.Queue[Any] = queue.Queue()

    def stream(self) -> Iterator[Any]:
        while (event := self.listening.get()) is not None:
            yield event

    def send(self, text: str) -> Any:
        for event in self.events:
            self.listening.put(event)
        if self.ends:
            self.listening.put(None)
        return {"type": "reply", "reply": text.upper()}


@pytest.mark.parametrize("ends", [True, False])
async def test_a_stream_may_be_read_in_a_thread(ends: bool) -> None:
    """A sync stream is read while `send` goes on, whether or not it ends by itself."""
    agent = StreamsInAThread([model(("1", "search")), start("1"), done("1")], ends=ends)
    assert await run(agent) == Returned(output="HI", steps=(LLM, StepRecord("tool", "search", {"q": 1}, "found")))
    agent.listening.put(None)


async def test_a_stream_in_a_thread_that_throws_is_a_run_error() -> None:
    """What a sync stream raises fails the run as well."""

    class Agent(StreamsInAThread):
        def stream(self) -> Iterator[Any]:
            yield model()
            raise BufferError("full")

    failed = await run(Agent([], ends=True))
    assert failed == Returned(error="the stream of events failed: BufferError: full", steps=(LLM,))


class Unreadable:
    @property
    def type(self) -> str:
        raise ValueError("gone")


async def test_an_event_that_cannot_be_read_is_a_run_error() -> None:
    """An event that raises when it is looked at is a stream that failed, wherever it is read."""
    agent = StreamsInAThread([Unreadable(), model()], ends=True)
    for task in (Streams([Unreadable()]), agent):
        assert (await run(task)).error == "the stream of events failed: ValueError: gone"


async def test_runs_of_an_agent_that_streams_do_not_overlap() -> None:
    """Two cases put to one agent at a time would each be told of the other's steps."""
    agent = PythonTaskAgent(as_task(Streams([model(), model()])), timeout=60)
    cases = [CaseInput(prompt=text) for text in "abc"]
    traces = await asyncio.gather(*(agent.run(case, case_id="case", attempt=1) for case in cases))
    assert [(trace.output, len(trace.steps)) for trace in traces] == [("A", 2), ("B", 2), ("C", 2)]


async def test_an_agent_that_hangs_times_out_with_what_it_did() -> None:
    """The steps up to the limit are kept, and nobody listens any longer."""

    class Agent(Streams):
        async def send(self, text: str) -> Any:
            await super().send(text)
            await asyncio.Event().wait()

    agent = Agent([model(), start("1")])
    running = PythonTaskAgent(as_task(agent), timeout=0.05)
    trace = await running.run(CaseInput(prompt="hi"), case_id="case", attempt=1)
    assert trace.returned.error == "timed out after 0.05 s"
    assert [step.name for step in trace.steps] == ["llm", "search"]
    assert agent.listeners == []
