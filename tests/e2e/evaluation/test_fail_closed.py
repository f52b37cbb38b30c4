"""What goes wrong in one case or check fails itself closed, as it is specified, and touches nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.places import unplaced_result
from trunchray import CancelSignal, EvalFailure, EvaluationReport, RunRecord, ask, evaluate, judge_model
from trunchray.core.check_result import CheckResult

CASES = [{"name": name, "input": name} for name in "abc"]
"""Whatever goes wrong, does so in b."""

LIMIT = "timed out after 0.5 s"

PASSED = CheckResult(passed=True, value=1.0)


def echo(value: str) -> str:
    return value


def fine(run: RunRecord) -> bool:
    return run.output in "abc"


def failed(tmp_path: Path, **given: Any) -> EvaluationReport:
    """The report of an evaluation that does not pass."""
    settings: dict[str, Any] = {"name": "trouble", "task": echo, "data": CASES, "scorers": {"fine": fine}}
    with pytest.raises(EvalFailure) as refused:
        evaluate(**{**settings, "pool": "local", "out": str(tmp_path), "quiet": True, **given})
    return refused.value.report


def others_passed(report: EvaluationReport) -> bool:
    """Whether all checks of the other two cases are as if nothing had happened."""
    return [case.name for case in report.cases] == list("abc") and all(
        result.passed and result.explanation is None
        for case in report.cases
        if case.name != "b"
        for result in case.checks.values()
    )


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Set when the test ends, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


async def will_not_end() -> None:
    """Swallows its cancellation, again and again."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def hanging_check(kind: str, released: threading.Event) -> Any:
    def waits(run: RunRecord) -> bool:
        return run.output != "b" or released.wait()

    async def waits_in_a_thread(run: RunRecord) -> bool:
        return run.output != "b" or await asyncio.to_thread(released.wait)

    async def swallows(run: RunRecord) -> bool:
        if run.output == "b":
            await will_not_end()
        return True

    return {"function": waits, "thread": waits_in_a_thread, "coroutine": swallows}[kind]


@pytest.mark.parametrize("kind", ["function", "thread", "coroutine"])
def test_a_check_that_hangs(kind: str, tmp_path: Path, released: threading.Event):
    """It fails after its time; the other checks of the case, and all other cases, are done."""
    check = hanging_check(kind, released)
    report = failed(tmp_path, scorers={"hangs": check, "fine": fine}, timeout="500ms", allow={"fine": 0})
    assert report.cases[1].checks == {"hangs": CheckResult.failed(LIMIT), "fine": PASSED}
    assert report.cases[1].error is None
    assert others_passed(report)
    assert {name: (each.misses, each.failed) for name, each in report.scorers.items()} == {
        "hangs": (1, ("b",)),
        "fine": (0, ()),
    }


def hanging_task(kind: str, released: threading.Event, signals: list[CancelSignal]) -> Any:
    def ignores(value: str, signal: CancelSignal) -> str:
        if value == "b":
            signals.append(signal)
            released.wait()
        return value

    async def waits_in_a_thread(value: str, signal: CancelSignal) -> str:
        return await asyncio.to_thread(ignores, value, signal)

    async def swallows(value: str, signal: CancelSignal) -> str:
        if value == "b":
            signals.append(signal)
            await will_not_end()
        return value

    return {"function": ignores, "thread": waits_in_a_thread, "coroutine": swallows}[kind]


@pytest.mark.parametrize("kind", ["function", "thread", "coroutine"])
def test_a_task_that_ignores_its_cancel_signal(kind: str, tmp_path: Path, released: threading.Event):
    """The signal is set, and every check of the case fails as its run did; nobody waits for it any longer."""
    signals: list[CancelSignal] = []
    task = hanging_task(kind, released, signals)
    report = failed(tmp_path, task=task, scorers={"fine": fine, "any": lambda _: True}, timeout="500ms")
    assert report.cases[1].error == LIMIT
    assert report.cases[1].checks == dict.fromkeys(("fine", "any"), CheckResult.failed(f"run failed: {LIMIT}"))
    assert [signal.aborted for signal in signals] == [True]
    assert others_passed(report)


