"""From what a run config asks for to somebody who is told."""

from __future__ import annotations

from importlib.util import find_spec

from trunchray.adapters.telemetry.observed import Listener, Observed
from trunchray.core.telemetry import SILENCE, Observe, Telemetry
from trunchray.errors import UsageError


def connect(observe: Observe, *, run: str, worker: str, on_ray: bool, driver: bool = False) -> Telemetry:
    """Telemetry for one worker of a run, or for its driver; `on_ray`: this process is part of a Ray cluster.

    Raises:
        UsageError: traces are asked for and the extra `otel` is not installed, or the log cannot be written.
    """
    if not observe.anything:
        return SILENCE
    listeners: list[Listener] = []
    if observe.log:
        from trunchray.adapters.telemetry.log import LogListener  # noqa: PLC0415 - each only when asked for

        here = driver or not on_ray
        listeners.append(LogListener(observe.log if here else observe.log.model_copy(update={"file": None})))
    if observe.metrics and on_ray:
        from trunchray.adapters.telemetry.metrics import MetricsListener  # noqa: PLC0415
        from trunchray.adapters.telemetry.ray_metrics import RayHandle  # noqa: PLC0415

        listeners.append(MetricsListener(run, worker, RayHandle))
    if observe.traces and not driver:
        listeners.append(_traces())
    return Observed(listeners, {"run": run, "worker": worker})


def refuse_untraceable(observe: Observe) -> None:
    """Find out before a run begins that it cannot be traced.

    Raises:
        UsageError: the extra `otel` is not installed.
    """
    if observe.traces and find_spec("opentelemetry.sdk") is None:
        raise UsageError("observe.traces needs OpenTelemetry; pip install 'trunchray[otel]', here and on each node")


def _traces() -> Listener:
    try:
        from trunchray.adapters.telemetry.traces import TraceListener  # noqa: PLC0415
    except ImportError as e:
        raise UsageError(f"observe.traces: {e}; pip install 'trunchray[otel]' on this node, too") from e
    return TraceListener()
