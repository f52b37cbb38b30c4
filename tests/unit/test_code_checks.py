"""Running checks that are code: whatever one does, it fails itself and nothing else."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from support.checked import a_run
from support.ids import shown
from support.places import unplaced_result
from trunchray.core.check_result import CheckResult
from trunchray.core.record import RunRecord, StepRecord
from trunchray.evaluators.python.code_check import own_copy, run_check
from trunchray.evaluators.python.comparing import matches
from trunchray.evaluators.python.schema import fits_schema
from trunchray.evaluators.python.words import avoids, mentions

SOON, LONG = 0.05, 60.0
"""Seconds: of what is to run out, and of what is not."""

PASSED = CheckResult(passed=True, value=1.0)


async def ran(check: Any, run: RunRecord | None = None, seconds: float = LONG) -> CheckResult:
    return unplaced_result(await run_check(check, run or a_run("out", "out"), seconds))


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Set when the test ends, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_sync_function_is_given_the_run() -> None:
    """As one record: input, output, what is expected, steps and time."""

    def check(run: RunRecord) -> bool:
        return (run.input, run.output, run.expected_output, len(run.steps), run.ms) == ("in", "out", "want", 1, 7)

    assert await ran(check, a_run("out", "want", steps="a", ms=7)) == PASSED


async def test_an_async_function_is_awaited() -> None:
    """On the event loop that runs everything else, so that it can use clients of that loop."""
    loops: list[object] = []

    async def check(_: RunRecord) -> float:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return 0.5

    assert (await ran(check)).value == 0.5
    assert loops == [asyncio.get_running_loop()]


class Callable:
    def __call__(self, run: RunRecord) -> bool:
        return run.output == "out"


class AsyncCallable:
    async def __call__(self, run: RunRecord) -> bool:
        return run.output == "out"

    async def method(self, run: RunRecord) -> bool:
        return run.output == "out"


@pytest.mark.parametrize(
    "check",
    [
        Callable(),
        AsyncCallable(),
        AsyncCallable().method,
        functools.partial(lambda wanted, run: run.output == wanted, "out"),
        lambda run: AsyncCallable().method(run),
        matches(),
        fits_schema(str),
        fits_schema(lambda output: output == "out"),
    ],
    ids=["object", "async object", "async method", "partial", "lambda of async", "helper", "type", "function"],
)
async def test_anything_that_can_be_called_is_a_check(check: Any) -> None:
    """What it returns is awaited when it can be."""
    assert await ran(check) == PASSED


async def test_an_async_schema_is_awaited() -> None:
    """Like any async check."""

    async def issues(output: object) -> list[str]:
        return [] if output == "out" else ["not out"]

    assert await ran(fits_schema(issues)) == PASSED
    assert (await ran(fits_schema(issues), a_run("in"))).explanation == "not out"


@pytest.mark.parametrize(
    ("error", "explanation"),
    [
        (ValueError("no such field"), "raised ValueError: no such field"),
        (KeyError("a"), "raised KeyError: 'a'"),
        (AssertionError(), "raised AssertionError"),
        (TimeoutError("my own"), "raised TimeoutError: my own"),
        (SystemExit(3), "raised SystemExit: 3"),
        (asyncio.CancelledError(), "raised CancelledError"),
        (RecursionError("too deep"), "raised RecursionError: too deep"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "raised ExceptionGroup: two (2 sub-exceptions)"),
    ],
    ids=shown,
)
async def test_a_check_that_raises_fails_closed(error: BaseException, explanation: str) -> None:
    """Sync or async, whatever it is."""

    def check(_: RunRecord) -> bool:
        raise error

    async def later(_: RunRecord) -> bool:
        raise error

    assert await ran(check) == CheckResult.failed(explanation)
    assert await ran(later) == CheckResult.failed(explanation)


async def test_a_helpers_function_that_raises_fails_closed() -> None:
    """An accessor of `matches`, words for a case, a schema: what is theirs is the check's."""

    def refused(_: object) -> Any:
        raise KeyError("total")

    for helper in (matches(refused), mentions(refused), avoids(refused), fits_schema(refused)):
        assert await ran(helper) == CheckResult.failed("raised KeyError: 'total'")


async def test_stop_iteration_fails_closed() -> None:
    """Which no future can carry."""
    assert (await ran(lambda _: next(iter(())))).explanation in (
        "raised StopIteration",
        "raised RuntimeError: coroutine raised StopIteration",
    )


