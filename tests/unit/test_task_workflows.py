"""Workflows as tasks: what a definition is, who runs its steps, and what comes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from support.places import unplaced_run
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.definition import read_definition
from trunchray.agents.python.run_result import RunResult
from trunchray.agents.python.task import Task
from trunchray.agents.python.workflow import Progress, workflow
from trunchray.core.case import CaseInput
from trunchray.core.record import Returned, StepRecord
from trunchray.errors import UsageError


def draft(text: Any) -> str:
    return f"draft of {text}"


def review(text: Any) -> str:
    return f"review of {text}"


def call_it(step: Callable[[Any], Any], payload: Any) -> Any:
    return step(payload)


async def run(task: Task, value: Any = "hi") -> Returned:
    return unplaced_run(await task.run(value, CancelSignal()))


def timeless(steps: tuple[StepRecord, ...]) -> list[tuple[Any, ...]]:
    return [(step.kind, step.name, step.input, step.output, step.error) for step in steps]


DEFINITIONS = [
    {"draft": draft, "review": review},
    [("draft", draft), ("review", review)],
    [draft, review],
    {"steps": {"draft": draft, "review": review}},
    {"steps": [draft, review]},
    SimpleNamespace(steps={"draft": draft, "review": review}),
    SimpleNamespace(steps={"review": review, "draft": draft}, step_order=["draft", "review"]),
    {"steps": {"review": review, "draft": draft}, "stepOrder": ["draft", "review"]},
]


@pytest.mark.parametrize("definition", DEFINITIONS)
async def test_definitions_of_all_forms_run_in_order(definition: Any) -> None:
    """Steps run as they are listed, each with the output of the one before; the last listed one's is the result."""
    returned = await run(workflow(definition, call_it))
    assert returned.output == "review of draft of hi"
    assert timeless(returned.steps) == [
        ("step", "draft", "hi", "draft of hi", None),
        ("step", "review", "draft of hi", "review of draft of hi", None),
    ]


def test_steps_may_name_themselves() -> None:
    """A listed step is named by its id or name, as a mapping or as an object."""
    steps = read_definition([{"id": "a", "name": "not this"}, {"name": "b"}, SimpleNamespace(id="c")])
    assert [step.name for step in steps] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({}, "has no steps"),
        ([], "has no steps"),
        ({"steps": []}, "has no steps"),
        ([draft, draft], "two steps named 'draft'"),
        ([{"agent": "a"}], "step 1 of the workflow has no name"),
        ([draft, 3], "step 2 of the workflow has no name"),
        ({"": draft}, "step 1 of the workflow has no name"),
        ({"steps": {"a": draft}, "stepOrder": ["b"]}, "does not list each of"),
        ({"steps": {"a": draft}, "stepOrder": ["a", "a"]}, "does not list each of"),
        ({"steps": {"a": draft}, "stepOrder": "a"}, "does not list each of"),
        ("draft, review", "this is of type str"),
        (None, "this is of type NoneType"),
        (SimpleNamespace(steps=3), "this is of type SimpleNamespace"),
    ],
)
def test_what_is_no_definition_is_refused(definition: Any, said: str) -> None:
    """A definition is read when the task is made, so that what is wrong with it shows before anything runs."""
    with pytest.raises(UsageError, match=said):
        workflow(definition, call_it)


def test_a_workflow_without_somebody_to_run_it_is_refused() -> None:
    """A definition cannot run without who invokes its steps."""
    with pytest.raises(UsageError, match="invoke_step"):
        workflow({"draft": draft})


@pytest.mark.parametrize("what", ["output", "trigger"])
def test_what_has_to_be_a_function_and_is_none_is_refused(what: str) -> None:
    """The name of a step, say, would fail every run."""
    more: dict[str, Any] = {what: "draft"}
    with pytest.raises(UsageError, match=f"workflow: {what} must be a function, got 'draft'"):
        workflow({"draft": draft}, call_it, **more)


def test_an_invoker_of_other_parameters_is_refused() -> None:
    """Who invokes steps takes a step and its payload, and may take the signal."""
    with pytest.raises(UsageError, match=r"\(step, payload\) or \(step, payload, signal\)"):
        workflow({"draft": draft}, lambda step: step)


