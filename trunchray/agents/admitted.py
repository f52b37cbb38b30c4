"""An agent whose runs are let in one by one, as a model's requests are: many workers share one limit."""

from __future__ import annotations

from dataclasses import dataclass

from trunchray.adapters.models.retry import Admission
from trunchray.agents.base import Agent
from trunchray.core.case import CaseInput
from trunchray.core.trial import Trace


@dataclass(frozen=True, slots=True)
class Admitted:
    """Runs `agent` when `admission` lets it in."""

    agent: Agent
    admission: Admission

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """Wait for its turn, and do one trial.

        Raises:
            TrialError: as the agent does.
        """
        await self.admission.enter()
        try:
            return await self.agent.run(case, case_id=case_id, attempt=attempt)
        finally:
            self.admission.leave(None)

    async def close(self) -> None:
        """Close the agent."""
        await self.agent.close()
