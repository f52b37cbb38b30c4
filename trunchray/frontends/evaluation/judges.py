"""A judge out of whatever answers questions: a model, a step of a workflow, or a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, JsonValue, field_validator

from trunchray.adapters.models.system_one_keys import OFFICIAL
from trunchray.agents.python.callee import Callee
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.definition import read_definition
from trunchray.agents.python.peek import peek
from trunchray.core.agent import Limits, ModelAgent
from trunchray.core.decisions import Thresholds
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import Bars
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.judges.function import FunctionJudge
from trunchray.evaluators.judges.model import ModelJudge
from trunchray.evaluators.judges.system_one import PREFIX, SystemOneJudge
from trunchray.frontends.agents import build_agents
from trunchray.frontends.checked import validated
from trunchray.frontends.evaluation.spec import seconds
from trunchray.frontends.model_config import ModelConfig, SomeLimits

_UNPACED = ("requests_per_minute", "tokens_per_minute")


def judge_model(
    model: object,
    invoke_step: Callable[..., Any] | None = None,
    thresholds: Mapping[str, float] | Thresholds | None = None,
    escalate: object = None,
    timeout: str | float | None = None,
) -> Judge:
    """A judge: it answers the questions of checks, which are sentences and what `ask` makes.

    `model` is one of

    - a step of a workflow, or a workflow of one step, together with `invoke_step(step, asked)` or
      `invoke_step(step, asked, signal)`, which runs it;
    - a function `(asked)`, sync or async;
    - the id of a language model, `<provider>/<model>`, such as "openai/gpt-4o-mini", or a mapping with an `id` and
      whatever else a run config says of a model (`base_url`, `api_key_env`, `params`, …);
    - "systemone/<model>", such as "systemone/jev-latest": a decision model; as a mapping with `base_url`, where
      requests are sent, and `api_key_env`.

    A step or function is given `{"state": …, "questions": [{id, type, instructions, criteria?}]}`, where `type` is
    boolean, choice or score, and the state is `{input, output, expectedOutput?, steps}`. It returns `{"decisions":
    […]}` or `{"fallback": True, "reason": …}`, also as JSON text or `{"reply": "<JSON text>"}`; see `read_decisions`
    for the decisions. One request carries all questions about a run.

    `thresholds` is a mapping with any of `yes` (0.7), `no` (0.3) and `sure` (0.6). `escalate` is an agent, anything
    with `send(prompt)` that returns `{"type": "reply", "reply": text}`: it is asked again where the judge is unsure.
    `timeout`, such as "2s" or a number of milliseconds, bounds one request, and one `send`; unless given it is 1.5 s
    for a decision model, 120 s for a language model, and 60 s for a step or function. Keys are read from the
    environment of the process that asks. No request is made here.

    Raises:
        UsageError: the model cannot be asked, the workflow has several steps or no `invoke_step`, or a threshold, the
            agent or the timeout is not valid.
    """
    rest: dict[str, Any] = {"thresholds": thresholds, "escalate": escalate}
    if timeout is not None:
        rest["timeout"] = seconds(timeout)
    if isinstance(model, Bars) or isinstance(getattr(model, "thresholds", None), Thresholds):
        raise UsageError(
            f"judge_model: {type(model).__name__} is already a judge, or the thresholds of one: pass it as `judge`"
        )
    if invoke_step is not None:
        return FunctionJudge(_step_of(model, invoke_step), **rest)
    if isinstance(model, str):
        return _by_id({"id": model}, rest)
    if isinstance(model, Mapping) and isinstance(model.get("id"), str) and "/" in model["id"]:
        return _by_id(model, rest)
    if callable(model):
        return FunctionJudge(model, **rest)
    raise UsageError(
        f"judge_model: {model!r:.100} is neither a function nor the id of a model; a step or workflow needs "
        "an `invoke_step`: judge_model(step, invoke_step=…)"
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One step, and who runs it."""

    step: Any
    invoke: Callee

    async def __call__(self, asked: dict[str, JsonValue]) -> Any:
        signal = CancelSignal()
        try:
            return await self.invoke.call(self.step, asked, signal=signal)
        finally:
            signal.abort()


def _step_of(model: object, invoke_step: Callable[..., Any]) -> _Step:
    runner = Callee.of(invoke_step, ("step", "payload"), "judge_model: invoke_step")
    if not _is_workflow(model):
        return _Step(model, runner)
    first, *more = read_definition(model)
    if more:
        names = ", ".join(repr(step.name) for step in (first, *more))
        raise UsageError(f"judge_model: a judge is one step, and this workflow has {len(more) + 1} ({names}); give one")
    return _Step(first.step, runner)


def _is_workflow(model: object) -> bool:
    """Whether it is a definition and no step: a step that is a mapping has at least one value that is plain data."""
    if isinstance(model, list | tuple) or isinstance(peek(model, "steps"), Mapping | list | tuple):
        return True
    if not isinstance(model, Mapping) or not model:
        return False
    return not any(isinstance(value, str | int | float | list | tuple | None) for value in model.values())


class _SystemOne(Frozen):
    """A decision model, as a mapping says it."""

    id: str = Field(pattern=f"^{PREFIX}/.+$")
    base_url: str = OFFICIAL
    api_key_env: str | None = None

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("names an environment variable; the key itself does not belong here")  # nor is it shown
        return name


def _by_id(given: Mapping[str, Any], rest: dict[str, Any]) -> Judge:
    place = f"judge_model({given['id']!r:.100})"
    if given["id"].startswith(f"{PREFIX}/"):
        asked = validated(_SystemOne, given, lambda _: place)
        name = asked.id.removeprefix(f"{PREFIX}/")
        return SystemOneJudge(name, url=asked.base_url, api_key_env=asked.api_key_env, **rest)
    return ModelJudge(model_spec(given, place), **rest)


def model_spec(given: Mapping[str, Any], place: str) -> ModelAgent:
    """A language model that is asked beside the tasks: its `id`, and what else a run config says of a model.

    Raises:
        UsageError: it cannot be asked, or is given what only the models of a run have; `place` says where it stands.
    """
    config = validated(ModelConfig, given, lambda _: place)
    _refuse_pacing(config, place)
    return build_agents([config], {}, limits=SomeLimits(), release_limits=Limits())[0]


def _refuse_pacing(config: ModelConfig, place: str) -> None:
    """Refuse what only the models of a run have."""
    if config.mock and config.mock.replay:
        raise UsageError(
            f"{place}: recorded outputs hold no answers of a judge; use mock/script instead of mock/replay"
        )
    rates = [f"pacing.{name}" for name in _UNPACED if getattr(config.pacing, name) is not None]
    rates += ["quota"] if config.quota is not None else []
    rates += ["budget"] if "budget" in config.model_fields_set else []
    if rates:
        raise UsageError(f"{place}: {', '.join(rates)}: a judge is neither paced nor budgeted; leave this out")
