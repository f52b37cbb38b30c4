"""One trial from start to row, in two halves: ask the agent, then grade what it answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from trunchray.agents.base import Agent
from trunchray.core.case import Case
from trunchray.core.telemetry import SILENCE, Telemetry
from trunchray.core.trial import Asked, Failure, Result, Timing, Trace, Trial, Verdict
from trunchray.errors import EvaluatorError, ProviderError, TrialError, boundary


def _utc() -> datetime:
    return datetime.now(UTC)


class AnyGrader(Protocol):
    """Decides what an answer is worth."""

    async def grade(self, case: Case, trace: Trace) -> Verdict:
        """The verdict on an agent's answer to a case.

        Raises:
            TrialError: grading failed; the answer can be graded again.
        """
        ...

    def evaluator_digest(self, case: Case) -> str:
        """64 hex digits of all that decides how the case is graded."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of asking one trial: just now, or, when it is `reused`, some time before."""

    trial: Trial
    case: Case
    asked: Asked
    reused: bool = False
    earlier_errors: int = 0
    """Rows of the trial before that ended in an error."""


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """What all trials of one agent in one worker share. `clock` counts seconds from anywhere, `now` is UTC.

    The halves never raise but for cancellation: whatever goes wrong is in what they return.
    """

    agent: Agent
    agent_digest: str
    grader: AnyGrader
    worker: str
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc
    telemetry: Telemetry = SILENCE

    async def generate(self, trial: Trial, case: Case, *, queued: float = 0) -> Asked:
        """Ask the agent. `queued` is how long the trial waited for its turn, in seconds."""
        started_at, began = self.now(), self.clock()
        trace: Trace | None = None
        failure: Failure | None = None
        try:
            with boundary(ProviderError, f"model {trial.agent!r}"):
                trace = await self.agent.run(case.input, case_id=case.id, attempt=trial.attempt)
        except TrialError as e:
            failure = Failure.of(e)
            trace = e.trace if isinstance(e.trace, Trace) else None
        return Asked(started_at, self.clock() - began, queued, trace, failure)

    async def grade(self, generation: Generation) -> Result:
        """Grade what was generated; a trial that failed is an error already."""
        began, asked = self.clock(), generation.asked
        trace, failure = asked.trace, asked.failure
        verdict: Verdict | None = None
        evaluator: str | None = None
        if trace and not failure:
            try:
                with boundary(EvaluatorError, f"case {generation.case.id!r}"):
                    evaluator = self.grader.evaluator_digest(generation.case)
                with self.telemetry.span("evaluator") as span:
                    verdict = await self.grader.grade(generation.case, trace)
                    span.add(outcome="passed" if verdict.passed else "failed", score=verdict.score)
            except TrialError as e:
                failure = Failure.of(e)
        graded = self.clock() - began
        return Result(
            trial=generation.trial,
            eval_id=generation.case.eval_id,
            agent_digest=self.agent_digest,
            trace=trace,
            verdict=verdict,
            failure=failure,
            evaluator_digest=evaluator,
            latency=Timing(
                queued=asked.queued,
                model=trace.model_seconds if trace else asked.seconds,
                tools=trace.tools_seconds if trace else 0,
                evaluator=graded,
                total=asked.seconds + graded,
            ),
            started_at=asked.started_at,
            ended_at=self.now(),
            worker=self.worker,
            earlier_errors=generation.earlier_errors,
            reused=generation.reused,
        )
