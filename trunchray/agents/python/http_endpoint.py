"""HTTP endpoints as tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.adapters.endpoint import Endpoint
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, peek, words
from trunchray.agents.python.steps import Steps
from trunchray.agents.python.task import Task
from trunchray.core.record import StepKind, StepRecord
from trunchray.errors import ProviderError, UsageError


def http_endpoint(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    api_key_env: str | None = None,
    header_env: Mapping[str, str] | None = None,
    input: Callable[[JsonValue], JsonValue] | None = None,
    output: Callable[[Any], Any] | None = None,
) -> Task:
    """The task that posts `{"input": …}` to an address as JSON, or what `input` makes of the input.

    An answer that is an object with `output` is that output, and its `steps`, a list of
    `{kind, name?, input?, output?, error?, ms?}`, are the steps of the run; one with `error` and no `output` is a run
    that failed. Any other answer is the output, as JSON or as text. `output` makes something else of the answer. A
    request that fails, is refused or redirected is not repeated: the run has failed.

    Credentials come from the environment: `api_key_env` names the variable of a key that is sent as a bearer token,
    `header_env` those of further headers, such as `{"X-API-Key": "SUPPORT_KEY"}`.

    Raises:
        UsageError: `url` is not an address, or a credential stands in it or in `headers`.
    """
    endpoint = Endpoint(url, headers=headers, api_key_env=api_key_env, header_env=header_env)
    sent = {"headers": dict(headers or {}), "header_env": dict(header_env or {}), "api_key_env": api_key_env}
    return Task((url, sent, input, output), _Endpoint(endpoint, input, output), release=endpoint.close)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    endpoint: Endpoint
    input: Callable[[JsonValue], JsonValue] | None
    output: Callable[[Any], Any] | None

    async def __call__(self, value: JsonValue, signal: CancelSignal, steps: Steps) -> Any:
        body: JsonValue = {"input": value} if self.input is None else await call(self.input, value)
        try:
            answer = await self.endpoint.post(body)
        except (ProviderError, UsageError) as e:
            raise RunFailed(str(e)) from e
        if isinstance(answer, dict):
            _observe(answer.get("steps"), steps)
        return _output(answer) if self.output is None else await call(self.output, answer)


def _observe(told: Any, steps: Steps) -> None:
    for step in told if isinstance(told, list) else ():
        kind = peek(step, "kind")
        if kind not in get_args(StepKind):
            raise RunFailed(f"the endpoint's answer has a step of kind {kind!r}: steps are llm, tool or step")
        error, ms = peek(step, "error"), peek(step, "ms")
        steps.add(
            StepRecord(
                kind,
                as_name(peek(step, "name")),
                peek(step, "input"),
                peek(step, "output"),
                None if error is None else words(error),
                ms if isinstance(ms, int | float) else None,
            )
        )


def _output(answer: JsonValue) -> JsonValue:
    if not isinstance(answer, dict):
        return answer
    if "output" in answer:
        return answer["output"]
    if (error := answer.get("error")) is not None:
        raise RunFailed(f"the endpoint says: {words(error)}")
    return answer
