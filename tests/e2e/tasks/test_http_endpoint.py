"""Tasks behind real HTTP endpoints."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import Handler, answering, endpoint
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.http_endpoint import http_endpoint
from trunchray.agents.python.task import Task
from trunchray.core.case import CaseInput
from trunchray.core.record import Returned, StepRecord
from trunchray.errors import UsageError

KEY = "sk-very-secret-0123456789"


@asynccontextmanager
async def serving(handler: Handler, **given: Any) -> AsyncGenerator[Task]:
    """The task behind a server that gives every request to `handler`."""
    async with endpoint(handler) as url:
        task = http_endpoint(f"{url}/run", **given)
        try:
            yield task
        finally:
            await task.close()


async def run(task: Task, value: Any = "hi") -> Returned:
    return await task.run(value, CancelSignal())


async def answered(body: Any, status: int = 200, **headers: str) -> Returned:
    async with serving(answering(body, status, **headers)) as task:
        return await run(task)


async def test_an_input_is_posted_as_json_and_the_output_is_read() -> None:
    """The endpoint gets `{"input": …}` as JSON, in one request, and what it says is `output` is."""
    seen: list[tuple[str, str, str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, request.content_type, await request.json()))
        return web.json_response({"output": {"refund": True}})

    async with serving(handler) as task:
        assert await run(task, {"order": 7, "text": "é"}) == Returned(output={"refund": True})
    assert seen == [("POST", "/run", "application/json", {"input": {"order": 7, "text": "é"}})]


@pytest.mark.parametrize("body", [{"refund": True}, ["a"], "text", 7, None])
async def test_any_other_json_is_the_output_itself(body: Any) -> None:
    """An answer without `output` is the output."""
    assert await answered(body) == Returned(output=body)


async def test_an_output_that_is_null_is_an_output() -> None:
    """What the endpoint says is there is taken, even if it is null."""
    assert await answered({"output": None, "error": "not this"}) == Returned(output=None)


async def test_an_answer_that_is_no_json_is_its_text() -> None:
    """What does not say that it is JSON is taken as text."""

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text="42")

    async with serving(handler) as task:
        assert await run(task) == Returned(output="42")


async def test_steps_of_the_answer_are_the_steps_of_the_run() -> None:
    """An endpoint that tells what it did is observed by that."""
    steps = [
        {"kind": "llm"},
        {"kind": "tool", "name": "search", "input": {"q": 1}, "output": ["a"], "ms": 5},
        {"kind": "step", "name": "review", "error": "refused"},
    ]
    assert await answered({"output": "done", "steps": steps}) == Returned(
        output="done",
        steps=(
            StepRecord("llm"),
            StepRecord("tool", "search", {"q": 1}, ["a"], ms=5),
            StepRecord("step", "review", error="refused"),
        ),
    )


async def test_a_step_of_another_kind_is_a_run_error() -> None:
    """A step that cannot be counted is not left out silently."""
    assert "a step of kind 'agent'" in ((await answered({"output": "", "steps": [{"kind": "agent"}]})).error or "")


async def test_an_error_of_the_answer_is_a_run_error() -> None:
    """An endpoint that says in its own words that it failed has failed."""
    assert (await answered({"error": "no model"})).error == "the endpoint says: no model"


async def test_input_and_output_can_be_made() -> None:
    """Who has an endpoint of another form says what is posted, and what of the answer is the output."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"reply": {"text": (await request.json())["message"].upper()}})

    made: dict[str, Any] = {
        "input": lambda value: {"message": value},
        "output": lambda answer: answer["reply"]["text"],
    }
    async with serving(handler, **made) as task:
        assert await run(task) == Returned(output="HI")
        assert (await run(task, 5)).error is not None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (500, 'HTTP 500: {"detail": "no model"}'),
        (429, "HTTP 429"),
        (404, "HTTP 404"),
        (302, "HTTP 302 (redirects are not followed"),
    ],
)
async def test_a_refusal_is_a_run_error_and_is_not_repeated(status: int, said: str) -> None:
    """Whatever is no success fails the run, after one request, with what the server says."""
    seen: list[int] = []

    async def handler(_request: web.Request) -> web.Response:
        seen.append(status)
        body = json.dumps({"detail": "no model"})
        return web.Response(status=status, text=body, headers={"Location": "/elsewhere"})

    async with serving(handler) as task:
        assert said in ((await run(task)).error or "")
    assert seen == [status]


