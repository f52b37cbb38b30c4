"""What is under test, as behaviour: an agent turns the public half of a case into a trace."""

from __future__ import annotations

from typing import Protocol

from trunchray.adapters.models.base import ModelClient
from trunchray.adapters.models.cache import ReplyCache
from trunchray.adapters.models.retry import Admission
from trunchray.agents.chat import ChatAgent
from trunchray.agents.toolbox import Toolbox
from trunchray.core.agent import ModelAgent
from trunchray.core.case import CaseInput
from trunchray.core.trial import Trace


class Agent(Protocol):
    """One agent; safe to share between concurrent trials of one event loop."""

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """Do one trial; `attempt` counts from 1.

        Raises:
            TrialError: something other than the model failed. What the model does is never an error.
        """
        ...

    async def close(self) -> None:
        """Give back what the agent holds, its client included."""
        ...


def build_agent(
    spec: ModelAgent,
    client: ModelClient,
    toolbox: Toolbox,
    *,
    admission: Admission | None = None,
    cache: ReplyCache | None = None,
) -> Agent:
    """A model as an agent; `admission` says when requests may begin, and what `cache` knows is not asked again."""
    return ChatAgent(spec, client, toolbox, admission=admission, cache=cache)