READY: dict[str, Any] = {"id": "ready", "type": "noul", "noul": 1.0}
TONE: dict[str, Any] = {
    "id": "tone",
    "type": "choice",
    "choice": "warm",
    "probabilities": {"warm": 1.0, "cold": 0.0},
    "confidence": 1.0,
}
QUESTIONS = {
    "ready": "Is it ready?",
    "tone": ask("Which tone?", options=["warm", "cold"], pass_="warm"),
    "fine": fine,
}


def judge(about_b: Any, **given: Any) -> Any:
    """Sure of everything, but for what it says about b."""
    return judge_model(
        lambda asked: about_b if asked["state"]["output"] == "b" else {"decisions": [READY, TONE]}, **given
    )


@pytest.mark.parametrize(
    ("about_b", "why"),
    [
        ("Yes, it is ready, and the tone is warm.", "parse-error: not JSON and nothing else: 'Yes, it is ready"),
        ({"reply": "Sure!"}, "parse-error: not JSON and nothing else: 'Sure!'"),
        (
            {"decisions": [READY, {**TONE, "probabilities": {"warm": 0.8, "cold": 0.1}}]},
            "parse-error: decision 'tone': its probabilities add up to 0.9, not to 1 ± 0.02",
        ),
        ({"decisions": [READY]}, "parse-error: no decision about 'tone'"),
        ({"decisions": [{**READY, "noul": 1.2}, TONE]}, "parse-error: decision 'ready': noul must be a number"),
        ({"fallback": True, "reason": "network"}, "network"),
    ],
    ids=["prose", "prose of an agent", "sum of 0.9", "one missing", "no probability", "fallback"],
)
def test_a_judge_that_does_not_decide(about_b: Any, why: str, tmp_path: Path):
    """Every check that it decides fails, worth nothing and without probabilities; code checks are not touched."""
    report = failed(tmp_path, scorers=QUESTIONS, judge=judge(about_b))
    checks = report.cases[1].checks
    for name in ("ready", "tone"):
        assert (checks[name].explanation or "").startswith(f"judge: {why}")
        assert checks[name] == CheckResult.failed(checks[name].explanation or "")
    assert checks["fine"] == PASSED
    assert others_passed(report)


class Agent:
    """Waits for somebody when it is sent b, and replies with what it is sent otherwise."""

    async def send(self, text: str) -> dict[str, str]:
        return {"type": "suspended"} if text == "b" else {"type": "reply", "reply": text}


def test_an_agent_that_is_suspended(tmp_path: Path):
    """Its run has failed, and with it every check of that case."""
    report = failed(tmp_path, task=Agent(), scorers={"fine": fine, "any": lambda _: True})
    assert report.cases[1].error == "suspended"
    assert report.cases[1].checks == dict.fromkeys(("fine", "any"), CheckResult.failed("run failed: suspended"))
    assert others_passed(report)


@pytest.mark.parametrize(
    ("back", "why"),
    [
        ({"type": "suspended"}, "suspended"),
        (
            {"type": "reply", "reply": "I would say yes."},
            "replied 'I would say yes.', which is not exactly one of 'yes', 'no'",
        ),
        (ConnectionError("gone"), "raised ConnectionError: gone"),
        (None, LIMIT),
    ],
    ids=["suspended", "prose", "raises", "hangs"],
)
def test_an_agent_that_is_asked_again_and_does_not_answer(
    back: Any, why: str, tmp_path: Path, released: threading.Event
):
    """The check that the judge was unsure of fails; the judge's other checks of the case stand as they are."""

    class Again:
        def send(self, prompt: str) -> Any:
            if back is None:
                released.wait()
            if isinstance(back, Exception):
                raise back
            return back

    unsure = {"decisions": [{**READY, "noul": 0.52}, TONE]}
    report = failed(tmp_path, scorers=QUESTIONS, judge=judge(unsure, escalate=Again(), timeout="500ms"))
    checks = report.cases[1].checks
    assert unplaced_result(checks["ready"]) == CheckResult(
        passed=False,
        value=0.0,
        explanation=f"escalation: {why}",
        probabilities={"yes": 0.52, "no": 0.48},
        confidence=0.52,
        escalated=True,
    )
    assert (checks["tone"].passed, checks["fine"]) == (True, PASSED)
    assert others_passed(report)
