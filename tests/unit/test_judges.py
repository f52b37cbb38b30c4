"""Who decides the questions of checks: functions, scripts, and nobody."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from trunchray.core.agent import ModelAgent
from trunchray.core.decisions import NO, YES, Decision, Fallback, Question, Thresholds
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import Bars, checked_judge, jev, system_one
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.judges.function import FunctionJudge
from trunchray.evaluators.judges.model import ModelJudge
from trunchray.evaluators.judges.scripted import ScriptedJudge
from trunchray.evaluators.judges.system_one import SystemOneJudge

READY = Question("ready", "boolean", "Is it ready?", {YES: None, NO: None})
STATE = {"input": "hello", "output": "hi", "steps": []}
SURE = Decision("ready", {YES: 0.75, NO: 0.25})
REPLY = {"decisions": [{"id": "ready", "type": "noul", "noul": 0.75}]}


class Agent:
    async def send(self, prompt: str) -> dict[str, str]:
        return {"type": "reply", "reply": prompt}


def sync(_asked: object) -> object:
    return REPLY


async def later(_asked: object) -> object:
    return REPLY


async def test_a_function_is_asked_state_and_questions() -> None:
    """It gets one object of both, with the questions as a list."""
    given: list[Any] = []

    def judge(asked: Mapping[str, Any]) -> object:
        given.append(asked)
        return REPLY

    assert await FunctionJudge(judge).invoke(STATE, [READY]) == (SURE,)
    assert given == [
        {"state": STATE, "questions": [{"id": "ready", "type": "boolean", "instructions": "Is it ready?"}]}
    ]


@pytest.mark.parametrize(
    "judge",
    [
        sync,
        later,
        lambda asked: partial(later, asked)(),
        lambda _: {"reply": json.dumps(REPLY), "turn": {}},
        lambda _: json.dumps(REPLY),
        lambda _: {"decisions": {"ready": {"type": "noul", "noul": 0.75}}},
        lambda _: {"decisions": ({"id": "ready", "type": "noul", "noul": 0.75},)},
    ],
    ids=["sync", "async", "awaitable", "envelope", "text", "by id", "tuple"],
)
async def test_what_a_function_may_return(judge: Any) -> None:
    """Decisions, now or later, in any of the forms of a judge step."""
    assert await FunctionJudge(judge).invoke(STATE, [READY]) == (SURE,)


def raising(error: BaseException) -> Any:
    def judge(_asked: object) -> object:
        raise error

    return judge


@pytest.mark.parametrize(
    ("judge", "reason", "said"),
    [
        (lambda _: {"fallback": True, "reason": "no-key"}, "no-key", ""),
        (lambda _: "The reply is ready to send.", "parse-error", "not JSON"),
        (lambda _: {"decisions": [{"id": "ready", "type": "noul", "noul": float("nan")}]}, "parse-error", "JSON"),
        (lambda _: {"decisions": [{"id": "ready", "type": "noul", "noul": 1.2}]}, "parse-error", "from 0 to 1"),
        (lambda _: None, "parse-error", "not None"),
        (lambda _: object(), "parse-error", "object is not a JSON value"),
        (raising(ConnectionResetError("gone")), "network", "gone"),
        (raising(TimeoutError()), "timeout", "TimeoutError"),
    ],
)
async def test_a_function_that_does_not_decide(judge: Any, reason: str, said: str) -> None:
    """What it returns instead, or that it has reached nobody, is a fallback with its reason."""
    found = await FunctionJudge(judge, name="mine").invoke(STATE, [READY])
    assert isinstance(found, Fallback)
    assert found.reason == reason
    assert said in (found.detail or "")


async def test_a_judge_that_hangs() -> None:
    """After its timeout it has not decided, whether it blocks a thread or ignores that it is told to stop."""
    released = threading.Event()

    def blocks(_asked: object) -> None:
        released.wait()

    async def waits(_asked: object) -> None:
        await asyncio.Event().wait()

    async def insists(_asked: object) -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await stopped.wait()

    stopped = asyncio.Event()
    for judge in (blocks, waits, insists):
        found = await FunctionJudge(judge, timeout=0.01).invoke(STATE, [READY])
        assert found == Fallback("timeout", "no answer in 0.01 s", backend=judge.__qualname__)
    released.set()
    stopped.set()


async def test_a_judge_is_cancelled_with_who_asks() -> None:
    """Cancelling the trial is no fallback."""
    started = asyncio.Event()

    async def waits(_asked: object) -> None:
        started.set()
        await asyncio.Event().wait()

    asking = asyncio.create_task(FunctionJudge(waits).invoke(STATE, [READY]))
    await started.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("answers", [{"ready": True}, {"ready": None}, "ready", 0.9])
def test_what_a_scripted_judge_cannot_answer_is_refused(answers: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match="scripted judge"):
        ScriptedJudge(answers)


ALL: list[Judge] = [
    FunctionJudge(sync),
    ScriptedJudge({"ready": 0.75}),
    SystemOneJudge("jev-latest"),
    ModelJudge(ModelAgent(name="judge", model="mock/echo")),
]


@pytest.mark.parametrize("judge", ALL, ids=lambda judge: type(judge).__name__)
async def test_without_questions_nobody_is_asked(judge: Judge) -> None:
    """When all questions of a case are skipped there is nothing to decide."""
    assert await judge.invoke(STATE, []) == ()


@pytest.mark.parametrize("judge", ALL, ids=lambda judge: type(judge).__name__)
async def test_duplicate_ids_are_the_callers_mistake(judge: Judge) -> None:
    """They are refused before anybody is asked."""
    with pytest.raises(UsageError, match="two questions have the id 'ready'"):
        await judge.invoke(STATE, [READY, READY])


@pytest.mark.parametrize("judge", ALL, ids=lambda judge: type(judge).__name__)
async def test_judges_can_be_pickled(judge: Judge) -> None:
    """A judge that has not been asked goes to any process, and is the same there."""
    copy: Judge = pickle.loads(pickle.dumps(judge))
    assert (copy.identity, copy.thresholds, copy.timeout) == (judge.identity, judge.thresholds, judge.timeout)
    await copy.close()


async def test_a_scripted_judge() -> None:
    """It decides by id, and tells what it was asked."""
    tone = Question("tone", "choice", "Which?", {"warm": None, "cold": None})
    judge = ScriptedJudge({"ready": 0.75, "tone": {"warm": 0.9, "cold": 0.1}})
    assert await judge.invoke(STATE, [tone, READY]) == (Decision("tone", {"warm": 0.9, "cold": 0.1}), SURE)
    assert judge.asked == [(STATE, ("tone", "ready"))]
    failing = ScriptedJudge(Fallback("network", "down"))
    assert await failing.invoke(STATE, [READY]) == Fallback("network", "down")
    assert isinstance(await ScriptedJudge({}).invoke(STATE, [READY]), Fallback)
    certain = await ScriptedJudge({"ready": "no"}).invoke(STATE, [READY])
    assert certain == (Decision("ready", {YES: 0, NO: 1}),)
    unknown = await ScriptedJudge({"ready": "maybe"}).invoke(STATE, [READY])
    assert unknown == Fallback("parse-error", "decision 'ready': there is no answer 'maybe'; choose one of 'yes', 'no'")


def test_judges_that_answer_differently_are_told_apart() -> None:
    """The code of a function, the model and the address are part of what a judge is; its bars are not."""
    assert FunctionJudge(sync).identity == FunctionJudge(sync, thresholds={"yes": 0.9}).identity
    assert FunctionJudge(sync).identity != FunctionJudge(later).identity
    assert SystemOneJudge("jev-1").identity != SystemOneJudge("jev-2").identity
    assert ScriptedJudge({"a": 1}).identity != ScriptedJudge({"a": 0}).identity


def test_system_one_only_sets_bars() -> None:
    """It has thresholds and an agent, and nobody to ask; jev is another name of it."""
    agent = Agent()
    bars = system_one(thresholds={"yes": 0.8}, escalate=agent)
    assert (bars.thresholds, bars.escalate) == (Thresholds(yes=0.8), agent)
    assert bars.invoke is None
    assert jev is system_one
    assert system_one() == Bars()


def test_who_asks_again_can_be_sent_to() -> None:
    """Whatever has no send is no agent."""
    with pytest.raises(UsageError, match=r"escalate must be an agent, anything with send\(prompt\) .got str"):
        system_one(escalate="gpt")


def test_questions_without_a_judge_are_refused() -> None:
    """The message names the checks and says what to do, also where only bars are given."""
    with pytest.raises(UsageError, match=r"scorers 'ready', 'tone': .* has no judge; make one with judge_model"):
        checked_judge(None, ["ready", "tone"])
    with pytest.raises(UsageError, match=r"scorer 'ready': .*system_one\(\) .*has no invoke; make one with judge_mod"):
        checked_judge(system_one(), ["ready"])


def test_code_checks_need_no_judge() -> None:
    """Where a judge decides nothing, any will do, and none."""
    assert checked_judge(None, []) is None
    assert checked_judge(system_one(), []) is None
    assert checked_judge(ScriptedJudge({}), []) is None
    judge = ScriptedJudge({})
    assert checked_judge(judge, ["ready"]) is judge


class OwnJudge(ScriptedJudge):
    identity: Any = None


def own_judge(**parts: Any) -> OwnJudge:
    judge = OwnJudge({})
    for name, part in parts.items():
        setattr(judge, name, part)
    return judge


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("openai/gpt-4o-mini", r"write judge_model\('openai/gpt-4o-mini'\)"),
        (sync, r"write judge_model\(<function sync"),
        (Agent(), "Agent is not a judge: it has no invoke, close"),
        (42, "int is not a judge"),
        (own_judge(thresholds={"yes": 0.8}), "OwnJudge.thresholds must be Thresholds"),
        (own_judge(timeout="1s"), "OwnJudge.timeout must be seconds above 0 .got '1s'"),
        (own_judge(timeout=None), "OwnJudge.timeout must be seconds above 0 .got None"),
        (own_judge(identity=object()), "OwnJudge.identity must be JSON"),
        (own_judge(identity={"seed": 2**60}), "OwnJudge.identity must be JSON"),
    ],
)
def test_what_is_no_judge(judge: object, said: str) -> None:
    """It is refused even when no check needs it, with how to make a judge of it."""
    with pytest.raises(UsageError, match=said):
        checked_judge(judge, [])


@pytest.mark.parametrize("url", ["ftp://host/x", "https://user:secret@host/x", "https://host/x?api_key=secret"])
def test_an_address_with_credentials(url: str) -> None:
    """An address is stored and shown, so it may not hold any; the message does not either."""
    with pytest.raises(UsageError) as refused:
        SystemOneJudge("jev", url=url)
    assert "secret" not in str(refused.value)
