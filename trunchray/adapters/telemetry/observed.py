"""Telemetry for listeners: times spans, and hands each span and event to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, Protocol

from trunchray.core.telemetry import Fact, Kind, Span

Facts = dict[str, Fact]

_ENCLOSING: ContextVar[Mapping[str, Fact]] = ContextVar("trunchray_enclosing", default=MappingProxyType({}))
"""What the spans around say of themselves that those inside repeat."""
_REPEATED = ("shard", "trial", "case", "model", "attempt")


class Listener(Protocol):
    """One that is told."""

    def began(self, kind: Kind, facts: Facts) -> Any:
        """Gives what `ended` gets back."""
        ...

    def ended(self, began: Any, kind: Kind, facts: Facts, seconds: float, /) -> None:
        """The facts are complete now."""
        ...

    def happened(self, kind: Kind, facts: Facts) -> None: ...

    def close(self) -> None:
        """Send what has been kept back."""
        ...


class Observed:
    """Tells `listeners`. `common` is in all that they hear; `clock` counts seconds from anywhere.

    A listener that fails costs what it would have been told, and nothing else.
    """

    def __init__(
        self, listeners: Sequence[Listener], common: Mapping[str, Fact], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.listeners, self.common, self.clock = listeners, common, clock

    def span(self, kind: Kind, **facts: Fact) -> AbstractContextManager[Span]:
        return _Span(self, kind, {**self.common, **_ENCLOSING.get(), **facts})

    def event(self, kind: Kind, **facts: Fact) -> None:
        whole = {**self.common, **_ENCLOSING.get(), **facts}
        for listener in self.listeners:
            with suppress(Exception):
                listener.happened(kind, whole)

    def close(self) -> None:
        for listener in self.listeners:
            with suppress(Exception):
                listener.close()


class _Span:
    def __init__(self, telemetry: Observed, kind: Kind, facts: Facts) -> None:
        self._telemetry, self._facts = telemetry, facts
        self._kind: Kind = kind

    def __enter__(self) -> Span:
        self._enclosing = _ENCLOSING.set({name: self._facts[name] for name in _REPEATED if name in self._facts})
        self._began: list[Any] = []
        for listener in self._telemetry.listeners:
            began = None
            with suppress(Exception):
                began = listener.began(self._kind, self._facts)
            self._began.append(began)
        self._from = self._telemetry.clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        seconds = self._telemetry.clock() - self._from
        if error is not None:
            self._facts.setdefault("failure", getattr(error, "type", None) or type(error).__name__)
        for listener, began in zip(self._telemetry.listeners, self._began, strict=True):
            with suppress(Exception):
                listener.ended(began, self._kind, self._facts, seconds)
        _ENCLOSING.reset(self._enclosing)

    def add(self, **facts: Fact) -> None:
        self._facts |= facts
