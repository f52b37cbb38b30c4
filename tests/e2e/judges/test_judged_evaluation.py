"""Evaluations whose questions a decision model answers over HTTP, through the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.endpoint import endpoint
from trunchray import EvalFailure, EvaluationReport, aevaluate, ask, judge_model, mentions

SCORERS = {
    "ready": "Is it ready?",
    "tone": ask("Which tone?", options=["warm", "cold"], pass_="warm"),
    "refunds": mentions(["refund"]),
}
ANSWERS = {
    "ready": {"type": "noul", "noul": 0.9},
    "tone": {"type": "choice", "choice": "warm", "probabilities": {"warm": 0.9, "cold": 0.1}, "confidence": 0.8},
}
DATA = [{"name": "a", "input": "1"}, {"name": "b", "input": "2", "skip": ["tone"]}]


def task(value: str) -> str:
    return f"refund {value}"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEM_ONE_API_KEY", "key-0123456789")


async def evaluation(url: str, out: Path, **given: Any) -> EvaluationReport:
    judge = judge_model({"id": "systemone/jev-1", "base_url": url}, timeout="60s")
    settings: dict[str, Any] = {"name": "refunds", "task": task, "data": DATA, "scorers": SCORERS, "quiet": True}
    return await aevaluate(**{**settings, "judge": judge, "pool": "local", "out": str(out), **given})


async def test_one_request_for_each_attempt(tmp_path: Path) -> None:
    """It carries all questions of the case but those that it skips, and the state that every judge sees."""
    asked: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        body = await request.json()
        asked.append(body)
        return web.json_response({"answers": {name: ANSWERS[name] for name in body["questions"]}})

    async with endpoint(handler) as url:
        report = await evaluation(url, tmp_path, repeats=2)
    assert report.passed
    found = sorted((body["state"]["input"], list(body["questions"])) for body in asked)
    assert found == [("1", ["ready", "tone"]), ("1", ["ready", "tone"]), ("2", ["ready"]), ("2", ["ready"])]
    assert asked[0]["state"].keys() == {"input", "output", "steps"}
    [first, _] = report.to_json()["cases"]  # type: ignore[misc, union-attr]
    assert first["checks"]["ready"]["probabilities"] == {"yes": 0.9, "no": pytest.approx(0.1)}  # type: ignore[index, call-overload]


async def test_a_judge_that_does_not_answer(tmp_path: Path) -> None:
    """Every check that it decides fails with the reason; code checks are not touched by that."""

    async def handler(_request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "who are you?"}}, status=401)

    async with endpoint(handler) as url:
        with pytest.raises(EvalFailure) as failed:
            await evaluation(url, tmp_path)
    [first, second] = failed.value.report.to_json()["cases"]
    assert first["checks"]["ready"]["explanation"].startswith("judge: http-error: ")
    assert first["checks"]["tone"]["explanation"].startswith("judge: http-error: ")
    assert (first["checks"]["refunds"]["pass"], list(second["checks"])) == (True, ["ready", "refunds"])
