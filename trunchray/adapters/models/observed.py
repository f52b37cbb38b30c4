"""A model client that tells of each try."""

from __future__ import annotations

from trunchray.adapters.models.base import ModelClient, ModelReply, ModelRequest
from trunchray.core.agent import ModelAgent
from trunchray.core.telemetry import Telemetry


class ObservedClient:
    """The same client, with a span around each request."""

    def __init__(self, client: ModelClient, agent: ModelAgent, telemetry: Telemetry) -> None:
        self._client, self._telemetry = client, telemetry
        provider, _, model = agent.model.partition("/")
        self._asked = {"model": agent.name, "provider": provider, "asked": model or agent.model}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """As the client's."""
        told = {"step": request.step, "retry": request.retry, "max_tokens": request.max_output_tokens}
        with self._telemetry.span("request", **self._asked, **told) as span:
            reply = await self._client.complete(request)
            usage = reply.usage
            span.add(
                answered=reply.model,
                request_id=reply.request_id,
                finish_reason=reply.finish_reason,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
            )
            return reply

    async def close(self) -> None:
        """As the client's."""
        await self._client.close()
