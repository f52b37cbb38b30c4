"""Checks that a judge decides: one call for all of them, fail closed, and whom to ask again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel, JsonValue

from support.checked import a_run
from support.ids import shown
from support.places import unplaced_result
from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import NO, YES, Decision, Fallback, FallbackReason, Question, Thresholds
from trunchray.core.record import RunRecord, StepRecord
from trunchray.evaluators.judges.function import FunctionJudge
from trunchray.evaluators.judges.scripted import Answer, ScriptedJudge
from trunchray.evaluators.python.asking import ask
from trunchray.evaluators.python.escalation import prompt
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.judging import judge_checks, state_of
from trunchray.evaluators.python.scorer import as_scorers

SOON, LONG = 0.05, 60.0

RATED = ask("How good is it?", levels=["poor", "fair", "good"], pass_="fair")
SORTED = ask("What is it about?", options=["refund", "order", "other"], pass_=["refund", "order"])


def scorers(**checks: Any) -> dict[str, JudgeScorer]:
    found = as_scorers(checks)
    return {name: scorer for name, scorer in found.items() if isinstance(scorer, JudgeScorer)}


async def judged(
    judge: Any, run: RunRecord | None = None, seconds: float = LONG, **checks: Any
) -> dict[str, CheckResult]:
    found = await judge_checks(scorers(**checks), run or a_run(), judge, seconds)
    return {name: unplaced_result(result) for name, result in found.items()}


@dataclass
class Agent:
    """Replies with what it is given, in turn, and keeps the prompts."""

    replies: list[Any]
    prompts: list[str] = field(default_factory=list)

    async def send(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        reply = self.replies[len(self.prompts) - 1]
        return {"type": "reply", "reply": reply} if isinstance(reply, str) else reply


@dataclass
class OwnJudge:
    """A judge that somebody wrote, whatever it does."""

    does: Callable[..., Any]
    thresholds: Thresholds = field(default_factory=Thresholds)
    escalate: Any = None
    timeout: float = LONG

    async def invoke(self, state: JsonValue, questions: Sequence[Question]) -> Any:
        found = self.does(state, questions)
        return await found if asyncio.isfuture(found) else found


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def test_all_questions_of_a_run_are_one_call() -> None:
    """Their ids are the names of the checks, and the results come in the order of the checks."""
    judge = ScriptedJudge({"ready": 0.9, "kind": {"refund": 0.8, "order": 0.1, "other": 0.1}, "polite": 0.1})
    found = await judged(judge, ready="Is it ready?", kind=SORTED, polite="Is it polite?")
    assert [names for _, names in judge.asked] == [("ready", "kind", "polite")]
    assert {name: (result.passed, result.value) for name, result in found.items()} == {
        "ready": (True, 0.9),
        "kind": (True, 1),
        "polite": (False, 0.1),
    }
    assert list(found) == ["ready", "kind", "polite"]


async def test_without_questions_nobody_is_asked() -> None:
    """As when a case skips all of them."""
    judge = ScriptedJudge({})
    assert await judge_checks({}, a_run(), judge, LONG) == {}
    assert judge.asked == []


class Reply(BaseModel):
    text: str


async def test_a_judge_sees_input_output_expected_output_and_steps_and_no_times() -> None:
    """As JSON, whatever they were in Python."""
    run = RunRecord(
        input={"q": 1},
        output=Reply(text="hi"),
        expected_output={"text": "ho"},
        steps=(StepRecord("llm", ms=3.5), StepRecord("tool", "find", input={"a": 1}, output=object, ms=9)),
        ms=12,
        has_expected_output=True,
    )
    judge = ScriptedJudge({"ready": 1})
    await judged(judge, run, ready="Is it?")
    assert judge.asked[0][0] == {
        "input": {"q": 1},
        "output": {"text": "hi"},
        "expectedOutput": {"text": "ho"},
        "steps": [
            {"kind": "llm"},
            {"kind": "tool", "name": "find", "input": {"a": 1}, "output": "<class 'object'>"},
        ],
    }
    json.dumps(judge.asked[0][0])


def test_a_case_without_expected_output_has_none_in_the_state() -> None:
    """Which is not the same as one whose expectedOutput is null."""
    assert state_of(a_run("out")) == {"input": "in", "output": "out", "steps": []}
    assert state_of(a_run("out", None)) == {"input": "in", "output": "out", "expectedOutput": None, "steps": []}


async def test_what_a_judge_does_to_its_state_nobody_else_sees() -> None:
    """It has a copy."""
    run = a_run({"a": [1]}, {"b": [2]}, input=[3])

    def vandal(state: Any, questions: Sequence[Question]) -> Any:
        state["input"].clear(), state["output"]["a"].clear(), state["expectedOutput"].clear()
        return (Decision(questions[0].id, {YES: 1, NO: 0}),)

    assert (await judged(OwnJudge(vandal), run, ready="Is it?"))["ready"].passed
    assert (run.input, run.output, run.expected_output) == ([3], {"a": [1]}, {"b": [2]})


@pytest.mark.parametrize("output", [object(), float("nan"), [float("inf")], {"f": len}], ids=shown)
async def test_an_output_without_a_json_form_fails_the_judges_checks_closed(output: Any) -> None:
    """Nobody is asked."""
    judge = ScriptedJudge({"ready": 1, "polite": 1})
    found = await judged(judge, a_run(output), ready="Is it?", polite="Is it?")
    assert judge.asked == []
    for result in found.values():
        assert (result.passed, result.value, result.probabilities) == (False, 0, None)
        assert (result.explanation or "").startswith("judge: the output has no JSON form: ")


async def test_a_step_that_cannot_be_printed_is_named_by_its_type() -> None:
    """A judge sees the rest of the run, as it does of a step whose output is no JSON."""

    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError

    run = RunRecord("in", "out", steps=(StepRecord("tool", "t", output=Unprintable()),))
    judge = ScriptedJudge({"ready": 1})
    found = await judged(judge, run, ready="Is it?")
    assert found["ready"].passed
    ((state, _),) = judge.asked
    assert "<Unprintable that cannot be printed: RuntimeError>" in str(state)


REASONS: list[FallbackReason] = ["no-key", "timeout", "network", "http-error", "parse-error"]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_fallback_fails_every_check_of_the_judge(reason: FallbackReason) -> None:
    """With value 0, no probabilities, and the reason; nobody else is asked."""
    agent = Agent(["yes"])
    found = await judged(ScriptedJudge(Fallback(reason), escalate=agent), a="A?", b=RATED)
    assert found == dict.fromkeys("ab", CheckResult.failed(f"judge: {reason}"))
    assert agent.prompts == []
    detailed = await judged(ScriptedJudge(Fallback(reason, "what happened")), a="A?")
    assert detailed["a"].explanation == f"judge: {reason}: what happened"


async def test_a_judge_that_raises_fails_its_checks_closed() -> None:
    """Though a judge should not."""

    def boom(*_: object) -> None:
        raise ConnectionError("gone")

    found = await judged(OwnJudge(boom), a="A?", b="B?")
    assert found == dict.fromkeys("ab", CheckResult.failed("judge: raised ConnectionError: gone"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "raised ZeroDivisionError: division by zero"),
        (ValueError("bad luck"), "raised ValueError: bad luck"),
        (ConnectionResetError("gone"), "network: ConnectionResetError: gone"),
        (TimeoutError("too slow"), "timeout: too slow"),
        (SystemExit(3), "raised SystemExit: 3"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt"),
        (asyncio.CancelledError(), "raised CancelledError"),
    ],
    ids=shown,
)
async def test_what_a_function_raises_that_judges_is_the_reason(error: BaseException, said: str) -> None:
    """Under its own name: nothing was there to be parsed."""

    def judge(_asked: object) -> object:
        raise error

    found = await judged(FunctionJudge(judge), a="A?", b="B?")
    assert found == dict.fromkeys("ab", CheckResult.failed(f"judge: {said}"))


async def test_a_judge_that_hangs_fails_its_checks_closed() -> None:
    """After the time that a check has."""
    waiting = asyncio.get_running_loop().create_future()
    found = await judged(OwnJudge(lambda *_: waiting), seconds=SOON, a="A?")
    assert found["a"] == CheckResult.failed(f"judge: timeout: no answer in {SOON:g} s")


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "yes",
        "Yes, it is ready.",
        [],
        (),
        [{"id": "a", "noul": 1}],
        (Decision("a", {YES: 1, NO: 0}),),
        (Decision("a", {YES: 1, NO: 0}), Decision("a", {YES: 1, NO: 0})),
        (Decision("a", {YES: 1, NO: 0}), Decision("c", {YES: 1, NO: 0})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: 1, NO: 0}), Decision("c", {YES: 1, NO: 0})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: 1})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {"true": 1, "false": 0})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: 1.1, NO: -0.1})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: float("nan"), NO: 0})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: 0.8, NO: 0.1})),
        (Decision("a", {YES: 1, NO: 0}), Decision("b", {YES: 0.8, NO: 0.23})),
        tuple(Decision(name, cast("Any", None)) for name in "ab"),
        tuple(Decision(cast("Any", [name]), {YES: 1, NO: 0}) for name in "ab"),
        tuple(Decision(name, {YES: 1, NO: 0}, method=cast("Any", "guessed")) for name in "ab"),
    ],
    ids=shown,
)
async def test_a_reply_that_is_not_one_decision_for_each_question_is_a_parse_error(reply: Any) -> None:
    """Prose, missing or doubled decisions, other answers, probabilities that are none or add up to 0.9: all fail."""
    found = await judged(OwnJudge(lambda *_: reply), a="A?", b="B?")
    for result in found.values():
        assert (result.passed, result.value, result.probabilities) == (False, 0, None)
        assert (result.explanation or "").startswith("judge: parse-error: ")


async def test_probabilities_may_be_off_by_rounding() -> None:
    """1 ± 0.02."""
    for total in (0.98, 1.02):
        reply = (Decision("a", {YES: 0.8, NO: total - 0.8}),)
        assert (await judged(OwnJudge(lambda *_, reply=reply: reply), a="A?"))["a"].passed


async def test_a_judge_may_be_written_without_async() -> None:
    """It is called in a thread."""
    judge = SimpleNamespace(
        invoke=lambda _state, questions: [Decision(each.id, {YES: 1, NO: 0}) for each in questions],
        thresholds=Thresholds(),
        escalate=None,
        timeout=LONG,
    )
    assert (await judged(judge, a="A?"))["a"].passed


async def test_the_judges_thresholds_hold_where_a_check_has_none() -> None:
    """And those of a check before them."""
    judge = ScriptedJudge({"a": 0.55, "b": 0.55}, thresholds={"yes": 0.5})
    found = await judged(judge, a="A?", b={"question": "B?", "yes": 0.6})
    assert (found["a"].passed, found["b"].passed) == (True, False)
    assert found["b"].explanation == "unsure (p=0.55)"


LEVELS: dict[str, Answer] = {"rated": {"poor": 0.1, "fair": 0.5, "good": 0.4}}


@pytest.mark.parametrize(("reply", "passed", "value"), [("yes", True, 1), ("NO.", False, 0), ("`Yes`", True, 1)])
async def test_an_unsure_yes_or_no_is_asked_again(reply: str, passed: bool, value: float) -> None:
    """The reply decides, without any bar; the judge's probabilities stay."""
    agent = Agent([reply])
    result = (await judged(ScriptedJudge({"ready": 0.52}, escalate=agent), ready="Is it ready?"))["ready"]
    assert (result.passed, result.value, result.escalated) == (passed, value, True)
    assert (result.probabilities, result.confidence) == ({YES: 0.52, NO: 0.48}, 0.52)
    assert len(agent.prompts) == 1


