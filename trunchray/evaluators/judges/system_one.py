"""A decision model as a judge, over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from trunchray.adapters.models.providers import resolve
from trunchray.adapters.models.system_one_keys import OFFICIAL, find_key, key_names
from trunchray.core.decisions import Decision, Fallback, Question, Thresholds, check_questions
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_agent

if TYPE_CHECKING:
    from trunchray.adapters.models.system_one import SystemOneClient

PREFIX = "systemone"
TIMEOUT = 1.5


class SystemOneJudge:
    """A decision model, asked over HTTP once for all questions about a state.

    `url` is where requests are sent. The key is read where they are made, from the environment: from `api_key_env`
    alone when that is given, else from the endpoint's usual variables and then SYSTEM_ONE_API_KEY. `timeout` bounds one
    round trip, in seconds; 408, 429, 5xx and broken connections are tried twice more.

    Raises:
        UsageError: `url` is not an address, or holds credentials.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = OFFICIAL,
        api_key_env: str | None = None,
        thresholds: Mapping[str, float] | Thresholds | None = None,
        escalate: object = None,
        timeout: float = TIMEOUT,
    ) -> None:
        resolve(f"{PREFIX}/{model}", url)
        self.thresholds, self.escalate, self.timeout = Thresholds.of(thresholds), checked_agent(escalate), timeout
        self._model, self._url = model, url
        self._key_names = key_names(url, api_key_env)
        self._client: SystemOneClient | None = None

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> tuple[Decision, ...] | Fallback:
        """As `Judge.invoke`; without a key in the environment nobody is asked, and the reason is no-key."""
        check_questions(questions)
        if not questions:
            return ()
        try:
            client = self._client or self._open()
        except UsageError as e:  # the environment names a proxy that is not an address
            return Fallback("network", str(e))
        if client is None:
            return Fallback("no-key", f"set {' or '.join(self._key_names)} where the evaluation runs")
        return await client.decide(state, questions)

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def identity(self) -> JsonValue:
        """The model and its address."""
        return {"kind": PREFIX, "model": self._model, "url": self._url}

    def __getstate__(self) -> dict[str, Any]:
        """Without connections: they are made in the process that asks."""
        return {**vars(self), "_client": None}

    def _open(self) -> SystemOneClient | None:
        key = find_key(self._key_names, os.environ)
        if key is None:
            return None
        from trunchray.adapters.models.system_one import SystemOneClient  # noqa: PLC0415 - loads aiohttp

        self._client = SystemOneClient(self._url, self._model, key, timeout=self.timeout)
        return self._client
