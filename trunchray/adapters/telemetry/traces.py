"""Traces of trials for an OpenTelemetry collector: the only module that imports opentelemetry (extra `otel`).

    trial ─┬─ chat <model>           one for each try
           ├─ execute_tool <tool>
           └─ evaluate

Names of attributes are those of the semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/), and `trunchray.…` where they have none. Contents are never sent.
Where to, how and how many is set by the standard variables OTEL_….
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from trunchray.adapters.telemetry.observed import Facts
from trunchray.core.telemetry import Fact, Kind

FLUSH = 3000
"""Milliseconds that a worker which ends gives its last spans."""
_ATTRIBUTES: dict[Kind, Mapping[str, str]] = {
    "trial": {
        "run": "trunchray.run",
        "worker": "trunchray.worker",
        "shard": "trunchray.shard",
        "trial": "trunchray.trial",
        "case": "trunchray.case",
        "attempt": "trunchray.attempt",
        "outcome": "trunchray.outcome",
        "queued": "trunchray.queued",
        "cost": "trunchray.cost_usd",
        "model": "gen_ai.agent.name",
        "failure": "error.type",
    },
    "request": {
        "provider": "gen_ai.provider.name",
        "asked": "gen_ai.request.model",
        "max_tokens": "gen_ai.request.max_tokens",
        "answered": "gen_ai.response.model",
        "request_id": "gen_ai.response.id",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "step": "trunchray.step",
        "retry": "trunchray.retry",
        "failure": "error.type",
    },
    "tool": {"tool": "gen_ai.tool.name", "call": "gen_ai.tool.call.id", "failure": "error.type"},
    "evaluator": {"score": "gen_ai.evaluation.score.value", "failure": "error.type"},
}
"""Of each kind that is traced, the facts that are sent, and as what."""
_OPERATIONS: dict[Kind, str] = {"request": "chat", "tool": "execute_tool"}


class TraceListener:
    """Makes spans and sends them in batches, from a thread of its own. `exporter` replaces the one over HTTP."""

    def __init__(self, exporter: Any = None) -> None:
        """Read the variables."""
        named = Resource.create()
        if str(named.attributes.get("service.name", "")).startswith("unknown_service"):
            named = named.merge(Resource({"service.name": "trunchray"}))
        self._provider = TracerProvider(resource=named, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("trunchray")

    def began(self, kind: Kind, facts: Facts) -> tuple[AbstractContextManager[Any], Any] | None:
        if kind not in _ATTRIBUTES:
            return None
        client = trace.SpanKind.CLIENT if kind == "request" else trace.SpanKind.INTERNAL
        current = self._tracer.start_as_current_span(_name(kind, facts), kind=client)
        return current, current.__enter__()

    def ended(
        self, began: tuple[AbstractContextManager[Any], Any] | None, kind: Kind, facts: Facts, _seconds: float
    ) -> None:
        if began is None:
            return
        current, span = began
        span.set_attributes(attributes(kind, facts))
        if facts.get("failure"):
            span.set_status(trace.StatusCode.ERROR)
        current.__exit__(None, None, None)

    def happened(self, kind: Kind, facts: Facts) -> None:
        """Events are not traced."""

    def close(self) -> None:
        self._provider.force_flush(FLUSH)
        self._provider.shutdown()


def attributes(kind: Kind, facts: Facts) -> dict[str, Any]:
    """What a span says, by the names that collectors know."""
    sent: dict[str, Any] = {
        name: facts[fact] for fact, name in _ATTRIBUTES[kind].items() if facts.get(fact) is not None
    }
    if operation := _OPERATIONS.get(kind):
        sent["gen_ai.operation.name"] = operation
    if kind == "request" and facts.get("finish_reason"):
        sent["gen_ai.response.finish_reasons"] = [facts["finish_reason"]]
    if kind == "evaluator" and facts.get("outcome"):
        sent["gen_ai.evaluation.score.label"] = facts["outcome"]
    return sent


def _name(kind: Kind, facts: Facts) -> str:
    detail: Mapping[Kind, Fact] = {"request": facts.get("asked"), "tool": facts.get("tool")}
    return f"{_OPERATIONS[kind]} {detail[kind]}" if kind in _OPERATIONS else {"evaluator": "evaluate"}.get(kind, kind)