@pytest.mark.parametrize(("reply", "passed", "value"), [("poor", False, 0), ("fair", True, 0.5), ("good", True, 1)])
async def test_an_unsure_level_is_asked_again_and_passes_by_the_same_rule(
    reply: str, passed: bool, value: float
) -> None:
    """A primary unsure can still fail after escalation."""
    agent = Agent([reply])
    result = (await judged(ScriptedJudge(LEVELS, escalate=agent), rated=RATED))["rated"]
    assert (result.passed, result.value, result.escalated) == (passed, value, True)


async def test_only_what_is_unsure_is_asked_again_one_after_another() -> None:
    """Each with a prompt of its own."""
    agent = Agent(["no", "good"])
    judge = ScriptedJudge({"sure": 0.9, "unsure": 0.5, "never": 0.1, **LEVELS}, escalate=agent)
    found = await judged(judge, sure="S?", unsure="U?", never="N?", rated=RATED)
    assert {name: result.escalated for name, result in found.items()} == {
        "sure": False,
        "unsure": True,
        "never": False,
        "rated": True,
    }
    assert ["U?" in agent.prompts[0], "How good is it?" in agent.prompts[1]] == [True, True]
    assert (found["unsure"].passed, found["rated"].passed) == (False, True)


async def test_no_two_are_asked_again_at_a_time() -> None:
    """The agent of a run's checks has replied to one prompt before it is sent the next."""
    under_way = most = 0

    async def send(_prompt: str) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(10):
            await asyncio.sleep(0)
        under_way -= 1
        return {"type": "reply", "reply": "yes"}

    judge = ScriptedJudge({"a": 0.5, "b": 0.5, "c": 0.5}, escalate=SimpleNamespace(send=send))
    found = await judged(judge, a="A?", b="B?", c="C?")
    assert all(result.escalated for result in found.values())
    assert most == 1


