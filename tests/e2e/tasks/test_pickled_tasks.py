"""Tasks of all kinds in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from ray import cloudpickle

from trunchray.agents.python.http_endpoint import http_endpoint
from trunchray.agents.python.langchain import langchain
from trunchray.agents.python.openai_agents import openai_agents
from trunchray.agents.python.pydantic_ai import pydantic_ai
from trunchray.agents.python.task import Task, as_task
from trunchray.agents.python.workflow import workflow

RUN = """
import asyncio, json, pickle, sys
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.core.case import CaseInput

async def said(task):
    agent = PythonTaskAgent(task, timeout=60)
    trace = await agent.run(CaseInput(prompt="hi"), case_id="case", attempt=1)
    await agent.close()
    return [trace.returned.error or trace.output, len(trace.steps)]

async def main():
    tasks = pickle.load(sys.stdin.buffer)
    print(json.dumps({kind: await said(task) for kind, task in tasks.items()}))

asyncio.run(main())
"""


def tasks() -> dict[str, Task]:
    """One of each kind, all defined where no other process can import them."""
    mark = "!"

    class Agent:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def send(self, text: str) -> Any:
            return {"type": "reply", "reply": text + mark}

        def stream(self) -> Any:
            yield {"type": "inference.done", "data": {}}

    class Chain:
        def invoke(self, value: str, config: Any = None) -> str:
            return value + mark

    class Typed:
        async def run(self, prompt: str) -> Any:
            return SimpleNamespace(output=prompt + mark, new_messages=list)

    async def later(text: str, signal: Any) -> str:
        return text + mark * (not signal.aborted)

    async def runner(_agent: Any, text: str) -> Any:
        return SimpleNamespace(final_output=text + mark, new_items=[], interruptions=[])

    return {
        "function": as_task(lambda text: text + mark),
        "async": as_task(later),
        "agent": as_task(Agent()),
        "workflow": workflow({"a": lambda text: text + mark}, lambda step, payload: step(payload)),
        "langchain": langchain(Chain()),
        "openai_agents": openai_agents(SimpleNamespace(name="a"), run=runner),
        "pydantic_ai": pydantic_ai(Typed()),
        "http_endpoint": http_endpoint("http://127.0.0.1:1/run"),
    }


def test_tasks_are_run_in_another_process() -> None:
    """Whatever a task is, it can be pickled before it first runs, and does the same elsewhere."""
    content = cloudpickle.dumps(tasks())
    ran = subprocess.run([sys.executable, "-c", RUN], input=content, capture_output=True, check=False)
    assert ran.stderr.decode() == ""
    said = json.loads(ran.stdout)
    assert said.pop("http_endpoint")[0].startswith("127.0.0.1:1: cannot connect")
    assert said == {
        "function": ["hi!", 0],
        "async": ["hi!", 0],
        "agent": ["hi!", 1],
        "workflow": ["hi!", 1],
        "langchain": ["hi!", 0],
        "openai_agents": ["hi!", 0],
        "pydantic_ai": ["hi!", 0],
    }