async def test_a_long_refusal_is_cut() -> None:
    """A page of HTML does not fill the report."""
    assert len((await answered(b"x" * 10_000, 500)).error or "") < 400


async def test_an_answer_that_is_broken_json_is_a_run_error() -> None:
    """Who says JSON and sends something else has failed."""
    assert "the answer is not JSON: {broken" in ((await answered(b"{broken")).error or "")


async def test_a_server_that_is_not_there_is_a_run_error() -> None:
    """A connection that is refused fails the run, and says to what."""
    async with endpoint(answering({})) as url:
        pass
    task = http_endpoint(f"{url}/run?trace=1")
    error = (await run(task)).error or ""
    await task.close()
    assert "cannot connect" in error
    assert "trace" not in error


async def test_credentials_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are named, never given; they are sent, and replaced where the server repeats them."""
    monkeypatch.setenv("AGENT_KEY", KEY)
    monkeypatch.setenv("TENANT_KEY", "tenant-0123456789")

    async def handler(request: web.Request) -> web.Response:
        sent = [request.headers[name] for name in ("Authorization", "X-Tenant-Key", "X-Team")]
        return web.json_response({"output": sent})

    given: dict[str, Any] = {"api_key_env": "AGENT_KEY", "header_env": {"X-Tenant-Key": "TENANT_KEY"}}
    async with serving(handler, headers={"X-Team": "support"}, **given) as task:
        assert KEY.encode() not in pickle.dumps(task.perform)
        assert (await run(task)).output == ["[key]", "[key]", "support"]

    async def refuses(request: web.Request) -> web.Response:
        return web.Response(status=401, text=f"bad key: {request.headers['Authorization']}")

    async with serving(refuses, **given) as task:
        assert ((await run(task)).error or "").endswith(": HTTP 401: bad key: [key]")


async def test_a_key_that_is_not_there_is_a_run_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is not set where the task runs is named."""
    monkeypatch.delenv("AGENT_KEY", raising=False)
    task = http_endpoint("http://localhost:1/run", api_key_env="AGENT_KEY")
    assert (await run(task)).error == (
        "the environment variable AGENT_KEY, which holds a key of http://localhost:1/run, is not set"
    )


@pytest.mark.parametrize(
    "url", ["localhost:8000/run", "ftp://host/run", "http://", "http://h:99999/", "http://a b/", None, 3]
)
def test_what_is_no_address_is_refused(url: Any) -> None:
    """An address is checked when the task is made."""
    with pytest.raises(UsageError, match=r"is not an address|expected an address"):
        http_endpoint(url)


def test_credentials_in_the_source_are_refused() -> None:
    """Neither the address nor the headers of a task hold keys; the message does not repeat them."""
    for given in ({"Authorization": KEY}, {"X-API-Key": KEY}, {"Cookie": KEY}):
        with pytest.raises(UsageError, match="environment variable") as refused:
            http_endpoint("http://localhost/run", headers=given)
        assert KEY not in str(refused.value)
    with pytest.raises(UsageError, match="user name or password") as refused:
        http_endpoint(f"http://user:{KEY}@localhost/run")
    assert KEY not in str(refused.value)


async def test_an_endpoint_that_hangs_times_out() -> None:
    """The limit of a run holds for an endpoint as well, and its request ends."""
    ended = asyncio.Event()

    async def handler(_request: web.Request) -> web.Response:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return web.Response()

    async with serving(handler) as task:
        agent = PythonTaskAgent(task, timeout=0.2)
        trace = await agent.run(CaseInput(prompt="hi"), case_id="case", attempt=1)
        assert trace.returned.error == "timed out after 0.2 s"
        await ended.wait()


def test_a_task_is_used_on_one_event_loop_after_another() -> None:
    """An endpoint that was evaluated once can be evaluated again, and pickled in between."""

    async def once(task: Task | None) -> Task:
        async with endpoint(answering({"output": "done"})) as url:
            task = http_endpoint(url) if task is None else task
            if task.authored[0] == url:
                assert (await run(task)).output == "done"
            await task.close()
            return task

    task = asyncio.run(once(None))
    copy = pickle.loads(pickle.dumps(task))
    asyncio.run(once(copy))
    assert "cannot connect" in (asyncio.run(_run_and_close(copy)).error or "")


async def _run_and_close(task: Task) -> Returned:
    returned = await run(task)
    await task.close()
    return returned