@pytest.mark.parametrize(("reply", "passed", "value"), [("refund", True, 1), ("'Order'", True, 1), ("other", False, 0)])
async def test_an_unsure_option_is_asked_again_and_passes_by_its_name(reply: str, passed: bool, value: float) -> None:
    """Without `sure`: whoever is asked again need not say how sure it is."""
    judge = ScriptedJudge({"it": {"refund": 0.4, "order": 0.3, "other": 0.3}}, escalate=Agent([reply]))
    result = (await judged(judge, it=SORTED))["it"]
    assert (result.passed, result.value, result.escalated, result.confidence) == (passed, value, True, 0.4)


@pytest.mark.parametrize(("reply", "passed", "value"), [("all", True, 1), ("half", True, 0.5), ("none", False, 0.1)])
async def test_an_unsure_credit_is_asked_again_and_passes_from_the_same_credit_on(
    reply: str, passed: bool, value: float
) -> None:
    """The value is the credit of what was replied."""
    worth = ask("How much?", options={"all": 1, "half": 0.5, "none": 0.1}, pass_at=0.5)
    judge = ScriptedJudge({"it": {"all": 0.4, "half": 0.3, "none": 0.3}}, escalate=Agent([reply]))
    result = (await judged(judge, it=worth))["it"]
    assert (result.passed, result.value, result.escalated) == (passed, value, True)