async def test_steps_are_invoked_with_step_payload_and_signal() -> None:
    """The step is given as it stands in the definition, whatever it is; the invoker may be async."""
    seen: list[Any] = []

    async def invoke(step: Any, payload: Any, signal: CancelSignal) -> Any:
        seen.append((step, payload, signal.aborted))
        return len(seen)

    returned = await run(workflow({"a": {"model": "m"}, "b": 7}, invoke), {"id": 1})
    assert (returned.output, seen) == (2, [({"model": "m"}, {"id": 1}, False), (7, 1, False)])


async def test_trigger_makes_the_payload() -> None:
    """The first step is given what `trigger` makes of the input, or else the input."""
    task = workflow({"draft": draft}, call_it, trigger=lambda value: value["text"])
    assert (await run(task, {"text": "hi"})).output == "draft of hi"


async def test_output_picks_the_result() -> None:
    """`output` is given the finished run: its outputs by step, and that it completed."""
    seen: list[RunResult] = []

    async def pick(result: RunResult) -> Any:
        seen.append(result)
        return result.outputs["draft"]

    assert (await run(workflow(DEFINITIONS[0], call_it, output=pick))).output == "draft of hi"
    assert (seen[0].terminal_status, list(seen[0].outputs)) == ("completed", ["draft", "review"])


async def test_a_step_may_say_what_it_is_given() -> None:
    """A step with a function under `input` is given what that makes of the payload and the outputs so far."""
    merged = {
        "a": SimpleNamespace(),
        "b": SimpleNamespace(),
        "c": SimpleNamespace(input=lambda so_far: (so_far.payload, so_far.outputs["a"])),
    }
    returned = await run(workflow(merged, lambda _step, payload: [payload]))
    assert returned.output == [("hi", ["hi"])]
    assert Progress("hi").outputs == {}


async def test_a_step_that_throws_fails_the_run() -> None:
    """The steps that completed are kept, the one that failed says why, and none is run after it."""

    def fails(_text: Any) -> Any:
        raise KeyError("order")

    returned = await run(workflow([draft, ("fails", fails), review], call_it))
    assert returned.error == "workflow failed: step 'fails': KeyError: 'order'"
    assert timeless(returned.steps) == [
        ("step", "draft", "hi", "draft of hi", None),
        ("step", "fails", "draft of hi", None, "KeyError: 'order'"),
    ]


async def test_a_trigger_or_output_that_throws_fails_the_run() -> None:
    """What belongs to the task fails with the task."""
    task = workflow({"draft": draft}, call_it, trigger=lambda value: value["text"])
    assert (await run(task, {})).error == "KeyError: 'text'"
    task = workflow({"draft": draft}, call_it, output=lambda result: result.outputs["other"])
    failed = await run(task)
    assert (failed.error, len(failed.steps)) == ("KeyError: 'other'", 1)


async def test_an_aborted_workflow_runs_no_further_step() -> None:
    """A signal that is set between two steps ends the run as cancelled."""

    def stop(_step: Any, _payload: Any, signal: CancelSignal) -> None:
        signal.abort()

    returned = await run(workflow([draft, review], stop))
    assert (returned.error, len(returned.steps)) == ("workflow cancelled", 1)


async def test_a_workflow_that_hangs_times_out_with_its_steps() -> None:
    """The steps that completed before the limit are kept."""

    async def invoke(step: Callable[[Any], Any], payload: Any) -> Any:
        if step is review:
            await asyncio.Event().wait()
        return step(payload)

    agent = PythonTaskAgent(workflow([draft, review], invoke), timeout=0.05)
    trace = await agent.run(CaseInput(prompt="hi"), case_id="case", attempt=1)
    assert trace.returned.error == "timed out after 0.05 s"
    assert [step.name for step in trace.returned.steps] == ["draft"]


async def test_the_time_of_each_step_is_known() -> None:
    """Steps that are run here say how long they took, in milliseconds."""
    returned = await run(workflow(DEFINITIONS[0], call_it))
    assert all(step.ms is not None and step.ms >= 0 for step in returned.steps)


def ends(result: Any) -> Callable[[Any, Any], Any]:
    async def runner(_definition: Any, _payload: Any) -> Any:
        return result

    return runner


def completed(step: str, **more: Any) -> dict[str, Any]:
    return {"kind": "StepCompleted", "stepId": step, **more}


