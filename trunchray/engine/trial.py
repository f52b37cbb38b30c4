"""One trial from start to row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from trunchray.agents.base import Agent
from trunchray.core.case import Case
from trunchray.core.trial import Failure, Result, Timing, Trace, Trial, Verdict
from trunchray.errors import ProviderError, TrialError, boundary
from trunchray.evaluators.grade import Grader


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """What all trials of one agent in one worker share. `clock` counts seconds from anywhere, `now` is UTC."""

    agent: Agent
    agent_digest: str
    grader: Grader
    worker: str
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc

    async def run(self, trial: Trial, case: Case, *, queued: float = 0) -> Result:
        """Ask the agent, grade the answer. Never raises: whatever goes wrong is in the result.

        `queued` is how long the trial waited for its turn, in seconds.
        """
        started_at, began = self.now(), self.clock()
        trace: Trace | None = None
        verdict: Verdict | None = None
        failure: Failure | None = None
        evaluator, graded_from = None, began
        try:
            with boundary(ProviderError, f"model {trial.agent!r}"):
                trace = await self.agent.run(case.input, case_id=case.id, attempt=trial.attempt)
            graded_from = self.clock()
            evaluator = self.grader.evaluator_digest(case)
            verdict = await self.grader.grade(case, trace)
        except TrialError as e:
            failure = Failure.of(e)
        ended = self.clock()
        return Result(
            trial=trial,
            eval_id=case.eval_id,
            agent_digest=self.agent_digest,
            trace=trace,
            verdict=verdict,
            failure=failure,
            evaluator_digest=evaluator,
            latency=Timing(
                queued=queued,
                model=trace.model_seconds if trace else ended - began,
                tools=trace.tools_seconds if trace else 0,
                evaluator=ended - graded_from if trace else 0,
                total=ended - began,
            ),
            started_at=started_at,
            ended_at=self.now(),
            worker=self.worker,
        )
