"""What of a task its author wrote: what tells it from others, and goes along to other machines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from trunchray.agents.python.http_endpoint import http_endpoint
from trunchray.agents.python.langchain import langchain
from trunchray.agents.python.openai_agents import openai_agents
from trunchray.agents.python.pydantic_ai import pydantic_ai
from trunchray.agents.python.task import as_task
from trunchray.agents.python.workflow import workflow
from trunchray.frontends.evaluation.code import modules_of, named, program_digest


def shout(text: Any) -> Any:
    return text


def whisper(text: Any) -> Any:
    return text


def invoke(step: Any, payload: Any) -> Any:
    return step(payload)


class Agent:
    def send(self, text: str) -> Any:
        return {"type": "reply", "reply": text}


def test_a_function_or_agent_is_what_was_written() -> None:
    """A task of one piece is named after it."""
    agent = Agent()
    assert as_task(shout).authored == (shout,)
    assert as_task(agent).authored == (agent,)
    assert named(as_task(shout).authored[0]).endswith("test_task_authors:shout")


def test_a_workflow_is_all_that_it_runs() -> None:
    """Its steps are code as much as who invokes them: another step is another workflow."""
    one, other = workflow({"a": shout}, invoke), workflow({"a": whisper}, invoke, output=shout)
    assert one.authored == (invoke, {"a": shout}, shout, None, None)
    assert other.authored == (invoke, {"a": whisper}, whisper, None, shout)
    assert workflow("a.yaml", runner=invoke).authored == (invoke, "a.yaml", None, None)
    assert program_digest(one.authored) != program_digest(workflow({"a": whisper}, invoke).authored)
    assert __name__ in modules_of(one.authored)


def test_adapters_keep_what_they_were_given() -> None:
    """What an adapter is told is part of the task, and what is ours is not."""
    runnable, agent = SimpleNamespace(invoke=shout), SimpleNamespace(run=shout)
    tasks = [
        langchain(runnable, input=whisper, config={"tags": []}),
        openai_agents(agent, run=shout, options={"max_turns": 3}),
        pydantic_ai(agent, options={"deps": 1}),
        http_endpoint("http://localhost/run", api_key_env="KEY", output=shout),
    ]
    assert [task.authored for task in tasks] == [
        (runnable, whisper, None, {"tags": []}),
        (agent, shout, {"max_turns": 3}),
        (agent, {"deps": 1}),
        ("http://localhost/run", {"headers": {}, "header_env": {}, "api_key_env": "KEY"}, None, shout),
    ]
    assert program_digest(tasks[0].authored) != program_digest(
        langchain(runnable, output=whisper, config={"tags": []}).authored
    )
    assert not any(name.startswith("trunchray") for task in tasks for name in modules_of(task.authored))


def test_an_endpoint_is_told_by_its_address_and_what_is_sent() -> None:
    """Another address or header is another task."""
    given: list[dict[str, Any]] = [{}, {"headers": {"X-Team": "a"}}, {"headers": {"X-Team": "b"}}]
    tasks = [http_endpoint("http://localhost/a", **more) for more in given] + [http_endpoint("http://localhost/b")]
    assert len({program_digest(task.authored) for task in tasks}) == 4
