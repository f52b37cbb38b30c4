"""Running steps that name their model, such as those of the prebuilt judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.models.json_model import JsonModel
from trunchray.core.plain import plain
from trunchray.errors import UsageError
from trunchray.frontends.evaluation.judges import model_spec


def model_steps(models: Mapping[str, Mapping[str, Any]] | None = None) -> ModelSteps:
    """An `invoke_step` that asks the model of a step, `{provider, model, instructions, outputSchema}`.

    The instructions are the system prompt, and the payload, as JSON, the prompt; the reply's text is the output.
    `models` maps `<provider>/<model>` to what a run config says of that model: `base_url`, `api_key_env`, `params`, ….
    Those that are not in it are asked at their provider's own endpoint. Keys are read from the environment where
    requests are made. Connections are opened for each step, and closed after it.

    Raises:
        UsageError: a model in `models` cannot be asked.
    """
    given = {name: {"id": name, **config} for name, config in (models or {}).items()}
    for name, config in given.items():
        _model(name, config)
    return ModelSteps(given)


class _Known:
    """What has been found out about models so far, by id; never connections."""

    def __init__(self) -> None:
        self.models: dict[str, JsonModel] = {}


@dataclass(frozen=True, slots=True)
class ModelSteps:
    """Call it with a step and its payload."""

    models: Mapping[str, Mapping[str, Any]]
    known: _Known = field(default_factory=_Known, compare=False, repr=False)

    async def __call__(self, step: Mapping[str, JsonValue], payload: JsonValue) -> str:
        """The text of the model's reply.

        Raises:
            UsageError: the step names no model that can be asked, or its key is not in the environment.
            ProviderError: the provider failed, also after retries.
        """
        name = f"{step.get('provider')}/{step.get('model')}"
        known = self.known.models.get(name) or _model(name, self.models.get(name, {"id": name}))
        model = copy(known)  # whose connections are its own
        try:
            done = await model.ask(_chat(step, payload, model.spec.system_prompt), _schema(step))
        finally:
            await model.close()
        self.known.models[name] = model
        return done.reply.text


def _model(name: str, config: Mapping[str, Any]) -> JsonModel:
    return JsonModel(model_spec(config, f"model_steps: {name!r}"))


def _chat(step: Mapping[str, JsonValue], payload: JsonValue, system_prompt: str) -> list[dict[str, str]]:
    instructions = step.get("instructions")
    if not isinstance(instructions, str):
        raise UsageError(f"model_steps: the step {step.get('id')!r} has no instructions")
    shown = json.dumps(plain(payload), ensure_ascii=False, indent=1)
    if system_prompt == "user":
        return [{"role": "user", "content": f"{instructions}\n\n{shown}"}]
    return [{"role": system_prompt, "content": instructions}, {"role": "user", "content": shown}]


def _schema(step: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    schema = step.get("outputSchema")
    return schema if isinstance(schema, Mapping) else {"type": "object"}
