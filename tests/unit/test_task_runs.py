"""Runs of tasks in trials: inputs, limits in time, and what is recorded."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from support.places import unplaced_run
from trunchray.adapters import parts
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import Perform, Task, as_task
from trunchray.core.case import CaseInput
from trunchray.core.record import Returned, StepRecord
from trunchray.core.trial import Result, Trace, Trial, Verdict

CASE = CaseInput(prompt="hi")


@dataclass
class Clock:
    """Stands still but for what is added to it."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def _task(perform: Perform, *, alone: bool = False) -> Task:
    return Task(("a test",), perform, alone)


async def trace_of(task: object, case: CaseInput = CASE, *, limit: float = 60, **agent: Any) -> Trace:
    running = PythonTaskAgent(as_task(task), timeout=limit, **agent)
    trace = await running.run(case, case_id="case", attempt=1)
    return trace.model_copy(update={"returned": trace.returned and unplaced_run(trace.returned)})


async def test_a_text_is_the_input_itself() -> None:
    """A prompt that is no structured input is given as text, even if it looks like JSON."""
    trace = await trace_of(lambda value: [value], CaseInput(prompt="[1]"))
    assert trace.returned == Returned(output=["[1]"], ms=trace.returned.ms, form="json")


async def test_a_structured_input_is_its_value() -> None:
    """An input that is no text arrives as the value that it was."""
    case = CaseInput(prompt='{"id":7,"tags":["a"]}', structured=True)
    assert (await trace_of(lambda value: value["tags"], case)).output == '["a"]'


async def test_each_run_has_an_input_of_its_own() -> None:
    """A task that changes its input does not change that of the next attempt."""
    agent = PythonTaskAgent(as_task(lambda value: value.pop()), timeout=60)
    case = CaseInput(prompt="[1,2]", structured=True)
    traces = [await agent.run(case, case_id="case", attempt=attempt) for attempt in (1, 2)]
    assert [trace.output for trace in traces] == ["2", "2"]


async def test_time_is_that_of_the_run_by_the_clock() -> None:
    """`ms` is what the clock says between the beginning and the end of the run, of a failed one as well."""
    clock = Clock()

    def passes(text: str) -> str:
        clock.now += 1.5
        return text[1000]

    failed = await trace_of(passes, clock=clock)
    assert failed.returned == Returned(ms=1500, error="IndexError: string index out of range")
    assert failed.model_seconds == 1.5


async def test_a_run_that_takes_too_long_by_the_clock_has_timed_out() -> None:
    """A task that held up everything, its own limit included, is found out afterwards."""
    clock = Clock()

    async def blocks(_text: str) -> str:
        clock.now += 61
        return "too late"

    trace = await trace_of(blocks, clock=clock)
    assert trace.returned == Returned(ms=61_000, error="timed out after 60 s")
    assert (trace.output, trace.finish_reason) == ("", "error")


async def test_a_function_that_ignores_its_signal_times_out() -> None:
    """The run ends at its limit, though the thread goes on; its signal is set, so that it could have known."""
    seen: Future[CancelSignal] = Future()
    over = threading.Event()

    def ignores(_text: str, signal: CancelSignal) -> None:
        seen.set_result(signal)
        over.wait()

    trace = await trace_of(ignores, limit=0.01)
    over.set()
    assert trace.returned.error == "timed out after 0.01 s"
    assert seen.result(0).aborted
    assert seen.result(0).wait(0)


async def test_a_function_that_minds_its_signal_ends() -> None:
    """Waiting for the signal in a thread ends when the run has timed out."""
    ended: Future[bool] = Future()
    trace = await trace_of(lambda _text, signal: ended.set_result(signal.wait()), limit=0.01)
    assert trace.returned.error == "timed out after 0.01 s"
    assert await asyncio.wrap_future(ended)


