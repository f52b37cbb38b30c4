"""Metrics for Prometheus, through Ray's metrics agent on each node, which exports them with a `ray_` before the name.

Counters add up in the process and are handed on once a second; an observation of a histogram costs some microseconds.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from trunchray.adapters.store import requests_made
from trunchray.adapters.telemetry.observed import Facts
from trunchray.core.telemetry import Fact, Kind

EVERY = 1.0
"""Seconds between two times that counters are handed on."""
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of the histograms' buckets."""


@dataclass(frozen=True)
class Metric:
    """One metric; `tags` beside `run`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    tags: tuple[str, ...]
    about: str


METRICS = (
    Metric("trunchray_trials", "counter", ("model", "outcome"), "Trials that ended: passed, failed or error."),
    Metric("trunchray_requests", "counter", ("model",), "Requests to models, each try counted."),
    Metric("trunchray_retries", "counter", ("model",), "Those that repeat one that failed."),
    Metric("trunchray_refusals", "counter", ("model",), "Those that the provider's rate limit refused."),
    Metric("trunchray_tokens", "counter", ("model",), "Tokens read and written in trials that ended."),
    Metric("trunchray_cost_usd", "counter", ("model",), "US dollars of trials whose price is known."),
    Metric("trunchray_parts", "counter", (), "Parquet parts of shards that ended."),
    Metric("trunchray_store_requests", "counter", ("worker",), "Operations on the store, each try counted."),
    Metric("trunchray_in_flight", "gauge", ("model",), "Requests in flight, of all workers together."),
    Metric("trunchray_permits", "gauge", ("model",), "Requests that may be in flight."),
    Metric("trunchray_waiting", "gauge", ("model",), "Requests that wait for their turn."),
    Metric("trunchray_queue_seconds", "histogram", ("model",), "How long trials waited for their turn."),
    Metric("trunchray_trial_seconds", "histogram", ("model",), "How long trials took, without that."),
    Metric("trunchray_request_seconds", "histogram", ("model",), "How long requests to models took."),
    Metric("trunchray_evaluator_seconds", "histogram", ("model",), "How long grading took."),
)
"""All that there are."""


class Handle(Protocol):
    """What takes the values of one metric."""

    def give(self, value: float, tags: Mapping[str, str]) -> None: ...


class MetricsListener:
    """Turns what it hears into metrics; `open_` makes a metric's handle, `clock` counts seconds from anywhere."""

    def __init__(
        self, run: str, worker: str, open_: Callable[[Metric], Handle], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run, self._worker, self._clock = run, worker, clock
        self._metrics = {metric.name: metric for metric in METRICS}
        self._open, self._handles = open_, dict[str, Handle]()  # each opened late: a driver joins Ray late
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self._due = clock() + EVERY
        self._requests_told = 0

    def began(self, kind: Kind, facts: Facts) -> None:
        """Only ends are counted."""

    def ended(self, _began: None, kind: Kind, facts: Facts, seconds: float) -> None:
        model = str(facts.get("model", ""))
        match kind:
            case "trial":
                self._trial(model, facts, seconds)
            case "request":
                self._request(model, facts, seconds)
            case "evaluator":
                self._observe("trunchray_evaluator_seconds", seconds, model)
            case "shard":
                self._count("trunchray_parts", _number(facts.get("parts")))
            case _:
                pass
        if self._clock() >= self._due:
            self.flush()

    def happened(self, kind: Kind, facts: Facts) -> None:
        if kind == "standing":
            for name in ("in_flight", "permits", "waiting"):
                self._observe(f"trunchray_{name}", _number(facts.get(name)), str(facts.get("model", "")))
        if self._clock() >= self._due:
            self.flush()

    def close(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Hand on what has added up."""
        self._due = self._clock() + EVERY
        with self._lock:
            made, before = requests_made(), self._requests_told
            self._requests_told = made
            counts, self._counts = self._counts, Counter()
        counts["trunchray_store_requests", (self._worker,)] += made - before
        for (name, tags), value in counts.items():
            if value:
                self._handle(name).give(value, self._tags(name, tags))

    def _trial(self, model: str, facts: Facts, seconds: float) -> None:
        if facts.get("outcome") is None:
            return  # it was stopped, and stays owed
        self._count("trunchray_trials", 1, model, str(facts["outcome"]))
        self._count("trunchray_tokens", _number(facts.get("tokens")), model)
        self._count("trunchray_cost_usd", _number(facts.get("cost")), model)
        self._observe("trunchray_queue_seconds", _number(facts.get("queued")), model)
        self._observe("trunchray_trial_seconds", seconds, model)

    def _request(self, model: str, facts: Facts, seconds: float) -> None:
        self._count("trunchray_requests", 1, model)
        self._count("trunchray_retries", bool(facts.get("retry")), model)
        self._count("trunchray_refusals", facts.get("failure") == "rate_limited", model)
        self._observe("trunchray_request_seconds", seconds, model)

    def _count(self, name: str, value: float, *tags: str) -> None:
        with self._lock:
            self._counts[name, tags] += value  # pyright: ignore[reportArgumentType] - a Counter adds up any numbers

    def _observe(self, name: str, value: float, *tags: str) -> None:
        self._handle(name).give(value, self._tags(name, tags))

    def _handle(self, name: str) -> Handle:
        if name not in self._handles:
            self._handles[name] = self._open(self._metrics[name])
        return self._handles[name]

    def _tags(self, name: str, tags: tuple[str, ...]) -> dict[str, str]:
        return {"run": self._run} | dict(zip(self._metrics[name].tags, tags, strict=True))


def _number(fact: Fact) -> float:
    return fact if isinstance(fact, int | float) else 0