async def test_an_own_runner_is_given_definition_and_payload() -> None:
    """Who has a runner of its own gets the definition as it is, the payload, and the signal where it takes one."""
    definition = DEFINITIONS[0]

    def runner(given: Any, payload: Any, signal: CancelSignal) -> Any:
        same = given is definition and not signal.aborted
        return RunResult("1", "completed", {"draft": None, "review": (same, payload)})

    assert (await run(workflow(definition, runner=runner, trigger=str.upper))).output == (True, "HI")


@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
async def test_steps_of_an_own_runner_come_in_the_order_of_completion(kind: Callable[..., Any]) -> None:
    """Each completed step is a step with its output, as the events tell; the result is the last *listed* one's."""
    result = kind(
        runId="1",
        terminalStatus="completed",
        outputs={"draft": 1, "review": 2, "untold": 3},
        events=[
            {"kind": "StepStarted", "stepId": "draft"},
            completed("review"),
            completed("draft", attempt=1),
            SimpleNamespace(kind="StepCompleted", step_id="skipped"),
        ],
    )
    returned = await run(workflow(DEFINITIONS[0], runner=ends(result)))
    assert timeless(returned.steps) == [
        ("step", "review", None, 2, None),
        ("step", "draft", None, 1, None),
        ("step", "untold", None, 3, None),
    ]
    assert returned.output == 2


async def test_a_step_that_ran_again_completed_when_it_last_did() -> None:
    """A loop that runs a step twice leaves one step, where it ended."""
    result = RunResult(
        "1", "completed", {"draft": 1, "review": 2}, [completed(n) for n in ("draft", "review", "draft")]
    )
    returned = await run(workflow(DEFINITIONS[0], runner=ends(result)))
    assert [step.name for step in returned.steps] == ["review", "draft"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_failed_or_cancelled_run_is_a_run_error(status: str) -> None:
    """A run that did not complete has no output, though some of its steps completed."""
    failed = await run(
        workflow(DEFINITIONS[0], runner=ends({"terminalStatus": status, "outputs": {"draft": 1}, "events": []}))
    )
    assert failed.error == f"workflow {status}"
    assert [step.name for step in failed.steps] == ["draft"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"kind": "StepFailed", "stepId": "draft", "error": {"message": "no model"}}, "step 'draft': no model"),
        (SimpleNamespace(kind="RunFailed", error="no model"), "no model"),
        ({"kind": "CancelRequested", "reason": "lifetime expired"}, "lifetime expired"),
        ({"kind": "StepFailed", "error": {"code": 3}}, '{"code":3}'),
    ],
)
async def test_a_failed_run_says_why_where_its_events_do(event: Any, said: str) -> None:
    """The last event that tells of an error or a reason explains the failure."""
    events = [{"kind": "StepFailed", "error": "an earlier one"}, event, completed("review")]
    failed = await run(workflow(DEFINITIONS[0], runner=ends({"terminalStatus": "failed", "events": events})))
    assert failed.error == f"workflow failed: {said}"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "the workflow ended as None"),
        ({"terminalStatus": "running", "outputs": {}}, "the workflow ended as 'running'"),
        ({"outputs": {"review": 1}}, "the workflow ended as None"),
        ({"terminalStatus": "completed", "outputs": [1]}, "the outputs of the workflow are of type list"),
        ({"terminalStatus": "completed"}, "step 'review' has no output; pick one with workflow(…, output=…)"),
        ({"terminalStatus": "completed", "outputs": {"draft": 1}}, "step 'review' has no output"),
    ],
)
async def test_a_result_of_another_form_is_a_run_error(result: Any, said: str) -> None:
    """What a runner returns is checked: a run that says nothing of how it ended has not completed."""
    assert said in ((await run(workflow(DEFINITIONS[0], runner=ends(result)))).error or "")


async def test_an_own_runner_may_have_a_definition_of_its_own() -> None:
    """A definition that only its runner understands needs an `output` to pick the result."""
    result = {"terminalStatus": "completed", "outputs": {"draft": 1}}
    assert "its steps cannot be told" in ((await run(workflow("draft.yaml", runner=ends(result)))).error or "")
    task = workflow("draft.yaml", runner=ends(result), output=lambda finished: finished.outputs["draft"])
    assert (await run(task)).output == 1
