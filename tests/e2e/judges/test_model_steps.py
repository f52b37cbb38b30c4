"""Prebuilt judges whose step our own model clients run."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import answering, completion, endpoint
from trunchray.adapters.source_code import code_digest
from trunchray.core.check_result import CheckResult
from trunchray.core.record import RunRecord
from trunchray.errors import UsageError
from trunchray.frontends.evaluation.model_steps import model_steps
from trunchray.frontends.evaluation.prebuilt import answer_relevancy, faithfulness

RUN = RunRecord(input="It costs 5 euros.", output="5 euros")
PINNED = {"provider": "openai", "model": "m"}


async def test_a_prebuilt_judge_asks_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its instructions are the system prompt, the payload is the prompt, and the reply is read as its answer."""
    monkeypatch.setenv("MY_KEY", "sk-0123456789")
    asked: list[Any] = []
    answer = completion('{"reason": "it says so", "category": "faithful"}')

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append((request.headers["Authorization"], await request.json()))
        return await answering(answer)(request)

    async with endpoint(handler) as url:
        judge = faithfulness(**PINNED)
        check = judge.scorer(model_steps({"openai/m": {"base_url": url, "api_key_env": "MY_KEY"}}))
        copy = pickle.loads(pickle.dumps(check))
        before = code_digest(check)
        for each in (check, check, copy):
            assert await each(RUN) == CheckResult(passed=True, value=1, explanation="faithful: it says so")
        assert code_digest(check) == before
    [step] = judge.definition["steps"]  # type: ignore[misc, union-attr]
    assert len(asked) == 3
    key, body = asked[0]
    assert (key, body["model"]) == ("Bearer sk-0123456789", "m")
    assert body["messages"][0] == {"role": "system", "content": step["instructions"]}  # type: ignore[index, call-overload]
    assert json.loads(body["messages"][1]["content"]) == {"input": "It costs 5 euros.", "output": "5 euros"}
    assert body["response_format"]["json_schema"]["schema"] == step["outputSchema"]  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering({"error": {"message": "no such key"}}, 401), "could not be judged: "),
        (answering(completion("Quite relevant.")), "not judged: not JSON"),
        (answering(completion('{"score": 7}')), "not judged: its score is 7"),
    ],
)
async def test_a_model_that_gives_no_answer(answer: Any, said: str) -> None:
    """The check fails closed, and says why."""
    async with endpoint(answer) as url:
        found = await answer_relevancy(**PINNED).scorer(model_steps({"openai/m": {"base_url": url}}))(RUN)
    assert (found.passed, found.value) == (False, 0)
    assert said in (found.explanation or "")


async def test_a_model_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is not described is asked at its provider's own endpoint, which needs a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = await answer_relevancy(**PINNED).scorer(model_steps())(RUN)
    assert "set the environment variable OPENAI_API_KEY" in (found.explanation or "")


def test_models_that_cannot_be_asked() -> None:
    """They are refused when they are described."""
    with pytest.raises(UsageError, match="model_steps: 'openai/m': temprature: unknown key"):
        model_steps({"openai/m": {"temprature": 1}})
    with pytest.raises(UsageError, match="must be written <provider>/<model>"):
        model_steps({"m": {}})