async def test_an_error_that_cannot_be_printed_is_named() -> None:
    """By its type alone."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    def check(_: RunRecord) -> bool:
        raise Silent

    assert (await ran(check)).explanation == "raised Silent"


async def test_a_check_with_other_parameters_fails_closed() -> None:
    """It is called with the run and nothing else."""
    assert ((await ran(lambda run, more: True)).explanation or "").startswith("raised TypeError: ")


async def test_a_result_that_raises_when_it_is_read_fails_closed() -> None:
    """Reading it is part of the check."""

    class Trap:
        @property
        def passed(self) -> bool:
            raise ValueError("not yet")

    assert (await ran(lambda _: Trap())).explanation == "raised ValueError: not yet"


async def test_a_sync_check_that_hangs_fails_closed(released: threading.Event) -> None:
    """Nobody waits for its thread, which does not keep the process."""
    threads: list[threading.Thread] = []

    def check(_: RunRecord) -> bool:
        threads.append(threading.current_thread())
        return released.wait()

    assert await ran(check, seconds=SOON) == CheckResult.failed("timed out after 0.05 s")
    assert threads[0].is_alive()
    assert threads[0].daemon


async def test_an_async_check_that_hangs_fails_closed() -> None:
    """It is cancelled."""
    told: list[bool] = []

    async def check(_: RunRecord) -> bool:
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            told.append(True)
            raise

    assert await ran(check, seconds=SOON) == CheckResult.failed("timed out after 0.05 s")
    await asyncio.sleep(0)
    assert told == [True]


async def test_an_async_check_that_will_not_be_cancelled_is_not_waited_for(released: threading.Event) -> None:
    """It fails at its time all the same."""
    go = asyncio.Event()

    async def check(_: RunRecord) -> bool:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return True

    assert await ran(check, seconds=SOON) == CheckResult.failed("timed out after 0.05 s")
    go.set()


async def test_one_that_hangs_holds_up_no_other(released: threading.Event) -> None:
    """However many there are: each has a thread of its own."""
    hanging = [run_check(lambda _: released.wait(), a_run(), SOON) for _ in range(40)]
    found = await asyncio.gather(*hanging, *(ran(lambda _: True) for _ in range(40)))
    assert [each.passed for each in found] == [False] * 40 + [True] * 40


async def test_a_coroutine_that_comes_too_late_is_not_run(released: threading.Event) -> None:
    """It is closed, so that Python does not complain that nobody awaited it."""
    made: list[Coroutine[Any, Any, bool]] = []
    ran_late: list[bool] = []

    async def late() -> bool:
        ran_late.append(True)
        return True

    def check(_: RunRecord) -> Any:
        released.wait()
        made.append(late())
        return made[0]

    assert not (await ran(check, seconds=SOON)).passed
    released.set()
    while not (made and inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED):  # noqa: ASYNC110 - a thread sets no event of ours
        await asyncio.sleep(0)
    assert ran_late == []


async def test_cancelling_the_evaluation_cancels_its_checks() -> None:
    """It is no failure of theirs."""
    began = asyncio.Event()

    async def check(_: RunRecord) -> bool:
        began.set()
        return await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(ran(check))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_check_has_the_context_of_the_evaluation() -> None:
    """Context variables that were set around it are set in its thread."""
    name = contextvars.ContextVar("name", default="nobody")
    name.set("somebody")
    assert await ran(lambda _: name.get() == "somebody") == PASSED


class Model(BaseModel):
    tags: list[str]


async def test_no_check_sees_what_another_did_to_the_run() -> None:
    """Each has a deep copy: of input, output, what is expected, and steps."""
    run = RunRecord(
        input={"a": [1]},
        output=Model(tags=["x"]),
        expected_output={"b": [2]},
        steps=(StepRecord("tool", "t", input={"c": [3]}),),
        has_expected_output=True,
    )

    def vandal(run: Any) -> bool:
        run.input["a"].append("gone")
        run.output.tags.append("gone")
        run.expected_output.clear()
        run.steps[0].input["c"].append("gone")
        return True

    async def later(run: Any) -> bool:
        return vandal(run)

    assert (await asyncio.gather(ran(vandal, run), ran(later, run), ran(vandal, run))) == [PASSED] * 3
    assert run == RunRecord(
        input={"a": [1]},
        output=Model(tags=["x"]),
        expected_output={"b": [2]},
        steps=(StepRecord("tool", "t", input={"c": [3]}),),
        has_expected_output=True,
    )


async def test_an_output_that_cannot_be_copied_is_shared() -> None:
    """The rest is copied nevertheless."""
    lock = threading.Lock()
    output = SimpleNamespace(lock=lock)
    run = RunRecord(input=[1], output=output, expected_output=[2], steps=(StepRecord("tool", "t", output=lock),), ms=3)
    copied = own_copy(run)
    assert copied == run
    assert copied.output is output
    assert copied.input is not run.input
    assert copied.expected_output is not run.expected_output
    assert await ran(lambda run: run.output.lock is lock, run) == PASSED


async def test_numbers_of_numpy_count() -> None:
    """As what a check computes often is."""
    assert await ran(lambda _: np.mean([1.0, 1.0])) == PASSED
    assert await ran(lambda run: np.str_(run.output) == "out") == PASSED
