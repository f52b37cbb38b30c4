"""Language models as judges, over real HTTP and in process."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import Handler, answering, completion, endpoint
from trunchray.adapters.models.retry import Waits
from trunchray.core.agent import Mock, ModelAgent, Pacing, ScriptedReply
from trunchray.core.decisions import NO, YES, Decision, Fallback, Question
from trunchray.errors import UsageError
from trunchray.evaluators.judges.model import ModelJudge

KEY = "sk-very-secret-0123456789"
STATE = {"input": "I was charged twice", "output": "Refunded.", "steps": []}
READY = Question("ready", "boolean", "Is it ready?", {YES: None, NO: None})
TONE = Question("tone", "choice", "Which tone?", {"warm": None, "cold": None})

SAID = json.dumps(
    {
        "1": {"answer": "yes", "probabilities": {"yes": 0.75, "no": 0.25}},
        "2": {"answer": "A", "probabilities": {"A": 0.9, "B": 0.1}},
    }
)
DECIDED = (
    Decision("ready", {YES: 0.75, NO: 0.25}, method="stated"),
    Decision("tone", {"warm": 0.9, "cold": 0.1}, "warm", "stated"),
)


class Provider:
    """Keeps what it was asked; refuses requests with a field in `refuses`, and the first ones with `failing`."""

    def __init__(self, body: Any = None, *, refuses: tuple[str, ...] = (), failing: tuple[int, ...] = ()) -> None:
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self._body, self._refuses, self.failing = body or completion(SAID), refuses, list(failing)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.requests.append(asked)
        self.headers.append(dict(request.headers))
        if self.failing:
            return web.json_response({"error": {"message": f"no, {KEY}"}}, status=self.failing.pop(0))
        if refused := [name for name in self._refuses if name in asked or name in asked.get("response_format", {})]:
            message = {"error": {"message": f"{refused[0]} is not supported", "type": "invalid_request_error"}}
            return web.json_response(message, status=400)
        return await answering(self._body)(request)


@asynccontextmanager
async def judge(handler: Handler, waits: list[float] | None = None, **spec: Any) -> AsyncGenerator[ModelJudge]:
    """A judge that asks a server, and whose waits take no time."""
    waited = [] if waits is None else waits

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with endpoint(handler) as url:
        agent = ModelAgent(**{"name": "m", "model": "openai/m", "base_url": url, "api_key_env": "JUDGE_KEY", **spec})
        made = ModelJudge(agent, waits=Waits(sleep=sleep, uniform=lambda _low, high: high))
        try:
            yield made
        finally:
            await made.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)


async def test_one_request_carries_all_questions() -> None:
    """JSON by its schema, the probabilities of tokens and no randomness are asked for, in one request for all."""
    provider = Provider()
    async with judge(provider.answer, params={"seed": 7}) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    [asked] = provider.requests
    assert list(asked["response_format"]["json_schema"]["schema"]["properties"]) == ["1", "2"]
    assert {name: asked[name] for name in ("model", "temperature", "logprobs", "seed")} == {
        "model": "m",
        "temperature": 0,
        "logprobs": True,
        "seed": 7,
    }
    assert all(text in asked["messages"][1]["content"] for text in ("charged twice", "Is it ready?", "Which tone?"))
    assert provider.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_the_probabilities_of_tokens_as_a_provider_sends_them() -> None:
    """They go before what the model states, and each decision says that they are meant."""
    parts = ['{"1": {"answer": "', "yes", SAID.partition("yes")[2].partition('"A"')[0] + '"', "A"]
    rest = SAID[len("".join(parts)) :]
    odds = {"yes": {"yes": 0.6, "no": 0.4}, "A": {"B": 0.95, "A": 0.05}}
    content = [
        {
            "token": part,
            "logprob": 0,
            "top_logprobs": [{"token": text, "logprob": math.log(p)} for text, p in odds.get(part, {}).items()],
        }
        for part in (*parts, rest)
    ]
    body = completion(SAID)
    body["choices"][0]["logprobs"] = {"content": content}
    async with judge(answering(body)) as made:
        ready, tone = await made.invoke(STATE, [READY, TONE])  # type: ignore[misc]  # no fallback
    assert ready == Decision("ready", pytest.approx({YES: 0.6, NO: 0.4}), method="logprobs")  # type: ignore[arg-type]
    assert (tone.choice, tone.method) == ("cold", "logprobs")


@pytest.mark.parametrize("raw", [True, [], {"content": [7]}, {"content": [{"token": "x", "top_logprobs": "y"}]}])
async def test_log_probabilities_that_are_none(raw: Any) -> None:
    """A provider that sends something else in their place is taken at its word instead."""
    body = completion(SAID)
    body["choices"][0]["logprobs"] = raw
    async with judge(answering(body)) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED


@pytest.mark.parametrize(
    ("refuses", "fields", "form"),
    [
        ((), {"temperature", "logprobs", "top_logprobs"}, "json_schema"),
        (("json_schema",), {"temperature", "logprobs", "top_logprobs"}, "json_object"),
        (("logprobs",), {"temperature"}, "json_schema"),
        (("logprobs", "temperature"), set[str](), "json_schema"),
        (("logprobs", "json_schema"), {"temperature"}, "json_object"),
        (("logprobs", "json_schema", "temperature"), set[str](), "json_object"),
        (("response_format",), set[str](), None),
    ],
)
async def test_a_model_that_does_not_take_everything(
    refuses: tuple[str, ...], fields: set[str], form: str | None
) -> None:
    """What it refuses is left out, and from then on not asked for again."""
    provider = Provider(refuses=refuses)
    async with judge(provider.answer) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
        tries = len(provider.requests)
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    assert len(provider.requests) == tries + 1
    last = provider.requests[-1]
    assert last.keys() & {"temperature", "logprobs", "top_logprobs"} == fields
    assert last.get("response_format", {}).get("type") == form


async def test_one_call_finds_out_for_all() -> None:
    """Calls that begin at the same time do not each find out what the model takes."""
    provider = Provider(refuses=("logprobs", "json_schema"))
    async with judge(provider.answer) as made:
        assert await asyncio.gather(*(made.invoke(STATE, [READY, TONE]) for _ in range(9))) == [DECIDED] * 9
        refused = len(provider.requests) - 9
        await made.close()
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    assert (refused, len(provider.requests)) == (4, 14)


async def test_a_form_of_the_configs_own() -> None:
    """What the config says of the form of replies, and of anything else, is sent in place of ours."""
    provider, form = Provider(), {"type": "text"}
    async with judge(provider.answer, params={"response_format": form, "temperature": 1}) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    assert (provider.requests[0]["response_format"], provider.requests[0]["temperature"]) == (form, 1)


async def test_a_request_that_is_bad_once_others_were_good() -> None:
    """What works is known by then: the request itself is bad, and nothing else is tried."""
    provider = Provider()
    async with judge(provider.answer) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
        provider.failing.append(400)
        found = await made.invoke(STATE, [READY, TONE])
    assert isinstance(found, Fallback)
    assert (found.reason, len(provider.requests)) == ("http-error", 2)


async def test_a_request_that_is_bad_in_any_way() -> None:
    """It is refused with its reason, and what the model takes is still unknown."""
    provider = Provider(failing=(400,) * 7)
    async with judge(provider.answer) as made:
        found = await made.invoke(STATE, [READY, TONE])
        assert isinstance(found, Fallback)
        assert (found.reason, found.backend) == ("http-error", "openai/m")
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    assert "logprobs" in provider.requests[-1]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_retries(status: int) -> None:
    """What could be otherwise in a moment is tried again, as with every model."""
    waits: list[float] = []
    provider = Provider(failing=(status, status))
    async with judge(provider.answer, waits) as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    assert (len(provider.requests), waits) == (3, [0.5, 1.0])


@pytest.mark.parametrize(("status", "tries"), [(401, 1), (404, 1), (500, 3)])
async def test_a_provider_that_fails(status: int, tries: int) -> None:
    """After the retries it is a fallback with the reason http-error, and the key is not in it."""
    provider = Provider(failing=(status,) * 9)
    async with judge(provider.answer, pacing=Pacing(max_retries=2)) as made:
        found = await made.invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert (found.reason, len(provider.requests)) == ("http-error", tries)
    assert KEY not in repr(found)
    assert str(status) in (found.detail or "")


async def test_a_model_that_hangs() -> None:
    """The timeout of a judge bounds each request."""

    async def handler(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with endpoint(handler) as url:
        spec = ModelAgent(name="m", model="openai/m", base_url=url, pacing=Pacing(max_retries=0))
        made = ModelJudge(spec, timeout=0.05)
        found = await made.invoke(STATE, [READY])
        await made.close()
    assert isinstance(found, Fallback)
    assert (found.reason, made.timeout) == ("timeout", 0.05)


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (answering(completion("The reply is ready.")), "parse-error"),
        (answering(completion("", reason="content_filter")), "parse-error"),
        (answering(completion('{"1": {"answer"', reason="length")), "parse-error"),
        (answering(b"<html>"), "parse-error"),
        (answering({"choices": []}), "parse-error"),
    ],
    ids=["prose", "filtered", "cut", "page", "empty"],
)
async def test_an_answer_that_is_none(handler: Handler, reason: str) -> None:
    """Whatever is no decision in exactly the form asked for is a parse-error."""
    async with judge(handler, pacing=Pacing(max_retries=0)) as made:
        found = await made.invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert found.reason == reason


async def test_nobody_there() -> None:
    """An address where nobody listens is a network failure."""
    async with endpoint(answering({})) as url:
        pass
    made = ModelJudge(ModelAgent(name="m", model="openai/m", base_url=url, pacing=Pacing(max_retries=0)))
    found = await made.invoke(STATE, [READY])
    await made.close()
    assert isinstance(found, Fallback)
    assert found.reason == "network"


async def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its key nobody is asked, and the message names the variable."""
    monkeypatch.delenv("JUDGE_KEY")
    provider = Provider()
    async with judge(provider.answer) as made:
        found = await made.invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert (found.reason, provider.requests) == ("no-key", [])
    assert "set the environment variable JUDGE_KEY" in (found.detail or "")


