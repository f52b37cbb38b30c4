"""How fast a run goes: rows and tokens over the last minute."""

from __future__ import annotations

from collections import deque

from trunchray.engine.progress import AgentProgress, Snapshot

WINDOW = 60.0
"""Seconds that rates look back."""
SETTLED = 2.0
"""Seconds after which a rate means something."""


class Rates:
    """Compares each snapshot with the one of a minute ago."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, tuple[int, int]]]] = deque()

    def rated(self, now: float, snapshot: Snapshot) -> Snapshot:
        """The snapshot of the moment `now`, in seconds, with each model's rates; without, while it is too early."""
        self._seen.append((now, {agent.name: (agent.done, agent.counts.tokens) for agent in snapshot.agents}))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()
        before, old = self._seen[0]
        if now - before < SETTLED:
            return snapshot
        agents = tuple(_rated(agent, *old.get(agent.name, (0, 0)), now - before) for agent in snapshot.agents)
        return snapshot.model_copy(update={"agents": agents})


def _rated(agent: AgentProgress, done: int, tokens: int, seconds: float) -> AgentProgress:
    # A worker that is lost takes the rows it had not stored with it.
    rows, read = max(0, agent.done - done), max(0, agent.counts.tokens - tokens)
    return agent.model_copy(update={"per_minute": 60 * rows / seconds, "tokens_per_minute": 60 * read / seconds})
