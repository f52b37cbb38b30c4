"""Metrics of the Ray that this process is part of; its agent on each node exports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.util import metrics

from trunchray.adapters.telemetry.metrics import SECONDS, Metric


class RayHandle:
    """One metric."""

    def __init__(self, metric: Metric) -> None:
        common: dict[str, Any] = {"description": metric.about, "tag_keys": ("run", *metric.tags)}
        match metric.kind:
            case "counter":
                self._give: Any = metrics.Counter(metric.name, **common).inc
            case "gauge":
                self._give = metrics.Gauge(metric.name, **common).set
            case "histogram":
                self._give = metrics.Histogram(metric.name, boundaries=list(SECONDS), **common).observe

    def give(self, value: float, tags: Mapping[str, str]) -> None:
        """Add it, set it or observe it, as the metric is."""
        self._give(value, dict(tags))