@pytest.mark.parametrize(("confidence", "likeliest", "passed"), [(0.01, 0.9, True), (1.0, 0.5, False)])
async def test_the_confidence_that_a_judge_reports_plays_no_part(
    confidence: float, likeliest: float, passed: bool
) -> None:
    """What is compared with `sure` is the probability of the likeliest answer, which is also what is reported."""
    probabilities = {"refund": likeliest, "order": 1 - likeliest, "other": 0.0}
    decision = {"type": "choice", "choice": "refund", "probabilities": probabilities, "confidence": confidence}
    result = (await judged(FunctionJudge(lambda _: {"decisions": {"it": decision}}), it=SORTED))["it"]
    assert (result.passed, result.confidence) == (passed, likeliest)
    assert result.explanation == (None if passed else "unsure (p=0.50)")


@pytest.mark.parametrize(("p", "asked"), [(0.3, 0), (0.31, 1), (0.69, 1), (0.7, 0)])
async def test_yes_or_no_is_asked_again_within_the_unsure_band(p: float, asked: int) -> None:
    """Between `no` and `yes`, both excluded: `sure` is for options and levels."""
    agent = Agent(["yes"])
    await judged(ScriptedJudge({"ready": p}, thresholds={"sure": 0.99}, escalate=agent), ready="Is it?")
    assert len(agent.prompts) == asked


async def test_without_an_agent_unsure_stays_unsure() -> None:
    """And fails."""
    result = (await judged(ScriptedJudge({"ready": 0.52}), ready="Is it?"))["ready"]
    assert (result.passed, result.explanation, result.escalated) == (False, "unsure (p=0.52)", False)