async def test_through_litellm(litellm: None) -> None:
    """Providers with protocols of their own are asked through litellm, and answer the same."""
    provider = Provider(refuses=("logprobs",))
    async with judge(provider.answer, transport="litellm") as made:
        assert await made.invoke(STATE, [READY, TONE]) == DECIDED


async def test_a_mock_that_judges() -> None:
    """A scripted model judges offline, and can be sent to another process."""
    mock = Mock(script=(ScriptedReply(text=SAID),))
    made = ModelJudge(ModelAgent(name="m", model="mock/script", mock=mock))
    assert await made.invoke(STATE, [READY, TONE]) == DECIDED
    copy = pickle.loads(pickle.dumps(made))
    assert await copy.invoke(STATE, [READY, TONE]) == DECIDED
    assert copy.identity == made.identity
    assert await made.invoke(STATE, []) == ()


async def test_what_tells_one_model_from_another() -> None:
    """Model, endpoint and parameters do, and the prompt; its pacing and keys do not."""
    spec = ModelAgent(name="m", model="openai/m", base_url="http://localhost:1")
    same = spec.model_copy(update={"name": "n", "pacing": Pacing(timeout=1), "api_key_env": "ANY"})
    other = spec.model_copy(update={"params": {"seed": 1}})
    assert ModelJudge(spec).identity == ModelJudge(same).identity != ModelJudge(other).identity


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"model": "gpt-4o"}, "must be written <provider>/<model>"),
        ({"model": "nobody/gpt"}, "no endpoint is known"),
        ({"model": "mock/replay"}, "recorded outputs hold no answers of a judge"),
        ({"model": "openai/m", "params": {"n": 3}}, "params may not set n"),
    ],
)
def test_a_model_that_cannot_be_asked(spec: dict[str, Any], said: str) -> None:
    """It is refused before anything runs."""
    with pytest.raises(UsageError, match=said):
        ModelJudge(ModelAgent(**{"name": "m", **spec}))
