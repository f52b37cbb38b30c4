"""Functions as tasks: which are taken, how they are called, and what is said of the others."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from support.places import unplaced_run
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.task import as_task
from trunchray.core.record import Returned
from trunchray.errors import UsageError


async def run(task: object, value: Any = "hi") -> Returned:
    return unplaced_run(await as_task(task).run(value, CancelSignal()))


def shout(text: str) -> str:
    return f"{text}!"


async def shout_later(text: str) -> str:
    await asyncio.sleep(0)
    return f"{text}!"


class Shouter:
    mark = "!"

    def __call__(self, text: str) -> str:
        return text + self.mark

    def method(self, text: str) -> str:
        return text + self.mark

    async def later(self, text: str) -> str:
        return text + self.mark

    @classmethod
    def of_class(cls, text: str) -> str:
        return text + cls.mark

    @staticmethod
    def alone(text: str) -> str:
        return f"{text}!"


class LateShouter:
    async def __call__(self, text: str) -> str:
        return f"{text}!"


class Text(str):
    __slots__ = ()

    def __new__(cls, text: str) -> Text:
        return super().__new__(cls, f"{text}!")


@pytest.mark.parametrize(
    "function",
    [
        shout,
        shout_later,
        lambda text: f"{text}!",
        lambda text: shout_later(text[:]),  # returns what can be awaited
        partial(lambda mark, text: text + mark, "!"),
        partial(shout_later),
        Shouter(),
        Shouter().method,
        Shouter().later,
        Shouter.of_class,
        Shouter.alone,
        LateShouter(),
        Text,
        "{}!".format,
        lambda *parts: f"{parts[0]}!",
        lambda text, mark="!": text + mark,
        lambda text, **more: f"{text}!",
    ],
)
async def test_callables_are_tasks(function: Callable[..., Any]) -> None:
    """Whatever can be called with an input is a task, and what it returns is the output, awaited where that can be."""
    assert await run(function) == Returned(output="hi!")


async def test_a_function_of_no_known_parameters_is_given_the_input() -> None:
    """Built-in types and functions that hide their parameters get the input alone."""
    assert await run(str, 5) == Returned(output="5")
    assert await run(max, [1, 3, 2]) == Returned(output=3)


def _optional(text: str, signal: CancelSignal | None = None) -> bool:
    return isinstance(signal, CancelSignal)


def _named(text: str, *, signal: CancelSignal) -> bool:
    return isinstance(signal, CancelSignal)


async def _async_second(text: str, stop: object) -> bool:
    return isinstance(stop, CancelSignal)


@pytest.mark.parametrize(
    "function", [lambda text, stop: isinstance(stop, CancelSignal), _optional, _named, _async_second]
)
async def test_a_second_parameter_is_the_signal(function: Callable[..., Any]) -> None:
    """The signal is given as a second parameter without a default, or as one called `signal`, by name where needed."""
    assert await run(function) == Returned(output=True)


async def test_a_second_parameter_with_a_default_is_the_functions_own() -> None:
    """A temperature that happens to stand second is not mistaken for the signal."""
    assert await run(lambda text, temperature=0.7: temperature) == Returned(output=0.7)


async def _refuses(task: object) -> str:
    with pytest.raises(UsageError) as refused:
        as_task(task)
    return str(refused.value)


def _three(text: str, signal: object, more: object) -> None: ...


def _needs_a_name(text: str, *, model: str) -> None: ...


@pytest.mark.parametrize("function", [lambda: "hi", _three, _needs_a_name])
async def test_a_function_of_other_parameters_is_refused(function: Callable[..., Any]) -> None:
    """A function that cannot be called with an input and a signal is refused before anything runs."""
    said = await _refuses(function)
    assert "(input) or (input, signal)" in said
    assert function.__name__ in said


def _parts(text: str) -> Any:
    yield text


async def _late_parts(text: str) -> Any:
    yield text


@pytest.mark.parametrize("function", [_parts, _late_parts])
async def test_a_generator_is_refused(function: Callable[..., Any]) -> None:
    """A function that yields parts says so before it runs, as it has no one output."""
    assert "is a generator" in await _refuses(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda text: _parts(text[:]),
        lambda text: _late_parts(text[:]),
        lambda text: map(str.upper, text),
        lambda _: itertools.count(),
    ],
)
async def test_a_run_that_returns_an_iterator_has_failed(function: Callable[..., Any]) -> None:
    """What yields parts is no output either, as whoever reads it first leaves nothing for others."""
    assert "a task returns one output" in ((await run(function)).error or "")


async def test_what_has_begun_already_is_refused() -> None:
    """A coroutine in place of the function that makes it is named, with what to give instead."""
    begun = shout_later("hi")
    try:
        assert "give shout_later without calling it" in await _refuses(begun)
    finally:
        begun.close()


@pytest.mark.parametrize("task", [None, "refund-agent", 5, object()])
async def test_anything_else_is_refused_with_all_ways(task: object) -> None:
    """What is no task at all is answered with everything that is."""
    said = await _refuses(task)
    assert type(task).__name__ in said
    assert "workflow(definition, invoke_step=…)" in said
    assert "http_endpoint(…)" in said


@pytest.mark.parametrize(
    "task", [{"draft": shout}, [("draft", shout)], {"steps": {"draft": shout}}, SimpleNamespace(steps=[shout])]
)
async def test_a_bare_workflow_definition_is_refused(task: object) -> None:
    """A definition does not say how its steps are run; the message says what to wrap it in."""
    said = await _refuses(task)
    assert "definition of a workflow" in said
    assert "give workflow(definition, invoke_step=…)" in said


class RunnableSequence:
    steps = ()

    def invoke(self, value: object) -> object:
        return value


class PydanticAgent:
    def run_sync(self, prompt: str) -> str:
        return prompt


async def test_agents_of_libraries_are_refused_with_their_adapter() -> None:
    """What some library made is answered with the adapter for it, also when it has steps."""
    assert "give langchain(…)" in await _refuses(RunnableSequence())
    assert "give pydantic_ai(…)" in await _refuses(PydanticAgent())
    assert "give openai_agents(…)" in await _refuses(type("Agent", (), {"__module__": "agents.agent"})())


async def test_a_task_is_a_task() -> None:
    """What is a task already is taken as it is."""
    task = as_task(shout)
    assert as_task(task) is task
    assert task.authored == (shout,)


async def test_a_sync_function_has_a_daemon_thread_to_itself() -> None:
    """It cannot hold up the event loop, nor the end of Python, nor another run."""
    threads: list[threading.Thread] = []
    context: contextvars.ContextVar[str] = contextvars.ContextVar("context")
    context.set("of the run")
    both = threading.Barrier(2)

    def look(_text: str) -> str:
        threads.append(threading.current_thread())
        both.wait()
        return context.get()

    assert await asyncio.gather(run(look), run(look)) == [Returned(output="of the run")] * 2
    assert all(thread.daemon for thread in threads)
    assert len({threading.current_thread(), *threads}) == 3


async def test_an_async_function_runs_on_the_event_loop() -> None:
    """Clients that belong to an event loop can be shared by all runs of a worker."""

    async def look(_text: str) -> bool:
        return asyncio.get_running_loop() is loop

    loop = asyncio.get_running_loop()
    assert await run(look) == Returned(output=True)


def _raises(error: BaseException) -> Callable[[str], Any]:
    def raises(_text: str) -> None:
        raise error

    return raises


def _raises_later(error: BaseException) -> Callable[[str], Any]:
    async def raises(_text: str) -> None:
        raise error

    return raises


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class OwnError(BaseException):
    pass


@pytest.mark.parametrize("raising", [_raises, _raises_later])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (KeyError("order"), "KeyError: 'order'"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("  "), "ValueError"),
        (ExceptionGroup("all", [ExceptionGroup("some", [ValueError("one")])]), "ValueError: one"),
        (ExceptionGroup("all", [ValueError("1"), ValueError("2")]), "ExceptionGroup: all (2 sub-exceptions)"),
        (ValueError("half \ud83d of a pair"), "ValueError: half � of a pair"),
        (UnprintableError(), "UnprintableError"),
        (StopIteration(), "StopIteration"),
        (asyncio.CancelledError("by another"), "CancelledError: by another"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (OwnError("mine"), "OwnError: mine"),
    ],
)
async def test_what_a_task_raises_is_a_run_error(
    raising: Callable[[BaseException], Callable[[str], Any]], error: BaseException, said: str
) -> None:
    """An exception ends the run, not the worker: the error is its type and message, also of one that ends programs."""
    assert await run(raising(error)) == Returned(error=said)


async def test_a_long_message_is_cut() -> None:
    """A library that puts a whole page into its exception does not fill the rows."""
    error = (await run(_raises(ValueError("x" * 5000)))).error or ""
    assert len(error) == 1000
    assert error.endswith("x…")


async def test_what_a_task_awaits_may_be_cancelled_without_it() -> None:
    """A future that somebody else cancels is an error of the run; the run itself is not cancelled."""

    async def awaits(_text: str) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    assert await run(awaits) == Returned(error="CancelledError")


async def test_cancellation_is_passed_on() -> None:
    """A run that is cancelled from outside raises that, and the task sees it."""
    seen: Future[str] = Future()
    begun = asyncio.Event()

    async def waits(_text: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.set_result("cancelled")
            raise

    running = asyncio.create_task(run(waits))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen.result(0) == "cancelled"
