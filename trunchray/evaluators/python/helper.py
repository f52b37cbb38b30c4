"""The base of the checks that trunchray brings along."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.source_code import described
from trunchray.core.record import RunRecord
from trunchray.core.share import is_share


class Helper(ABC):
    """A check that is data: a frozen dataclass, whose fields say what it looks for.

    It accepts any arguments; `problem` says what is wrong with them, so that the message can name the scorer.
    """

    @abstractmethod
    def problem(self) -> str | None:
        """What is wrong with how it was written, and what would be right; None when nothing is."""

    @abstractmethod
    def __call__(self, run: RunRecord) -> Any:
        """What it says of a run: a result, or an awaitable of one."""

    @property
    def identity(self) -> JsonValue:
        """All that decides it, as JSON."""
        named: Any = self  # every helper is a dataclass
        return [type(self).__name__, *(described(getattr(self, field.name)) for field in fields(named))]


def names_problem(what: str, names: object) -> str | None:
    """What is wrong with a list of names or words; None when nothing is."""
    if isinstance(names, str):
        return f"{what} are one string; write [{names!r}]"
    if not isinstance(names, Sequence) or isinstance(names, bytes):
        return f"{what} must be a list of strings (got {names!r})"
    return next((f"{what} must be strings, and not empty (got {each!r})" for each in names if not _is_text(each)), None)


def at_least_problem(at_least: Any) -> str | None:
    """What is wrong with the lowest value that passes; None when nothing is."""
    if is_share(at_least) and at_least > 0:
        return None
    return f"at_least must be above 0 and at most 1 (got {at_least!r})"


def async_problem(what: str, function: Callable[..., object]) -> str | None:
    """What is wrong with a function that must not be async; None when nothing is."""
    return f"{what} must be a plain function, not an async one" if inspect.iscoroutinefunction(function) else None


def call_problem(what: str, function: Callable[..., object]) -> str | None:
    """What keeps a function from being called with the run alone; None when nothing does, or when that is hidden."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(None)
    except TypeError:
        return f"{what} is called with the run alone, and this one takes {signature}"
    return None


def _is_text(name: object) -> bool:
    return isinstance(name, str) and bool(name)
