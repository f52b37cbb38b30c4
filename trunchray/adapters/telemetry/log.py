"""A log of events and of spans that ended: one line each, as JSON or for people."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from trunchray.adapters.telemetry.observed import Facts
from trunchray.core.telemetry import Fact, Kind, Level, LogConfig
from trunchray.errors import UsageError

_LEVELS: dict[Level, int] = {"debug": 0, "info": 1, "warning": 2}
_OF: dict[Kind, Level] = {
    **dict.fromkeys(("run", "shard", "commit", "node"), "info"),
    **dict.fromkeys(("lost", "abandoned", "closed"), "warning"),
}
"""All others are for debugging."""


class LogListener:
    """Writes lines from a thread of its own, so that a slow reader delays nobody. `now` is UTC."""

    def __init__(
        self,
        config: LogConfig,
        *,
        write: Callable[[str], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._format = _json if config.format == "json" else _text
        self._least = _LEVELS[config.level]
        self._file = _opened(config.file) if config.file and not write else None
        self._write: Callable[[str], object] = write or (self._file.write if self._file else _stderr)
        self._now = now
        self._lines: queue.SimpleQueue[Callable[[], str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="trunchray-log", daemon=True)
        self._thread.start()

    def began(self, kind: Kind, facts: Facts) -> None:
        if kind == "run":
            self._put("info", "run_began", facts)

    def ended(self, _began: None, kind: Kind, facts: Facts, seconds: float) -> None:
        level: Level = "warning" if kind == "trial" and facts.get("failure") else _OF.get(kind, "debug")
        self._put(level, f"{kind}_ended", facts, seconds)

    def happened(self, kind: Kind, facts: Facts) -> None:
        self._put(_OF.get(kind, "debug"), kind, facts)

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join(timeout=5)

    def _put(self, level: Level, event: str, facts: Facts, seconds: float | None = None) -> None:
        if _LEVELS[level] < self._least:
            return
        told: Facts = {name: fact for name, fact in facts.items() if fact is not None}
        if seconds is not None:
            told["seconds"] = round(seconds, 6)
        at = f"{self._now().astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        self._lines.put(lambda: self._format(at, level, event, told))

    def _run(self) -> None:
        while line := self._lines.get():
            with suppress(OSError, ValueError):
                self._write(line() + "\n")
        if self._file:
            self._file.close()


def _stderr(line: str) -> None:
    """To whatever is stderr at the time."""
    sys.stderr.write(line)
    sys.stderr.flush()


def _opened(file: str) -> TextIO:
    """A file, which is appended to.

    Raises:
        UsageError: it cannot be.
    """
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        return Path(file).open("a", encoding="utf-8", buffering=1)
    except (OSError, ValueError) as e:
        raise UsageError(f"observe.log.file {file!r} cannot be written: {e}; choose another place") from e


def _json(at: str, level: str, event: str, facts: dict[str, Fact]) -> str:
    return json.dumps({"time": at, "level": level, "event": event} | facts, ensure_ascii=True)


def _text(at: str, level: str, event: str, facts: dict[str, Fact]) -> str:
    return " ".join([at, level.upper(), event, *(f"{name}={_word(fact)}" for name, fact in facts.items())])


def _word(fact: Fact) -> str:
    text = str(fact)
    return text if text and text.isprintable() and " " not in text else json.dumps(text)