@pytest.mark.parametrize(
    ("back", "explanation"),
    [
        ("I think yes.", "escalation: replied 'I think yes.', which is not exactly one of 'yes', 'no'"),
        ("", "escalation: replied '', which is not exactly one of 'yes', 'no'"),
        ({"type": "suspended"}, "escalation: suspended"),
        ({"type": "suspended", "reply": "yes"}, "escalation: suspended"),
        (SimpleNamespace(type="suspended"), "escalation: suspended"),
        ({"type": "reply"}, "escalation: send returned {'type': 'reply'}"),
        ({"type": "reply", "reply": None}, "escalation: send returned {'reply': None, 'type': 'reply'}"),
        ({"reply": "yes"}, "escalation: send returned {'reply': 'yes'}"),
        (None, "escalation: send returned None"),
        (["yes"], "escalation: send returned ['yes']"),
    ],
    ids=shown,
)
async def test_anything_but_exactly_one_answer_fails_closed(back: Any, explanation: str) -> None:
    """Prose, suspended, or no reply at all; the judge's probabilities stay, and the other checks go on."""
    agent = Agent([back, "yes"])
    judge = ScriptedJudge({"ready": 0.52, "polite": 0.5, "sure": 1.0}, escalate=agent)
    found = await judged(judge, ready="Is it ready?", polite="Is it polite?", sure="Is it?")
    assert found["ready"] == CheckResult(
        passed=False,
        value=0,
        explanation=explanation,
        probabilities={YES: 0.52, NO: 0.48},
        confidence=0.52,
        escalated=True,
    )
    assert (found["polite"].passed, found["sure"].passed) == (True, True)


async def test_a_reply_may_be_an_object() -> None:
    """With `type` and `reply`, and `send` need not be async."""
    agent = SimpleNamespace(send=lambda _: SimpleNamespace(type="reply", reply="yes"))
    assert (await judged(ScriptedJudge({"ready": 0.5}, escalate=agent), ready="Is it?"))["ready"].passed


async def test_an_agent_that_raises_fails_its_check_closed() -> None:
    """With what it raised."""

    class Broken:
        def send(self, prompt: str) -> None:
            raise ConnectionError("gone")

    result = (await judged(ScriptedJudge({"ready": 0.5}, escalate=Broken()), ready="Is it?"))["ready"]
    assert (result.passed, result.explanation) == (False, "escalation: raised ConnectionError: gone")


async def test_an_agent_that_hangs_fails_its_check_closed(released: threading.Event) -> None:
    """After the judge's timeout, or that of checks where it is shorter."""

    class Slow:
        def send(self, prompt: str) -> None:
            released.wait()

    own = OwnJudge(lambda *_: (Decision("ready", {YES: 0.5, NO: 0.5}),), escalate=Slow(), timeout=SOON)
    result = (await judged(own, ready="Is it?"))["ready"]
    assert result.explanation == "escalation: timed out after 0.05 s"
    result = (await judged(ScriptedJudge({"ready": 0.5}, escalate=Slow()), seconds=SOON, ready="Is it?"))["ready"]
    assert result.explanation == "escalation: timed out after 0.05 s"


def test_the_prompt_has_the_question_the_state_and_exactly_the_answers() -> None:
    """With what they mean, where somebody said so."""
    check = ask("What is it about?", options={"refund": "money back", "other": None}, pass_="refund")
    assert prompt(scorers(it=check)["it"], {"input": "in", "output": "é"}) == (
        "Answer a question about one run of a task.\n"
        "\n"
        "Question: What is it about?\n"
        "\n"
        "The run, as JSON:\n"
        "{\n"
        '  "input": "in",\n'
        '  "output": "é"\n'
        "}\n"
        "\n"
        "What the answers mean:\n"
        "- refund: money back\n"
        "\n"
        "Answer with exactly one of the following, and nothing else:\n"
        "refund\n"
        "other"
    )
    assert prompt(scorers(it="Is it?")["it"], {}).endswith(
        "The run, as JSON:\n{}\n\nAnswer with exactly one of the following, and nothing else:\nyes\nno"
    )


def test_the_prompt_can_always_be_encoded() -> None:
    """Half of a surrogate pair in an output is escaped."""
    assert "\\ud800" in prompt(scorers(it="Is it?")["it"], {"output": "\ud800"}).encode().decode()
