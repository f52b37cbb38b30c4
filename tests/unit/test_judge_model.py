"""Judges out of steps, functions and models."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import system_one
from trunchray.evaluators.judges.function import FunctionJudge
from trunchray.evaluators.judges.model import ModelJudge
from trunchray.evaluators.judges.scripted import ScriptedJudge
from trunchray.evaluators.judges.system_one import SystemOneJudge
from trunchray.frontends.evaluation.judges import judge_model

READY = Question("ready", "boolean", "Is it ready?", {YES: None, NO: None})
STATE = {"input": "hello", "output": "hi", "steps": []}
DECIDED = (Decision("ready", {YES: 0.75, NO: 0.25}),)
STEP = {"id": "judge", "provider": "openai", "model": "gpt-4o-mini"}


def run(step: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    assert step == STEP
    assert asked["state"] == STATE
    return {"decisions": [{"id": question["id"], "type": "noul", "noul": 0.75} for question in asked["questions"]]}


async def run_later(step: Any, asked: Mapping[str, Any], signal: Any) -> dict[str, Any]:
    assert not signal.aborted
    return {"reply": json.dumps(run(step, asked)), "turn": {"role": "assistant"}}


@pytest.mark.parametrize(
    "model",
    [STEP, {"judge": STEP}, [STEP], [("judge", STEP)], {"steps": [STEP]}, SimpleNamespace(steps={"judge": STEP})],
    ids=["step", "mapping", "list", "pairs", "steps", "object"],
)
@pytest.mark.parametrize("invoke_step", [run, run_later])
async def test_a_step_or_a_workflow_of_one(model: Any, invoke_step: Any) -> None:
    """The step is run through invoke_step with state and questions; what agents wrap its output in is taken off."""
    assert await judge_model(model, invoke_step).invoke(STATE, [READY]) == DECIDED


async def test_an_object_as_a_step() -> None:
    """What a step is, is a matter for who runs it, even when it can be called, or invoked."""
    step = SimpleNamespace(invoke=lambda: None)
    judge = judge_model(step, lambda given, _: {"fallback": True, "reason": "network" if given is step else "no-key"})
    assert await judge.invoke(STATE, [READY]) == Fallback("network")


def test_a_workflow_of_several_steps() -> None:
    """A judge is one step: which of several would judge is not guessed."""
    with pytest.raises(UsageError, match=r"this workflow has 2 \('a', 'b'\); give one"):
        judge_model({"steps": {"a": STEP, "b": STEP}}, run)


@pytest.mark.parametrize("model", [STEP, {"judge": STEP}, [STEP], 42, None])
def test_a_step_without_who_runs_it(model: Any) -> None:
    """Nothing runs a step by itself."""
    with pytest.raises(UsageError, match=r"judge_model\(step, invoke_step=…\)"):
        judge_model(model)


def test_who_runs_steps_takes_them() -> None:
    """A function with other parameters is refused before anything runs."""
    with pytest.raises(UsageError, match="invoke_step takes"):
        judge_model(STEP, lambda step: step)


async def test_a_function() -> None:
    """It judges as it is."""
    assert await judge_model(lambda asked: run(STEP, asked)).invoke(STATE, [READY]) == DECIDED


async def test_the_id_of_a_model() -> None:
    """It is asked as any model of a run, with whatever a run config can say of one."""
    said = json.dumps({"1": {"answer": "yes", "probabilities": {"yes": 0.75, "no": 0.25}}})
    judge = judge_model({"id": "mock/script", "mock": {"script": [{"text": said}]}})
    assert isinstance(judge, ModelJudge)
    assert await judge.invoke(STATE, [READY]) == (Decision("ready", {YES: 0.75, NO: 0.25}, method="stated"),)
    echo = await judge_model("mock/echo").invoke(STATE, [READY])
    assert isinstance(echo, Fallback)
    local = judge_model({"id": "ollama/qwen2.5:7b", "base_url": "http://localhost:11434/v1", "params": {"seed": 1}})
    assert isinstance(local, ModelJudge)
    assert isinstance(judge_model("openai/gpt-4o-mini"), ModelJudge)


def test_a_decision_model() -> None:
    """systemone/… names one, at the official address unless told otherwise."""
    judge = judge_model("systemone/jev-latest")
    assert isinstance(judge, SystemOneJudge)
    url = "https://api.typesafe.ai/v1/systemone"
    assert judge.identity == {"kind": "systemone", "model": "jev-latest", "url": url}
    mine = judge_model({"id": "systemone/a/b", "base_url": "http://localhost:1/x", "api_key_env": "MY_KEY"})
    assert mine.identity == {"kind": "systemone", "model": "a/b", "url": "http://localhost:1/x"}


def test_bars_agent_and_timeout() -> None:
    """They are the judge's, whatever it is made of; a timeout is a text, or a number of milliseconds."""
    agent = SimpleNamespace(send=print)
    for model in ("openai/gpt-4o-mini", "systemone/jev", run_later.__call__):
        judge = judge_model(model, thresholds={"yes": 0.9}, escalate=agent, timeout="2s")
        assert (judge.thresholds, judge.escalate, judge.timeout) == (Thresholds(yes=0.9), agent, 2.0)
    assert judge_model("systemone/jev", timeout=1500).timeout == 1.5


def test_timeouts_by_default() -> None:
    """A decision model has a second and a half, a language model two minutes, a function one."""
    made = [judge_model(model).timeout for model in ("systemone/jev", "openai/gpt-4o-mini", run_later.__call__)]
    assert made == [1.5, 120, 60]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-4o", "must be written <provider>/<model>"),
        ({"id": "openai/m", "pacing": {"requests_per_minute": 3}}, "pacing.requests_per_minute: a judge is neither"),
        ({"id": "openai/m", "quota": "shared"}, "quota: a judge is neither paced nor budgeted"),
        ({"id": "openai/m", "budget": {"usd": 1}}, "budget: a judge is neither paced nor budgeted"),
        ({"id": "openai/m", "temprature": 0}, "temprature: unknown key"),
        ({"id": "mock/replay", "mock": {"replay": "x.jsonl"}}, "recorded outputs hold no answers of a judge"),
        ({"id": "systemone/jev", "url": "http://x"}, "url: unknown key"),
        ({"id": "systemone/jev", "api_key_env": "sk-12345-secret"}, "api_key_env"),
        (ScriptedJudge({}), "ScriptedJudge is already a judge"),
        (system_one(), "Bars is already a judge"),
    ],
)
def test_what_no_judge_can_be_made_of(model: Any, said: str) -> None:
    """The message says where it is wrong."""
    with pytest.raises(UsageError, match=said) as refused:
        judge_model(model)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"thresholds": {"yes": 0.2, "no": 0.5}}, "no .0.5. must not be above yes"),
        ({"escalate": "gpt"}, "escalate must be an agent"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_settings_that_make_no_sense(given: Any, said: str) -> None:
    """They are refused before anything runs."""
    with pytest.raises(UsageError, match=said):
        judge_model("openai/gpt-4o-mini", **given)


def test_judges_of_steps_can_be_pickled_and_told_apart() -> None:
    """A judge is another when its step is, or the code that runs it."""
    judge = judge_model(STEP, run)
    assert isinstance(judge, FunctionJudge)
    assert pickle.loads(pickle.dumps(judge)).identity == judge.identity
    assert judge.identity != judge_model({**STEP, "model": "other"}, run).identity
    assert judge.identity != judge_model(STEP, run_later).identity
