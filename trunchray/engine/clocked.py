"""The governor with a clock, as a pool runs it: in its own process, or as an actor, which this module keeps light."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from trunchray.core.agent import AgentSpec
from trunchray.core.budget import Purse
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.governor import Governor, Standing


class ClockedGovernor:
    """Answers one worker at a time. One that is started again learns from the workers what they hold."""

    def __init__(
        self, agents: Sequence[AgentSpec], purse: Purse | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._governor = Governor(agents, purse, now=clock())

    async def exchange(self, worker: str, demands: Mapping[str, Demand]) -> dict[str, Allowance]:
        """As `Governor.exchange`, now."""
        return self._governor.exchange(worker, demands, self._clock())

    async def snapshot(self) -> dict[str, Standing]:
        """As `Governor.snapshot`, now."""
        return self._governor.snapshot(self._clock())
