"""A model as a grader: it is shown the attempt, and answers in JSON by a schema."""

from __future__ import annotations

import os
from functools import partial

from pydantic import JsonValue

from trunchray.adapters.calling import in_thread
from trunchray.adapters.models.connect import build_client
from trunchray.adapters.models.json_model import JsonModel
from trunchray.adapters.models.retry import Waits
from trunchray.core.digest import digest
from trunchray.core.grader_spec import ModelGrader
from trunchray.core.grading_prompt import REPLY, RULES, model_prompt, repair
from trunchray.core.rubric import SCHEMA
from trunchray.errors import UsageError
from trunchray.evaluators.attempts.base import Attempt, Refused, Reply
from trunchray.evaluators.attempts.looking import shown


class ModelBackend:
    """One model. Keys are read from the environment where requests are made; `waits` passes between their retries.

    Raises:
        UsageError: the model cannot be asked.
    """

    def __init__(self, spec: ModelGrader, *, waits: Waits | None = None) -> None:
        if spec.model.model == "mock/replay":
            raise UsageError("a grader answers what nobody recorded: take mock/script in place of mock/replay")
        self._spec = spec
        self._model = JsonModel(spec.model, waits=waits)

    async def ask(self, attempt: Attempt, refused: Refused | None = None) -> Reply:
        """As `GraderBackend.ask`; a reply that was refused is answered with why.

        Raises:
            UsageError: the key is not in the environment.
            ProviderError: the model could not be asked.
        """
        prompt = await in_thread(partial(self._prompt, attempt))
        chat = [*self._opening(prompt)]
        if refused is not None:
            chat += [{"role": "assistant", "content": refused.reply}, {"role": "user", "content": repair(refused.why)}]
        reply = (await self._model.ask(chat, SCHEMA, step=2 if refused else 1)).reply
        ended = reply.finish_reason
        return Reply(reply.text, "" if ended in ("stop", "other") else f"finish reason {ended}")

    def check(self) -> None:
        """As `GraderBackend.check`."""
        if self._spec.model.mock is None:
            build_client(self._spec.model, environ=os.environ)

    async def close(self) -> None:
        """Close every connection."""
        await self._model.close()

    @property
    def identity(self) -> JsonValue:
        """What is asked of the model, how much it is shown, and the digest of what it is told."""
        return {**self._spec.asked, "told": digest([RULES, REPLY, dict(SCHEMA)])}

    def _prompt(self, attempt: Attempt) -> str:
        return model_prompt(attempt.rubric, shown(attempt), self._spec.shown)

    def _opening(self, prompt: str) -> tuple[dict[str, str], ...]:
        role = self._spec.model.system_prompt
        if role == "user":
            return ({"role": "user", "content": f"{RULES}\n\n{prompt}"},)
        return ({"role": role, "content": RULES}, {"role": "user", "content": prompt})
