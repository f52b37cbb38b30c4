"""A language model as a judge, through any of our model clients."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from trunchray.adapters.models.json_model import GREEDY, JSON_MODE, WAYS, JsonModel, Way
from trunchray.adapters.models.retry import Waits
from trunchray.core.agent import ModelAgent
from trunchray.core.decisions import Decision, Fallback, FallbackReason, Question, Thresholds, check_questions
from trunchray.core.digest import sha256
from trunchray.errors import ProviderError, UsageError
from trunchray.evaluators.judges.bars import checked_agent
from trunchray.evaluators.judges.labelled import read_labelled
from trunchray.evaluators.judges.prompt import INSTRUCTIONS, messages, schema

LISTED = 5
"""Tokens whose probabilities are asked for in the place of each; some providers give no more."""

_LOGPROBS: Mapping[str, JsonValue] = {**GREEDY, "logprobs": True, "top_logprobs": LISTED}
_WAYS = (Way(_LOGPROBS, schema=True), Way({**JSON_MODE, **_LOGPROBS}), *WAYS)
_REASONS: Mapping[str, FallbackReason] = {
    "timeout": "timeout",
    "connection": "network",
    "malformed_response": "parse-error",
    "response_too_large": "parse-error",
}


class ModelJudge:
    """A language model that answers all questions about a state in one request, in JSON.

    Its probabilities are those of the tokens of its answers where the provider gives them, else the ones it states;
    each decision's `method` says which. The first calls find out what the model takes: token probabilities, the schema
    of the answer, a temperature of 0. Params in the spec override these. `timeout` bounds one request, in seconds, in
    place of the spec's; retries are those of `pacing`, with `waits` between them. Keys are read from the
    environment where requests are made.

    Raises:
        UsageError: the model cannot be asked.
    """

    def __init__(
        self,
        spec: ModelAgent,
        *,
        thresholds: Mapping[str, float] | Thresholds | None = None,
        escalate: object = None,
        timeout: float | None = None,
        waits: Waits | None = None,
    ) -> None:
        if spec.model == "mock/replay":
            raise UsageError("recorded outputs hold no answers of a judge; use mock/script instead of mock/replay")
        if timeout is not None:
            spec = spec.model_copy(update={"pacing": spec.pacing.model_copy(update={"timeout": timeout})})
        self.thresholds, self.escalate = Thresholds.of(thresholds), checked_agent(escalate)
        self.timeout = spec.pacing.timeout
        self._spec = spec
        self._model = JsonModel(spec, ways=_WAYS, waits=waits)

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """As `Judge.invoke`; without a key in the environment nobody is asked, and the reason is no-key."""
        check_questions(questions)
        if not questions:
            return ()
        began = time.monotonic()
        try:
            chat = messages(state, questions, self._spec.system_prompt)
            done = await self._model.ask(chat, schema(questions))
        except UsageError as e:  # all else of the spec has been checked
            return Fallback("no-key", str(e))
        except ProviderError as e:
            reason = _REASONS.get(e.type, "http-error")
            return Fallback(reason, str(e), backend=self._spec.model, latency_ms=(time.monotonic() - began) * 1000)
        return read_labelled(questions, done.reply)

    async def close(self) -> None:
        """Close every connection."""
        await self._model.close()

    @property
    def identity(self) -> JsonValue:
        """What is asked of the model, the digest of the prompt, and how its probabilities are found."""
        source = "logprobs, else stated"
        return {"kind": "model", **self._spec.asked, "prompt": sha256(INSTRUCTIONS.encode()), "probabilities": source}
