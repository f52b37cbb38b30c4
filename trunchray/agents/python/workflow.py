"""Workflows as tasks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.agents.python.callee import Callee
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.definition import NamedStep, read_definition
from trunchray.agents.python.failure import RunFailed, failure_text
from trunchray.agents.python.peek import peek
from trunchray.agents.python.run_result import STEP_COMPLETED, RunResult, read_result
from trunchray.agents.python.steps import Steps, snapshot
from trunchray.agents.python.task import Task
from trunchray.core.record import StepRecord
from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known when a step begins: the payload of the whole run, and the outputs of the steps before, by name."""

    payload: Any
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def workflow(
    definition: object,
    invoke_step: Callable[..., Any] | None = None,
    *,
    output: Callable[[RunResult], Any] | None = None,
    trigger: Callable[[JsonValue], Any] | None = None,
    runner: Callable[..., Any] | None = None,
) -> Task:
    """The task that runs a workflow with an input.

    Its steps are run one after another, as the definition lists them, each through
    `invoke_step(step, payload)` or `invoke_step(step, payload, signal)`, which returns the output of the step. `step`
    is what the definition has under its name. The first step is given the payload of the run, which is the input or
    what `trigger` makes of it; every other one the output of the step before. A step with a function under `input` is
    given what that makes of the `Progress` so far.

    If steps run at the same time, repeatedly or conditionally, give a `runner` instead:
    `runner(definition, payload)` or `runner(definition, payload, signal)` returns how the run ended, as a `RunResult`
    or anything with the same fields (`{runId, terminalStatus, outputs, events}`). Its definition need not be one that
    is read here.

    The output of the task is that of the step listed last, or what `output` makes of the `RunResult`. All functions may
    be async.

    Raises:
        UsageError: neither `invoke_step` nor `runner` is given, `output` or `trigger` is no function, or the definition
            is invalid (see `read_definition`).
    """
    for what, function in (("output", output), ("trigger", trigger)):
        if function is not None and not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
            raise UsageError(f"workflow: {what} must be a function, got {function!r:.60}")
    if runner is not None:
        steps = _steps_if_any(definition)
        run: _OwnRunner | _InOrder = _OwnRunner(definition, Callee.of(runner, ("definition", "payload"), "runner"))
    elif invoke_step is not None:
        steps = read_definition(definition)
        run = _InOrder(steps, Callee.of(invoke_step, ("step", "payload"), "invoke_step"))
    else:
        raise UsageError("a workflow needs a function that runs its steps: give workflow(definition, invoke_step=…)")
    written = (runner or invoke_step, definition, *(step for _, step in steps), trigger, output)
    last = steps[-1].name if steps else None
    return Task(written, _Workflow(run, last, trigger, output))


def _steps_if_any(definition: object) -> tuple[NamedStep, ...]:
    try:
        return read_definition(definition)
    except UsageError:
        return ()


@dataclass(frozen=True, slots=True)
class _Workflow:
    run: _OwnRunner | _InOrder
    last: str | None
    """The step listed last; None when that cannot be told."""
    trigger: Callable[[JsonValue], Any] | None
    output: Callable[[RunResult], Any] | None

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        payload = value if self.trigger is None else await call(self.trigger, value)
        result = await self.run(payload, signal, steps)
        return self._last_output(result) if self.output is None else await call(self.output, result)

    def _last_output(self, result: RunResult) -> Any:
        if self.last is None or self.last not in result.outputs:
            missing = "its steps cannot be told" if self.last is None else f"step {self.last!r} has no output"
            raise RunFailed(f"no output of the workflow: {missing}; pick one with workflow(…, output=…)")
        return result.outputs[self.last]


@dataclass(frozen=True, slots=True)
class _OwnRunner:
    definition: object
    runner: Callee

    async def __call__(self, payload: Any, signal: CancelSignal, steps: Steps) -> RunResult:
        result = read_result(await self.runner.call(self.definition, payload, signal=signal))
        for name, output in result.completed():
            steps.add(StepRecord("step", name, output=output))
        result.require_completed()
        return result


@dataclass(frozen=True, slots=True)
class _InOrder:
    steps: tuple[NamedStep, ...]
    invoke: Callee
    clock: Callable[[], float] = time.monotonic

    async def __call__(self, payload: Any, signal: CancelSignal, steps: Steps) -> RunResult:
        outputs: dict[str, Any] = {}
        given = payload
        for name, step in self.steps:
            if signal.aborted:
                raise RunFailed("workflow cancelled")
            make = peek(step, "input")
            if callable(make):
                given = await call(partial(make, Progress(payload, dict(outputs))))
            given = outputs[name] = await self._step(name, step, given, signal, steps)
        events = tuple({"kind": STEP_COMPLETED, "stepId": name} for name in outputs)
        return RunResult(uuid.uuid4().hex, "completed", outputs, events)

    async def _step(self, name: str, step: Any, given: Any, signal: CancelSignal, steps: Steps) -> Any:
        record, began = StepRecord("step", name, snapshot(given)), self.clock()
        try:
            output = await self.invoke.call(step, given, signal=signal)
        except Exception as e:
            steps.add(replace(record, error=failure_text(e), ms=self._since(began)))
            raise RunFailed(f"workflow failed: step {name!r}: {failure_text(e)}") from e
        steps.add(replace(record, output=snapshot(output), ms=self._since(began)))
        return output

    def _since(self, began: float) -> float:
        return (self.clock() - began) * 1000
