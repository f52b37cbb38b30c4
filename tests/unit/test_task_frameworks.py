"""Agents of libraries as tasks.

The libraries are not installed here: what stands in for their objects has the fields and methods that their
documentation names, and no others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from support.places import unplaced_run
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.langchain import langchain
from trunchray.agents.python.openai_agents import openai_agents
from trunchray.agents.python.pydantic_ai import pydantic_ai
from trunchray.agents.python.task import Task
from trunchray.core.record import Returned, StepRecord
from trunchray.errors import UsageError

LLM = StepRecord("llm")


async def run(task: Task, value: Any = "hi") -> Returned:
    return unplaced_run(await task.run(value, CancelSignal()))


# LangChain and LangGraph: langchain_core.messages and langgraph.pregel


@dataclass
class AIMessage:
    content: Any
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    type: str = "ai"


@dataclass
class ToolMessage:
    content: Any
    tool_call_id: str
    status: str = "success"
    type: str = "tool"


@dataclass
class HumanMessage:
    content: Any
    type: str = "human"


def wants(call_id: str, name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


@dataclass
class Graph:
    """A compiled graph: what it is given comes first in the messages of the state it returns."""

    added: Sequence[Any] = ()
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    channels: dict[str, Any] = field(default_factory=lambda: {"messages": None})
    checkpointer: Any = None
    given: list[Any] = field(default_factory=list[Any])
    configs: list[Any] = field(default_factory=list[Any])

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        self.given.append(input)
        self.configs.append(config)
        return {"messages": [*input["messages"], *self.added], **self.more}


@dataclass
class Chain:
    """A runnable without a state."""

    result: Any
    given: list[Any] = field(default_factory=list[Any])

    def invoke(self, input: Any, config: Any = None) -> Any:
        self.given.append(input)
        return self.result


async def test_a_graph_is_sent_a_message_and_its_messages_are_the_steps() -> None:
    """The last text of the model is the output; its replies and the calls of tools are the steps."""
    graph = Graph(
        [
            AIMessage("", [wants("1", "search", q="refund"), wants("2", "refund", order=7)]),
            ToolMessage(["policy"], "1"),
            ToolMessage("no such order", "2", status="error"),
            AIMessage([{"type": "text", "text": "Sorry, "}, {"type": "text", "text": "no."}]),
        ]
    )
    assert await run(langchain(graph)) == Returned(
        output="Sorry, no.",
        steps=(
            LLM,
            StepRecord("tool", "search", {"q": "refund"}, ["policy"]),
            StepRecord("tool", "refund", {"order": 7}, error="no such order"),
            LLM,
        ),
    )
    assert graph.given == [{"messages": [{"role": "user", "content": "hi"}]}]


async def test_messages_that_a_graph_was_given_are_no_steps() -> None:
    """An input that is a conversation is given as it is, and only what came after it was done in the run."""
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    graph = Graph([AIMessage("d")])
    for value in (talk, {"messages": talk}):
        assert await run(langchain(graph), value) == Returned(output="d", steps=(LLM,))
    assert graph.given == [{"messages": talk}, {"messages": talk}]


async def test_a_graph_is_sent_other_values_as_json() -> None:
    """A list that is no conversation is a message like any other."""
    graph = Graph([AIMessage("d")])
    await run(langchain(graph), ["a", "b"])
    assert graph.given == [{"messages": [{"role": "user", "content": '["a","b"]'}]}]


async def test_a_structured_response_is_the_output() -> None:
    """An agent that was asked for a structure answers with it."""
    graph = Graph([AIMessage("done")], {"structured_response": {"refund": True}})
    assert (await run(langchain(graph))).output == {"refund": True}


async def test_a_graph_that_was_interrupted_is_a_run_error() -> None:
    """A graph that waits for a person is suspended; what it did before is kept."""
    graph = Graph([AIMessage("", [wants("1", "refund")])], {"__interrupt__": [SimpleNamespace(value="sure?")]})
    assert await run(langchain(graph)) == Returned(
        error="suspended: the graph was interrupted and waits to be resumed",
        steps=(LLM, StepRecord("tool", "refund", {})),
    )


async def test_each_run_of_a_graph_that_remembers_has_a_thread_of_its_own() -> None:
    """What one case said is not remembered in the next, unless the config names a thread."""
    graph = Graph([AIMessage("d")], checkpointer=object())
    await run(langchain(graph, config={"recursion_limit": 5, "configurable": {"user": "u"}}))
    await run(langchain(graph))
    await run(langchain(graph, config={"configurable": {"thread_id": "mine"}}))
    first, second, third = (config["configurable"] for config in graph.configs)
    assert (graph.configs[0]["recursion_limit"], first["user"], third) == (5, "u", {"thread_id": "mine"})
    assert first["thread_id"] != second["thread_id"]


async def test_a_chain_is_given_the_input_as_it_is() -> None:
    """A runnable without messages takes whatever its first part takes; what it returns is the output."""
    chain = Chain({"answer": 7})
    assert await run(langchain(chain), {"question": "?"}) == Returned(output={"answer": 7})
    assert chain.given == [{"question": "?"}]


async def test_a_chat_model_is_a_chain_that_returns_a_message() -> None:
    """The text of the message is the output; calls that nobody answered are steps without an end."""
    chain = Chain(AIMessage("yes", [wants("1", "search")]))
    assert await run(langchain(chain)) == Returned(output="yes", steps=(LLM, StepRecord("tool", "search", {})))


async def test_intermediate_steps_are_steps() -> None:
    """An executor that returns its steps beside its output is observed by them."""
    action = SimpleNamespace(tool="search", tool_input={"q": 1}, log="")
    chain = Chain({"input": "hi", "output": "yes", "intermediate_steps": [(action, "found")]})
    assert await run(langchain(chain)) == Returned(
        output="yes", steps=(StepRecord("tool", "search", {"q": 1}, "found"),)
    )


async def test_input_and_output_of_a_runnable_can_be_made() -> None:
    """Who knows better says what a runnable is given, and what of its result is the output."""
    chain = Chain({"answer": 7})
    task = langchain(chain, input=lambda value: {"q": value}, output=lambda result: result["answer"])
    assert (await run(task)).output == 7
    assert chain.given == [{"q": "hi"}]


async def test_a_runnable_that_throws_is_a_run_error() -> None:
    """What a chain raises is the error of the run."""
    assert (await run(langchain(Graph()), {"other": 1})).error == "KeyError: 'messages'"


def test_what_cannot_be_invoked_is_refused() -> None:
    """A graph that was not compiled is answered with what to do."""
    with pytest.raises(UsageError, match="not object"):
        langchain(object())
    with pytest.raises(UsageError, match="compile the graph first"):
        langchain(SimpleNamespace(compile=Graph))


# OpenAI Agents SDK: agents.items, agents.result and agents.exceptions


def item(type: str, raw: Any = None, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(type=type, raw_item=raw, **more)


def called(call_id: str, name: str, arguments: str) -> SimpleNamespace:
    return item("tool_call_item", SimpleNamespace(call_id=call_id, name=name, arguments=arguments))


def returned(call_id: str, output: Any) -> SimpleNamespace:
    return item("tool_call_output_item", {"call_id": call_id, "output": str(output)}, output=output)


ITEMS = [
    item("reasoning_item"),
    called("1", "search", '{"q":"refund"}'),
    called("2", "order", "not json"),
    returned("1", ["policy"]),
    returned("2", None),
    item("handoff_call_item", SimpleNamespace(call_id="3", name="transfer_to_refunds", arguments="{}")),
    item("handoff_output_item", {"call_id": "3", "output": "Refunds"}),
    item("tool_call_item", SimpleNamespace(id="4", type="web_search_call", status="completed")),
    item("tool_call_item", {"id": "5", "type": "mcp_call", "name": "lookup", "arguments": "{}", "error": "down"}),
    item("message_output_item"),
]
STEPS = (
    LLM,
    StepRecord("tool", "search", {"q": "refund"}, ["policy"]),
    StepRecord("tool", "order", "not json", "None"),
    LLM,
    StepRecord("tool", "transfer_to_refunds", {}, "Refunds"),
    LLM,
    StepRecord("tool", "web_search"),
    StepRecord("tool", "lookup", {}, error="down"),
)


def result(output: Any, items: Sequence[Any] = (), interruptions: Sequence[Any] = ()) -> SimpleNamespace:
    return SimpleNamespace(final_output=output, new_items=list(items), interruptions=list(interruptions))


def runs(outcome: Any, seen: list[Any] | None = None) -> Callable[..., Any]:
    """`Runner.run`."""

    async def run(starting_agent: Any, input: Any, **options: Any) -> Any:
        if seen is not None:
            seen.append((starting_agent, input, options))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return run


async def test_new_items_are_the_steps() -> None:
    """Each reply of the model is a step, whatever it consists of; so is each call of a tool, with what it returned."""
    agent = object()
    seen: list[Any] = []
    task = openai_agents(agent, run=runs(result("done", ITEMS), seen), options={"max_turns": 3})
    assert await run(task) == Returned(output="done", steps=STEPS)
    assert seen == [(agent, "hi", {"max_turns": 3})]


async def test_the_final_output_is_the_output_whatever_it_is() -> None:
    """A structured output stays the object that it is."""
    output = SimpleNamespace(refund=True)
    assert (await run(openai_agents(object(), run=runs(result(output))))).output is output


async def test_a_conversation_is_given_as_it_is() -> None:
    """Messages with roles are input of the SDK; other values are sent as their JSON."""
    seen: list[Any] = []
    task = openai_agents(object(), run=runs(result(""), seen))
    talk = [{"role": "user", "content": "a"}]
    for value in (talk, [1], {"a": 1}, []):
        await run(task, value)
    assert [given for _, given, _ in seen] == [talk, "[1]", '{"a":1}', "[]"]


async def test_an_agent_that_waits_for_an_approval_is_a_run_error() -> None:
    """Interruptions mean that somebody has to decide."""
    task = openai_agents(object(), run=runs(result(None, ITEMS[1:2], [item("tool_approval_item")])))
    assert await run(task) == Returned(
        error="suspended: the agent waits for the approval of a tool call",
        steps=(LLM, StepRecord("tool", "search", {"q": "refund"})),
    )


async def test_a_run_that_the_sdk_ends_keeps_its_steps() -> None:
    """An exception that tells what had happened, as for too many turns, is an error with these steps."""

    class MaxTurnsExceeded(Exception):
        run_data = SimpleNamespace(new_items=ITEMS[1:2])

    failed = await run(openai_agents(object(), run=runs(MaxTurnsExceeded("Max turns (3) exceeded"))))
    assert failed.error == "MaxTurnsExceeded: Max turns (3) exceeded"
    assert failed.steps == (LLM, StepRecord("tool", "search", {"q": "refund"}))


@contextmanager
def modules(**named: Any) -> Generator[None]:
    """These modules in place of any that are installed; None: it is not."""
    before = {name: sys.modules.pop(name, None) for name in named}
    sys.modules.update(named)
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


async def test_the_sdk_is_imported_when_an_agent_runs() -> None:
    """Without it the task is refused; where it goes missing, running says what to install; else its runner is used."""
    stand_in = ModuleType("agents")
    stand_in.__spec__ = ModuleSpec("agents", None)
    vars(stand_in)["Runner"] = SimpleNamespace(run=runs(result("done")))
    with modules(agents=stand_in):
        task = openai_agents(object())
    with modules(agents=None):
        assert "pip install openai-agents" in ((await run(task)).error or "")
        with pytest.raises(UsageError, match="pip install openai-agents"):
            openai_agents(object())
    with modules(agents=stand_in):
        assert (await run(task)).output == "done"


# pydantic-ai: pydantic_ai.messages and pydantic_ai.run


def part(part_kind: str, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(part_kind=part_kind, **fields)


def request(*parts: Any) -> SimpleNamespace:
    return SimpleNamespace(kind="request", parts=list(parts))


def response(*parts: Any) -> SimpleNamespace:
    return SimpleNamespace(kind="response", parts=list(parts))


MESSAGES = [
    request(part("user-prompt", content="hi")),
    response(
        part("text", content="let me see"),
        part("tool-call", tool_name="search", args='{"q":"refund"}', tool_call_id="1"),
        part("tool-call", tool_name="order", args={"id": 7}, tool_call_id="2"),
        part("tool-call", tool_name="refund", args=None, tool_call_id="3"),
    ),
    request(
        part("tool-return", tool_name="search", content=["policy"], tool_call_id="1", outcome="success"),
        part("retry-prompt", tool_name="order", content="no such order", tool_call_id="2"),
        part("tool-return", tool_name="refund", content="not allowed", tool_call_id="3", outcome="denied"),
    ),
    response(
        part("builtin-tool-call", tool_name="web_search", args={"q": 1}, tool_call_id="4"),
        part("builtin-tool-return", tool_name="web_search", content="found", tool_call_id="4"),
    ),
    request(part("retry-prompt", tool_name=None, content="answer with a structure", tool_call_id="9")),
    response(part("tool-call", tool_name="final_result", args={"refund": True}, tool_call_id="5")),
    request(part("tool-return", tool_name="final_result", content="Final result processed.", tool_call_id="5")),
]


class Agent:
    def __init__(self, output: Any, messages: Sequence[Any] = ()) -> None:
        self.output, self.messages = output, messages
        self.seen: list[Any] = []

    async def run(self, user_prompt: Any, **options: Any) -> Any:
        self.seen.append((user_prompt, options))
        return SimpleNamespace(
            output=self.output, new_messages=lambda: self.messages, all_messages=lambda: ["from before", *self.messages]
        )


async def test_messages_of_a_run_are_the_steps() -> None:
    """Replies and calls of tools are steps, those of the provider too; how a structured output is given is none."""
    assert await run(pydantic_ai(Agent({"refund": True}, MESSAGES))) == Returned(
        output={"refund": True},
        steps=(
            LLM,
            StepRecord("tool", "search", {"q": "refund"}, ["policy"]),
            StepRecord("tool", "order", {"id": 7}, error="no such order"),
            StepRecord("tool", "refund", error="not allowed"),
            LLM,
            StepRecord("tool", "web_search", {"q": 1}, "found"),
            LLM,
        ),
    )


async def test_a_prompt_is_text_and_options_are_passed_on() -> None:
    """What is no text is sent as its JSON, with the dependencies that the agent needs."""
    agent = Agent("")
    await run(pydantic_ai(agent, options={"deps": "database"}), {"a": 1})
    assert agent.seen == [('{"a":1}', {"deps": "database"})]


async def test_a_run_that_ends_in_deferred_tools_is_a_run_error() -> None:
    """Tools that somebody else has to do or approve leave the run without an output."""

    class DeferredToolRequests: ...

    failed = await run(pydantic_ai(Agent(DeferredToolRequests(), MESSAGES[1:2])))
    assert failed.error == "suspended: the agent waits for tools that it does not run itself"
    assert [step.name for step in failed.steps] == [None, "search", "order", "refund"]


def test_what_cannot_run_is_refused() -> None:
    """Something without `run` is no agent of pydantic-ai."""
    with pytest.raises(UsageError, match=r"takes something with run\(prompt\), not object"):
        pydantic_ai(object())


async def test_adapters_pass_cancellation_on() -> None:
    """A run that is cancelled ends in the library."""
    begun = asyncio.Event()

    async def hangs(_agent: Any, _input: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(run(openai_agents(object(), run=hangs)))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
