"""One way to run something, whatever kind of thing it is."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import JsonValue

from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.steps import Steps


class Perform(Protocol):
    """It can be pickled before it is first used."""

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        """The output for an input; what is observed on the way goes to `steps`. Raises what the task raises."""
        ...
