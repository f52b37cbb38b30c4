"""A grader that is let in one reply at a time, by what bounds the runs of the tool under test."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from trunchray.adapters.models.retry import Admission
from trunchray.evaluators.attempts.base import Attempt, GraderBackend, Refused, Reply


@dataclass(frozen=True, slots=True)
class AdmittedBackend:
    """Asks `backend` when `admission` lets it in: a coding tool that grades is a process as one under test is."""

    backend: GraderBackend
    admission: Admission

    async def ask(self, attempt: Attempt, refused: Refused | None = None) -> Reply:
        """As `GraderBackend.ask`, after a wait for its turn."""
        await self.admission.enter()
        try:
            return await self.backend.ask(attempt, refused)
        finally:
            self.admission.leave(None)

    def check(self) -> None:
        """As `GraderBackend.check`."""
        self.backend.check()

    async def close(self) -> None:
        """As `GraderBackend.close`."""
        await self.backend.close()

    @property
    def identity(self) -> JsonValue:
        """As `GraderBackend.identity`: when it is asked makes it no other grader."""
        return self.backend.identity
