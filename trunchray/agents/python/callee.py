"""Functions that other people wrote, with the cancel signal or without."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from trunchray.adapters.calling import call
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.errors import UsageError

SignalPlace = Literal["last", "by name", "nowhere"]
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function and where it takes the cancel signal."""

    function: Callable[..., Any]
    signal_place: SignalPlace

    @classmethod
    def of(cls, function: Callable[..., Any], given: tuple[str, ...], who: str) -> Callee:
        """How to call a function with values for these parameters; `who` names it in messages.

        It gets the signal as one more parameter if that has no default, or if it is called `signal`. A second parameter
        with another name and a default is the function's own affair. A function that hides its parameters is given the
        values alone.

        Raises:
            UsageError: it cannot be called so.
        """
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return cls(function, "nowhere")
        place = _place(list(signature.parameters.values()), len(given))
        if place is None:
            alone = ", ".join(given)
            raise UsageError(f"{who} takes {signature}; it is called with ({alone}) or ({alone}, signal)")
        return cls(function, place)

    async def call(self, *arguments: Any, signal: CancelSignal) -> Any:
        """What it returns, awaited where that can be; raises what it raises."""
        match self.signal_place:
            case "last":
                return await call(self.function, *arguments, signal)
            case "by name":
                return await call(partial(self.function, signal=signal), *arguments)
            case "nowhere":
                return await call(self.function, *arguments)


def _place(parameters: list[inspect.Parameter], given: int) -> SignalPlace | None:
    """Where so many values leave room for the signal; None when they cannot be given, or more is needed."""
    placed = [parameter for parameter in parameters if parameter.kind in _BY_PLACE]
    named = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    collects = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    needed = sum(_required(parameter) for parameter in placed)
    unknown = any(_required(parameter) and parameter.name != "signal" for parameter in named)
    if unknown or needed > given + 1 or (len(placed) < given and not collects):
        return None
    if needed > given or (len(placed) > given and placed[given].name == "signal"):
        return "last"
    return "by name" if any(parameter.name == "signal" for parameter in named) else "nowhere"


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty
