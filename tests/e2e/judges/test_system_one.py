"""A decision model over real HTTP: what is sent, what counts as an answer, and how it fails."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import Handler, answering, endpoint
from trunchray.adapters.models.keys import Key
from trunchray.adapters.models.retry import Waits
from trunchray.adapters.models.system_one import SystemOneClient
from trunchray.adapters.models.system_one_keys import GATEWAY, OFFICIAL, find_key, key_names
from trunchray.core.decisions import NO, YES, Decision, Fallback, Question
from trunchray.evaluators.judges.system_one import SystemOneJudge

KEY = "key-very-secret-0123456789"
STATE = {"input": "I was charged twice", "output": "Refunded.", "steps": []}
READY = Question("ready", "boolean", "Is it ready?", {YES: None, NO: None})
TONE = Question("tone", "choice", "Which tone?", {"warm": "kind", "cold": None})
GRADE = Question("grade", "score", "How good?", {"poor": None, "good": None})

ANSWERS: dict[str, Any] = {
    "ready": {"type": "noul", "noul": 0.75},
    "tone": {"type": "choice", "choice": "warm", "probabilities": {"warm": 0.9, "cold": 0.1}, "confidence": 0.8},
    "grade": {
        "type": "score",
        "score": 0.7,
        "legend": {"0": "poor", "1": "good"},
        "probabilities": {"0": 0.3, "1": 0.7},
        "confidence": 0.4,
    },
}
BODY = {"model": "jev-1", "usage": {"input_tokens": 3, "output_tokens": 1}, "answers": ANSWERS, "more": [1]}
DECIDED = (
    Decision("ready", {"yes": 0.75, "no": 0.25}),
    Decision("tone", {"warm": 0.9, "cold": 0.1}, "warm"),
    Decision("grade", {"poor": 0.3, "good": 0.7}),
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """One key, under the name that serves any address."""
    for name in ("TYPESAFE_API_KEY", "AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SYSTEM_ONE_API_KEY", KEY)


@asynccontextmanager
async def judge(handler: Handler, *, path: str = "/v1/systemone", **given: Any) -> AsyncGenerator[SystemOneJudge]:
    """A judge asking a server; without its own word for it, requests may take as long as they like."""
    async with endpoint(handler) as url:
        made = SystemOneJudge("jev-1", url=url + path, **{"timeout": 60, **given})
        try:
            yield made
        finally:
            await made.close()


class Provider:
    """Plays answers in turn, the last one from then on, and keeps what it was asked."""

    def __init__(self, *answers: Handler) -> None:
        self.answers = answers
        self.requests: list[tuple[dict[str, str], Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((dict(request.headers), await request.json()))
        return await self.answers[min(len(self.requests), len(self.answers)) - 1](request)


async def failing(handler: Handler, **given: Any) -> Fallback:
    """What is made of an endpoint that answers so; nothing of it may hold the key."""
    async with judge(handler, **given) as made:
        found = await made.invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert KEY not in repr(found)
    return found


@asynccontextmanager
async def client(handler: Handler, waits: list[float]) -> AsyncGenerator[SystemOneClient]:
    """The client by itself, whose waits take no time and are kept."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with endpoint(handler) as url:
        passing = Waits(sleep=sleep, uniform=lambda _low, high: high)
        made = SystemOneClient(url, "jev-1", Key("SYSTEM_ONE_API_KEY", KEY), timeout=60, waits=passing)
        try:
            yield made
        finally:
            await made.close()


async def test_one_request_carries_all_questions() -> None:
    """Model, state and questions by id are sent once, with the key as a bearer token; decisions come in order."""
    provider = Provider(answering(BODY))
    async with judge(provider.answer) as made:
        assert await made.invoke(STATE, [READY, TONE, GRADE]) == DECIDED
    [(headers, body)] = provider.requests
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "jev-1",
        "state": STATE,
        "questions": {
            "ready": {"type": "noul", "instructions": "Is it ready?"},
            "tone": {"type": "choice", "instructions": "Which tone?", "criteria": {"warm": "kind", "cold": None}},
            "grade": {"type": "score", "instructions": "How good?", "criteria": ["poor", "good"]},
        },
    }


async def test_many_states_at_once() -> None:
    """One judge is shared by concurrent trials; each gets the answer to its own request."""

    async def handler(request: web.Request) -> web.Response:
        state = (await request.json())["state"]
        return web.json_response({"answers": {"ready": {"type": "noul", "noul": state / 64}}})

    async with judge(handler) as made:
        found = await asyncio.gather(*(made.invoke(n, [READY]) for n in range(64)))
    assert [decisions[0].probabilities[YES] for decisions in found] == [n / 64 for n in range(64)]  # type: ignore[union-attr, index]  # no fallbacks


async def test_a_judge_is_asked_again_after_it_was_closed() -> None:
    """Closing gives connections back; the next question opens new ones, in whatever process it then is."""
    async with judge(answering(BODY)) as made:
        assert await made.invoke(STATE, [READY, TONE, GRADE]) == DECIDED
        copy = pickle.loads(pickle.dumps(made))
        await made.close()
        assert await made.invoke(STATE, [READY, TONE, GRADE]) == DECIDED
        assert await copy.invoke(STATE, [READY, TONE, GRADE]) == DECIDED
        await copy.close()


def test_where_keys_are_looked_for() -> None:
    """Config first, then the endpoint's own variables, then SYSTEM_ONE_API_KEY."""
    assert key_names(OFFICIAL) == ("TYPESAFE_API_KEY", "SYSTEM_ONE_API_KEY")
    assert key_names(GATEWAY) == ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN", "SYSTEM_ONE_API_KEY")
    assert key_names("https://judge.example/v1") == ("SYSTEM_ONE_API_KEY",)
    assert key_names(OFFICIAL, "MY_KEY") == ("MY_KEY",)


def test_the_first_key_that_is_set_is_taken() -> None:
    """Empty variables, and such as no header can carry, are passed over."""
    names = key_names(GATEWAY)
    environ = {"AI_GATEWAY_API_KEY": " ", "VERCEL_OIDC_TOKEN": " token ", "SYSTEM_ONE_API_KEY": "other"}
    assert find_key(names, environ) == Key("VERCEL_OIDC_TOKEN", "token")
    assert find_key(names, {"VERCEL_OIDC_TOKEN": "two words", "SYSTEM_ONE_API_KEY": "last"}) == Key(
        "SYSTEM_ONE_API_KEY", "last"
    )
    assert find_key(names, {}) is None


async def test_the_key_of_an_official_endpoint_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another address never gets the key of the official one or of the gateway."""
    monkeypatch.setenv("TYPESAFE_API_KEY", "official-key")
    monkeypatch.setenv("AI_GATEWAY_API_KEY", "gateway-key")
    provider = Provider(answering(BODY))
    async with judge(provider.answer) as made:
        await made.invoke(STATE, [READY, TONE, GRADE])
    assert provider.requests[0][0]["Authorization"] == f"Bearer {KEY}"


async def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key nobody is asked, and the message says which variable to set."""
    monkeypatch.delenv("SYSTEM_ONE_API_KEY")
    provider = Provider(answering(BODY))
    async with judge(provider.answer) as made:
        found = await made.invoke(STATE, [READY])
    assert found == Fallback("no-key", "set SYSTEM_ONE_API_KEY where the evaluation runs")
    assert provider.requests == []
    official = await SystemOneJudge("jev-1").invoke(STATE, [READY])
    assert isinstance(official, Fallback)
    assert "set TYPESAFE_API_KEY or SYSTEM_ONE_API_KEY" in (official.detail or "")


async def test_a_judge_that_hangs() -> None:
    """A round trip that takes longer than the timeout is given up, and not repeated."""

    async def handler(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    provider = Provider(handler)
    found = await failing(provider.answer, timeout=0.05)
    assert (found.reason, found.http_status) == ("timeout", None)
    assert "no answer in 0.05 s" in (found.detail or "")
    assert len(provider.requests) == 1


async def test_a_body_that_never_ends() -> None:
    """The timeout covers the whole answer, not only its beginning."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"answers": ')
        await asyncio.Event().wait()
        return response

    assert (await failing(handler, timeout=0.05)).reason == "timeout"


def test_the_timeout_is_a_second_and_a_half() -> None:
    """That is how long one round trip may take, unless told otherwise."""
    assert SystemOneJudge("jev-1").timeout == 1.5


async def test_nobody_there() -> None:
    """An address where nobody listens is a network failure."""
    async with endpoint(answering({})) as url:
        pass
    made = SystemOneJudge("jev-1", url=url, timeout=60)
    found = await made.invoke(STATE, [READY])
    await made.close()
    assert isinstance(found, Fallback)
    assert (found.reason, found.backend) == ("network", url.removeprefix("http://"))


async def test_a_proxy_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names is refused without being repeated, as it may hold a password."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "socks5://user:secret@proxy:1")
    found = await SystemOneJudge("jev-1").invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert found.reason == "network"
    assert "secret" not in repr(found)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 302])
async def test_refusals_that_are_not_repeated(status: int) -> None:
    """Only 408, 429 and 5xx are tried again; a redirect is not followed."""
    provider = Provider(answering({"error": {"message": f"bad key {KEY}"}}, status, Location="http://elsewhere/"))
    found = await failing(provider.answer)
    assert (found.reason, found.http_status) == ("http-error", status)
    assert len(provider.requests) == 1
    if status == 401:
        assert "[key]" in (found.detail or "")
        assert "SYSTEM_ONE_API_KEY" in (found.detail or "")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_refusals_that_are_repeated(status: int) -> None:
    """408, 429 and 5xx are tried twice more, up to half a second and a second later."""
    provider, waits = Provider(answering({"error": "busy"}, status)), list[float]()
    async with client(provider.answer, waits) as asked:
        found = await asked.decide(STATE, [READY])
    assert isinstance(found, Fallback)
    assert (found.reason, found.http_status) == ("http-error", status)
    assert (len(provider.requests), waits) == (3, [0.5, 1.0])


async def test_a_try_that_succeeds_is_the_answer() -> None:
    """What failed before it does not count."""
    provider, waits = Provider(answering({}, 500), answering({}, 429), answering(BODY)), list[float]()
    async with client(provider.answer, waits) as asked:
        assert await asked.decide(STATE, [READY, TONE, GRADE]) == DECIDED


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"Retry_After": "60"}, [60.5, 60.5]),  # with half a second of jitter on top
        ({"Retry_After": "61"}, [0.5, 1.0]),
        ({"retry_after_ms": "1500"}, [2.0, 2.0]),
        ({"Retry_After": "soon"}, [0.5, 1.0]),
    ],
)
async def test_retry_after(headers: dict[str, str], waited: list[float]) -> None:
    """A wait that the endpoint asks for is kept up to a minute; a longer one is not waited for."""
    waits: list[float] = []
    async with client(answering({}, 429, **headers), waits) as asked:
        await asked.decide(STATE, [READY])
    assert waits == waited


def cut(content: bytes, length: int) -> Handler:
    """Announces `length` bytes, sends `content`, and hangs up."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(length)})
        await response.prepare(request)
        await response.write(content)
        assert request.transport is not None
        request.transport.close()
        return response

    return handler


async def test_a_cut_body() -> None:
    """An answer that breaks off is a network failure, and worth another try."""
    whole = json.dumps(BODY).encode()
    provider, waits = Provider(cut(whole[:40], len(whole)), answering(BODY)), list[float]()
    async with client(provider.answer, waits) as asked:
        assert await asked.decide(STATE, [READY, TONE, GRADE]) == DECIDED
    async with client(cut(whole[:40], len(whole)), waits) as asked:
        found = await asked.decide(STATE, [READY])
    assert isinstance(found, Fallback)
    assert found.reason == "network"


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The answer to READY, changed."""
    body: dict[str, Any] = {"answers": {"ready": {"type": "noul", "noul": 0.75}}}
    change(body["answers"])
    return body


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (json.dumps(BODY).encode()[:40], "not JSON"),
        (b"", "not JSON"),
        (b"<html>busy</html>", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'```json\n{"answers": {}}\n```', "not JSON"),
        (b'{"answers": {"ready": {"type": "noul", "noul": NaN}}}', "NaN is not a JSON number"),
        (b'{"answers": {"ready": {}, "ready": {"type": "noul", "noul": 1}}}', "twice"),
        ({"decisions": []}, "no object `answers`"),
        ({"answers": [{"id": "ready", "type": "noul", "noul": 1}]}, "no object `answers`"),
        ({"answers": {}}, "no decision about 'ready'"),
        (changed(lambda a: a.update(other=a["ready"])), "nobody asked for: 'other'"),
        (changed(lambda a: a["ready"].update(noul=1.01)), "from 0 to 1"),
        (changed(lambda a: a["ready"].update(type="choice")), "its type is 'choice'"),
        ({"answers": {"ready": f"Yes, says {KEY}"}}, "[key]"),
    ],
)
async def test_an_answer_that_is_none(body: Any, said: str) -> None:
    """What breaks one rule is a parse-error, which is not repeated; the key is never shown."""
    provider = Provider(answering(body))
    found = await failing(provider.answer)
    assert (found.reason, len(provider.requests)) == ("parse-error", 1)
    assert said in (found.detail or "")


async def test_probabilities_that_sum_to_0_9() -> None:
    """They are not scaled up: nothing of the answer is used."""
    tone = {**ANSWERS["tone"], "probabilities": {"warm": 0.8, "cold": 0.1}}
    async with judge(answering({"answers": {**ANSWERS, "tone": tone}})) as made:
        found = await made.invoke(STATE, [READY, TONE, GRADE])
    assert isinstance(found, Fallback)
    assert "decision 'tone': its probabilities add up to 0.9, not to 1 ± 0.02" in (found.detail or "")


@pytest.mark.parametrize("body", [b"no", b'{"answers": {}}'])
@pytest.mark.parametrize("status", [200, 400])
async def test_how_long_a_failure_took_is_no_part_of_it(status: int, body: bytes) -> None:
    """Who was asked and the milliseconds are kept; two failures that differ only in these last are equal."""
    found = await failing(answering(body, status))
    assert found.latency_ms is not None
    assert (found.backend or "").startswith("127.0.0.1:")
    assert replace(found, latency_ms=1) == found
    assert found.to_json()["latencyMs"] == found.latency_ms
