"""How a run of a workflow ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, peek, words

TerminalStatus = Literal["completed", "failed", "cancelled"]
STEP_COMPLETED = "StepCompleted"


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that has ended. `outputs` are by step; `events` are as its runner tells them, in their order."""

    run_id: str
    terminal_status: TerminalStatus
    outputs: Mapping[str, Any]
    events: Sequence[Any] = ()

    def completed(self) -> Iterator[tuple[str, Any]]:
        """The steps that have an output, with it, in the order in which they completed.

        Those whose completion no event tells come last, as they stand in the outputs.
        """
        told: dict[str, None] = {}
        for event in self.events:
            if peek(event, "kind", "type") == STEP_COMPLETED and (name := as_name(peek(event, "stepId"))):
                told.pop(name, None)  # a step that ran again completed when it last did
                told[name] = None
        for name in [*told, *(name for name in self.outputs if name not in told)]:
            if name in self.outputs:
                yield name, self.outputs[name]

    def require_completed(self) -> None:
        """Refuse a run that did not complete.

        Raises:
            RunFailed: it failed or was cancelled.
        """
        if self.terminal_status != "completed":
            reason = self._reason()
            raise RunFailed(
                f"workflow {self.terminal_status}: {reason}" if reason else f"workflow {self.terminal_status}"
            )

    def _reason(self) -> str | None:
        """The reason in the last event that has one."""
        for event in reversed(self.events):
            error = peek(event, "error")
            error = peek(event, "reason") if error is None else error
            if error is not None:
                said = peek(error, "message")
                step = as_name(peek(event, "stepId"))
                text = said if isinstance(said, str) else words(error)
                return f"step {step!r}: {text}" if step else text
        return None


def read_result(found: object) -> RunResult:
    """What a runner returned: an object or a mapping `{runId, terminalStatus, outputs, events}`.

    Raises:
        RunFailed: it is not such a result.
    """
    status = peek(found, "terminalStatus")
    if status not in get_args(TerminalStatus):
        raise RunFailed(
            f"the workflow ended as {status!r}: its result has a terminal status of completed, failed or cancelled"
        )
    outputs = peek(found, "outputs")
    events = peek(found, "events")
    if outputs is None:
        outputs = {}
    if not isinstance(outputs, Mapping):
        raise RunFailed(f"the outputs of the workflow are of type {type(outputs).__name__}: they are a mapping by step")
    listed = tuple(events) if isinstance(events, list | tuple) else ()
    return RunResult(str(peek(found, "runId") or ""), status, outputs, listed)
