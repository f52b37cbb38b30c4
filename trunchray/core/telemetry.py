"""The port through which a run and its workers tell what they do: spans that begin and end, and events.

What is told are names, numbers and short slugs: never a prompt, an answer, a message or a credential. Nobody listens
unless a run config asks for it, and then the port costs a call that does nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal, Protocol

from trunchray.core.frozen import Frozen

Kind = Literal[
    "run", "shard", "trial", "request", "tool", "evaluator", "commit", "lost", "abandoned", "closed", "node", "standing"
]
"""What spans and events are about. The first six have a duration."""
Level = Literal["debug", "info", "warning"]
Fact = str | int | float | None
"""None stands for what is not known."""


class Span(Protocol):
    """Something under way."""

    def add(self, **facts: Fact) -> None:
        """What is known only now; `failure` is the slug of what went wrong."""
        ...


class Telemetry(Protocol):
    """Somebody who is told. Safe to use from several threads; it never raises."""

    def span(self, kind: Kind, **facts: Fact) -> AbstractContextManager[Span]:
        """Something that takes as long as the block; spans of one task are nested."""
        ...

    def event(self, kind: Kind, **facts: Fact) -> None:
        """Something that happened."""
        ...

    def close(self) -> None:
        """Send what has been kept back; may take some seconds."""
        ...


class Silence:
    """Nobody is told."""

    def span(self, kind: Kind, **facts: Fact) -> AbstractContextManager[Span]:
        return _NOTHING

    def event(self, kind: Kind, **facts: Fact) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class _Nothing:
    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, **facts: Fact) -> None:
        pass


_NOTHING = _Nothing()
SILENCE = Silence()


class LogConfig(Frozen):
    """A log of one line for each event."""

    format: Literal["json", "text"] = "json"
    level: Level = "info"
    """info: the run, its shards, and trials that end in an error; debug: everything."""
    file: str | None = None
    """Where the driver's machine writes it; stderr by default. Ray's workers always write to their own stderr."""


class Observe(Frozen):
    """What is told of a run, and to whom; nothing by default."""

    log: LogConfig | None = None
    metrics: bool = False
    """Through Ray's metrics agent on each node; nothing where the run is not on Ray."""
    traces: bool = False
    """To an OpenTelemetry collector, which OTEL_EXPORTER_OTLP_ENDPOINT names."""

    @property
    def anything(self) -> bool:
        return self.log is not None or self.metrics or self.traces
