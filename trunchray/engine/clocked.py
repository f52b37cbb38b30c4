"""The governor with a clock, as a pool runs it: in its own process, or as an actor, which this module keeps light."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from trunchray.core.agent import AgentSpec
from trunchray.core.budget import Accounts, Purse, Spend
from trunchray.engine.demand import Allowance, Demand
from trunchray.engine.governor import Governor, Standing
from trunchray.errors import StoreError


class ClockedGovernor:
    """Answers one worker at a time. One that is started again learns from the workers what they hold.

    One that is `resumable` learns from the driver, too, what workers had spent that are gone, and lets none of a run
    with a purse begin anything before that.
    What a purse is held to is written down in the run at `run_uri` before it holds.
    """

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        purse: Purse | None = None,
        run_uri: str | None = None,
        *,
        resumable: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._governor = Governor(agents, purse, now=clock())
        self._purse, self._run_uri = purse, run_uri
        self._writing = asyncio.Lock()
        self._knows = not (resumable and purse)

    async def exchange(self, worker: str, demands: Mapping[str, Demand]) -> dict[str, Allowance]:
        """As `Governor.exchange`, now."""
        if not self._knows:
            return {}
        await self._write_ahead()
        return self._governor.exchange(worker, demands, self._clock())

    async def snapshot(self) -> dict[str, Standing]:
        """As `Governor.snapshot`, now."""
        return self._governor.snapshot(self._clock())

    async def resume(self, accounts: Accounts) -> tuple[dict[str, Standing], Accounts]:
        """As `snapshot`, and what is known of workers by now; `accounts` is what was the last time, be it by another.

        The driver keeps it, which lives as long as the run.
        """
        if self._purse and not self._knows:
            self._purse.recall(accounts)
        self._knows = True
        return await self.snapshot(), self._purse.accounts() if self._purse else {}

    async def settle(self) -> None:
        """Write down what is spent, now that nothing more begins."""
        if self._purse and (levels := self._purse.settled()):
            await self._write(levels)

    async def _write_ahead(self) -> None:
        """Write down new levels when they are due; while one worker waits for that, others go on with the old ones."""
        if self._purse is None or self._writing.locked():
            return
        async with self._writing:
            levels = self._purse.due()
            if levels and await self._write(levels):
                self._purse.hold(levels)

    async def _write(self, levels: Mapping[str, Spend]) -> bool:
        """Whether it is written; when the store fails, whoever stores rows says so, and nothing more is granted."""
        uri = self._run_uri
        if uri is None:
            return True
        from trunchray.adapters.runs import RunFolder  # noqa: PLC0415 - takes a second, and few runs need it

        try:
            await asyncio.to_thread(lambda: RunFolder(uri).write_spending(levels))
        except StoreError:
            return False
        return True
