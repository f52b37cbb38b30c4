"""Does a model answer? One small request each, before a run pays for thousands."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

from trunchray.adapters.models.base import ModelClient, ModelRequest
from trunchray.adapters.models.connect import build_client
from trunchray.adapters.models.http import Answer, overhearing
from trunchray.adapters.models.providers import is_mock
from trunchray.adapters.models.redaction import Redaction
from trunchray.core.agent import ModelAgent
from trunchray.core.frozen import Frozen
from trunchray.core.trial import Usage
from trunchray.errors import ProviderError, TrialError, UsageError, boundary

_QUESTION = ModelRequest(
    ({"role": "user", "content": "Answer with the word: ready"},), max_output_tokens=16, case_id="models-check"
)
"""As few tokens as every provider takes for a limit."""
_LIMITS = re.compile(r"(x-|anthropic-)?ratelimit-[a-z0-9-]{1,60}|retry-after(-ms)?|x-envoy-ratelimited")
_MOST_LIMITS, _LONGEST_LIMIT = 30, 60


class Problem(Frozen):
    """Why a model does not answer; `type` is "configuration", or what a row of a run would call it."""

    type: str
    message: str


class Probe(Frozen):
    """What came of asking a model. One that lives inside trunchray is not asked."""

    seconds: float | None = None
    """From sending the request to having the whole answer; None when there was none."""
    answered_as: str | None = None
    """The model's name as the provider returned it."""
    usage: Usage = Usage()
    limits: dict[str, str] = {}
    """What the answer's headers say of the provider's limits, as it says it."""
    problem: Problem | None = None


async def probe(
    spec: ModelAgent,
    *,
    environ: Mapping[str, str],
    replay: bytes | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Probe:
    """Ask once, without retries. `replay` is the file of a mock's recorded outputs; `clock` counts seconds."""
    try:
        client = build_client(spec, environ=environ, replay=replay)
    except UsageError as e:
        return Probe(problem=Problem(type="configuration", message=str(e)))
    if is_mock(spec.model):
        return Probe()
    redaction = Redaction([environ.get(name, "").strip() for name in spec.key_names], [])
    try:
        with overhearing() as answers:
            found = await _asked(client, spec, clock)
    finally:
        await client.close()
    return found.model_copy(update={"limits": _limits(answers[-1], redaction) if answers else {}})


async def _asked(client: ModelClient, spec: ModelAgent, clock: Callable[[], float]) -> Probe:
    started = clock()
    try:
        with boundary(ProviderError, f"model {spec.name!r}"):
            reply = await client.complete(_QUESTION)
    except TrialError as e:
        return Probe(problem=Problem(type=e.type, message=str(e)))
    return Probe(seconds=clock() - started, answered_as=reply.model, usage=reply.usage)


def _limits(answer: Answer, redaction: Redaction) -> dict[str, str]:
    found = {name.lower(): value for name, value in answer.headers.items() if _LIMITS.fullmatch(name.lower())}
    return {name: redaction.message(value)[:_LONGEST_LIMIT] for name, value in sorted(found.items())[:_MOST_LIMITS]}