async def test_a_coroutine_is_cancelled_when_it_times_out() -> None:
    """An async task is stopped at its limit, and has the time to put its things in order."""
    tidied = []

    async def waits(_text: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append("tidied")

    assert (await trace_of(waits, limit=0.01)).returned.error == "timed out after 0.01 s"
    assert tidied == ["tidied"]


async def test_a_coroutine_that_will_not_be_cancelled_is_left_alone() -> None:
    """A task that swallows its cancellation does not hold up the trials after it."""
    over = asyncio.Event()

    async def stays(_text: str) -> str:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "after all"

    trace = await trace_of(stays, limit=0.01, grace=0)
    assert trace.returned.error == "timed out after 0.01 s"
    over.set()


async def test_cancellation_ends_the_run_and_sets_its_signal() -> None:
    """A trial that is cancelled passes that on: to the coroutine, to its signal and to who waits for the trial."""
    begun: Future[CancelSignal] = Future()
    ended: list[str] = []

    async def waits(_text: str, signal: CancelSignal) -> None:
        begun.set_result(signal)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    running = asyncio.create_task(trace_of(waits))
    signal = await asyncio.wrap_future(begun)
    assert not signal.aborted
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (signal.aborted, ended) == (True, ["cancelled"])


async def test_a_run_that_ends_leaves_its_signal_alone() -> None:
    """A signal that somebody kept is not set by a run that ended in time."""
    signals: list[CancelSignal] = []
    await trace_of(lambda _text, signal: signals.append(signal))
    assert not signals[0].aborted


async def test_a_task_may_cancel_itself() -> None:
    """A task that cancels the run it is in has failed; nobody else is cancelled."""

    async def gives_up(_text: str) -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(0)

    assert (await trace_of(gives_up)).returned.error == "CancelledError: the task cancelled itself"


@pytest.mark.parametrize("ends", [SystemExit(1), KeyboardInterrupt()])
async def test_what_ends_programs_does_not_end_the_worker(ends: BaseException) -> None:
    """A task that exits is a failed run like any other, on the event loop as in a thread."""

    async def leaves(_text: str) -> None:
        raise ends

    def leaves_thread(_text: str) -> None:
        raise ends

    for task in (leaves, leaves_thread):
        assert (await trace_of(task)).returned.error.startswith(type(ends).__name__)


async def test_siblings_of_a_run_that_hangs_are_unaffected() -> None:
    """While one run hangs, others of the same agent go on."""
    over = threading.Event()
    agent = PythonTaskAgent(as_task(lambda text: over.wait() if text == "hang" else text), timeout=0.05)
    hanging, quick = await asyncio.gather(
        agent.run(CaseInput(prompt="hang"), case_id="a", attempt=1),
        agent.run(CaseInput(prompt="quick"), case_id="b", attempt=1),
    )
    over.set()
    assert (hanging.returned.error, quick.output) == ("timed out after 0.05 s", "quick")


async def test_runs_that_must_not_overlap_take_turns() -> None:
    """What one run is observed to do cannot be taken for another's; waiting for the turn is no part of the run."""
    clock, inside = Clock(), []

    async def one_at_a_time(_value: object, _signal: CancelSignal, _steps: Steps) -> int:
        inside.append("in")
        count = len(inside)
        clock.now += 1
        await asyncio.sleep(0)
        inside.pop()
        return count

    agent = PythonTaskAgent(_task(one_at_a_time, alone=True), timeout=60, clock=clock)
    traces = await asyncio.gather(*(agent.run(CASE, case_id="case", attempt=n) for n in (1, 2, 3)))
    assert [(trace.output, trace.returned.ms) for trace in traces] == [("1", 1000)] * 3


async def test_a_run_that_timed_out_keeps_what_was_observed() -> None:
    """The steps before the limit say where it hung."""

    async def hangs(_value: object, _signal: CancelSignal, steps: Steps) -> None:
        steps.start("1", "search")
        await asyncio.Event().wait()

    trace = await trace_of(_task(hangs), limit=0.01)
    assert trace.returned.steps == (StepRecord("tool", "search"),)
    assert [step.name for step in trace.steps] == ["search"]


class Answer(BaseModel):
    text: str


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no")


class Printed:
    def __repr__(self) -> str:
        return "<an answer>"


@pytest.mark.parametrize(
    ("output", "stored", "form"),
    [
        ("text\n", "text\n", "text"),
        ('{"a": 1}', '{"a": 1}', "text"),
        ("half \ud83d of a pair", "half � of a pair", "text"),
        (None, "null", "json"),
        (True, "true", "json"),
        (1.0, "1", "json"),
        ({"b": 1, "a": [None]}, '{"a":[null],"b":1}', "json"),
        (Answer(text="yes"), '{"text":"yes"}', "json"),
        (("a", "b"), '["a","b"]', "json"),
        ({"big": 2**60}, f'{{"big":{2**60}}}', "json"),
        ({"a": "\ud83d"}, '{"a":"�"}', "json"),
        (Printed(), "<an answer>", "repr"),
        (float("nan"), "nan", "repr"),
        (Unprintable(), "<Unprintable that cannot be printed: ValueError>", "repr"),
    ],
)
async def test_an_output_is_stored_as_text(output: Any, stored: str, form: str) -> None:
    """A text is stored as it is, other values as JSON, else as Python prints them; checks see the value."""
    trace = await trace_of(lambda _text: output)
    assert (trace.output, trace.returned.form) == (stored, form)
    assert trace.returned.output is output
    assert trace.finish_reason == "stop"


async def test_a_giant_output_is_cut_where_it_is_stored() -> None:
    """Rows stay of a size that can be stored; a check still sees the whole output."""
    trace = await trace_of(lambda _text: "x" * 5_000_000)
    assert trace.output == "x" * 4_000_000 + "… [cut: 5000000 characters]"
    assert len(trace.returned.output) == 5_000_000


async def test_json_that_is_cut_is_no_longer_called_json() -> None:
    """Who reads a row does not fail at the half of a value."""
    trace = await trace_of(lambda _text: ["x" * 5_000_000])
    assert trace.output.endswith("… [cut: 5000004 characters]")
    assert trace.returned.form == "repr"


async def test_steps_are_stored_as_what_was_observed() -> None:
    """Each step is stored with its name, or its kind where it has none, and all that is known of it."""

    async def observed(_value: object, _signal: CancelSignal, steps: Steps) -> str:
        steps.model()
        steps.start("1", "search", {"query": "refund"})
        steps.done("1", ["policy"])
        return "done"

    trace = await trace_of(_task(observed))
    assert [(step.kind, step.name, step.output) for step in trace.steps] == [
        ("observed", "llm", {"kind": "llm"}),
        (
            "observed",
            "search",
            {"kind": "tool", "name": "search", "input": {"query": "refund"}, "output": ["policy"]},
        ),
    ]


async def test_giant_steps_are_cut_where_they_are_stored() -> None:
    """Long inputs and outputs are shortened, and of too many steps the first are kept and all are counted."""

    async def observed(_value: object, _signal: CancelSignal, steps: Steps) -> str:
        steps.add(StepRecord("tool", "read", output=["x" * 200_000]))
        for _ in range(60):
            steps.add(StepRecord("tool", "read", output="x" * 90_000))
        return "done"

    trace = await trace_of(_task(observed))
    first, last = trace.steps[0], trace.steps[-1]
    assert isinstance(first.output, dict)
    assert str(first.output["output"]).endswith("x… [cut: 200004 characters]")
    assert (last.kind, last.name, last.input) == ("limit", "stored_steps", 61)
    assert len(trace.returned.steps) == 61


async def test_what_is_observed_does_not_change_afterwards() -> None:
    """An input that a tool changes later is recorded as it was."""

    async def observed(_value: object, _signal: CancelSignal, steps: Steps) -> str:
        query = {"text": "refund"}
        steps.start("1", "search", query)
        query["text"] = "changed"
        return "done"

    assert (await trace_of(_task(observed))).returned.steps[0].input == {"text": "refund"}


@pytest.mark.parametrize(
    "odd",
    ["half \ud83d of a pair", {"half \ud83d": 1}, {"a": "\ud83d"}, Unprintable(), float("inf"), b"\xff", {1: {2}}],
)
async def test_whatever_a_task_does_can_be_stored(odd: Any) -> None:
    """Broken text and values that are no JSON, as output and in steps, become a row that reads back."""

    async def observed(_value: object, _signal: CancelSignal, steps: Steps) -> Any:
        steps.add(StepRecord("tool", odd if isinstance(odd, str) else "read", odd, odd))
        return odd

    trace = await trace_of(_task(observed))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    trial = Trial(key="0" * 64, case_id="case", agent="task", attempt=1)
    result = Result(
        trial=trial,
        eval_id="e",
        agent_digest="d",
        trace=trace,
        verdict=Verdict(passed=True, score=1),
        started_at=now,
        ended_at=now,
    )
    stored = parts.decode(parts.encode([parts.row(result, release_digest="r", versions="{}")])).to_pylist()
    assert json.loads(stored[0]["steps"])[0]["kind"] == "observed"
    assert stored[0]["output"] == trace.output


async def test_closing_gives_back_what_the_task_holds() -> None:
    """The agent closes a task that holds something, and needs nothing of one that does not."""
    closed: list[str] = []

    async def release() -> None:
        closed.append("closed")

    async def echo(value: Any, _signal: CancelSignal, _steps: Steps) -> Any:
        return value

    await PythonTaskAgent(Task(("a test",), echo, release=release), timeout=60).close()
    await PythonTaskAgent(as_task(str), timeout=60).close()
    assert closed == ["closed"]
