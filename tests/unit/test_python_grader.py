"""Grading what a Python task returned: the case's checks together, and what is stored of them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from support.places import unplaced
from trunchray.core.case import Case
from trunchray.core.decisions import Fallback
from trunchray.core.record import Returned, RunRecord, StepRecord
from trunchray.core.trial import Trace, Verdict
from trunchray.errors import EvaluatorError
from trunchray.evaluators.judges.scripted import ScriptedJudge
from trunchray.evaluators.python.grader import PythonGrader
from trunchray.evaluators.python.scorer import as_scorers
from trunchray.evaluators.python.trajectory import ran_steps
from trunchray.evaluators.python.words import mentions

LONG = 60.0


def case(*checks: str, input: Any = "in", **data: Any) -> Case:
    text = isinstance(input, str)
    return Case.model_validate(
        {
            "id": "a",
            "evalId": "e",
            "title": "A",
            "input": {"prompt": input if text else json.dumps(input), "structured": not text},
            "data": {"must": [], **data},
            "checks": {name: {"kind": "python", "digest": f"digest of {name}"} for name in checks},
            "source": {"path": "data", "row": 1},
        }
    )


def trace(output: Any = "out", *, text: str | None = None, **returned: Any) -> Trace:
    shown = output if isinstance(output, str) else json.dumps(output) if text is None else text
    return Trace(output=shown, returned=Returned(output, **returned))


def grader(judge: Any = None, *, timeout: float = LONG, **scorers: Any) -> PythonGrader:
    return PythonGrader(as_scorers(scorers), judge, timeout=timeout)


async def graded(checks: Any, found: Trace, judge: Any = None, **more: Any) -> tuple[Verdict, Any]:
    verdict = await grader(judge, **checks).grade(case(*checks, **more), found)
    return verdict, json.loads(unplaced(json.dumps(verdict.details)))


async def test_all_checks_have_to_pass_and_their_mean_is_the_score() -> None:
    """The message names those that failed; details hold each by its name, in the order of the case."""
    verdict, details = await graded(
        {"half": lambda _: 0.5, "yes": lambda _: True, "words": mentions(["x"])}, trace(ms=12.5)
    )
    assert (verdict.passed, verdict.score) == (False, 0.5)
    assert verdict.message == 'half: 0.5 is below 1; words: does not mention "x"'
    assert details == {
        "checks": {
            "half": {"pass": False, "value": 0.5, "explanation": "0.5 is below 1"},
            "yes": {"pass": True, "value": 1.0},
            "words": {"pass": False, "value": 0.0, "explanation": 'does not mention "x"'},
        },
        "output": "text",
        "ms": 12.5,
    }
    assert list(details["checks"]) == ["half", "yes", "words"]
    json.dumps(details, allow_nan=False)


async def test_a_passed_case_has_no_message() -> None:
    """One check or several."""
    verdict, _ = await graded({"yes": lambda _: True}, trace())
    assert (verdict.passed, verdict.score, verdict.message) == (True, 1, None)


async def test_a_failed_check_without_an_explanation_is_said_to_have_failed() -> None:
    """As with every other evaluator."""
    verdict, _ = await graded({"no": lambda _: False}, trace())
    assert verdict.message == "no: failed"


async def test_the_run_is_made_of_the_case_and_what_the_task_returned() -> None:
    """A structured input is the value again; what is not expected is not there."""
    seen: list[RunRecord] = []
    checks = {"see": lambda run: seen.append(run) is None}
    steps = (StepRecord("tool", "t"),)
    await graded(checks, trace({"a": 1}, steps=steps, ms=5), input={"q": [1]}, expectedOutput=None)
    await graded(checks, trace("text"), input="in")
    assert seen == [
        RunRecord({"q": [1]}, {"a": 1}, None, steps, 5, has_expected_output=True),
        RunRecord("in", "text", None, (), 0.0, has_expected_output=False),
    ]


async def test_a_text_input_that_looks_like_json_stays_text() -> None:
    """Only what was structured is read."""
    verdict, _ = await graded({"same": lambda run: run.input == "[1]"}, trace(), input="[1]")
    assert verdict.passed


async def test_checks_that_the_case_skips_are_not_run() -> None:
    """Nor does the judge hear of them."""
    judge = ScriptedJudge({"ready": 1, "polite": 1})
    found = grader(judge, ready="Is it ready?", polite="Is it polite?", code=lambda _: 1 / 0)
    verdict = await found.grade(case("polite"), trace())
    assert verdict.passed
    assert judge.asked == [({"input": "in", "output": "out", "steps": []}, ("polite",))]


async def test_without_a_judges_check_left_the_judge_is_not_asked() -> None:
    """All of its checks are skipped."""
    judge = ScriptedJudge({})
    assert (await grader(judge, ready="Is it?", code=lambda _: True).grade(case("code"), trace())).passed
    assert judge.asked == []


async def test_checks_have_their_own_time() -> None:
    """What the run took is not taken from it, even where that is as long as a check may take."""
    seen: list[float] = []
    checks = {"code": lambda run: seen.append(run.ms) is None, "ready": "Is it?"}
    found = grader(ScriptedJudge({"ready": 1}), timeout=30, **checks)
    assert (await found.grade(case("code", "ready"), trace(ms=30_000))).passed
    assert seen == [30_000]


async def test_a_failed_run_fails_every_check_and_runs_none() -> None:
    """It is a failed verdict, not an error."""
    judge = ScriptedJudge({"ready": 1})
    ran: list[object] = []
    verdict, details = await graded(
        {"ready": "Is it?", "code": lambda run: ran.append(run) is None},
        trace("", error="timed out after 60 s", ms=60_000),
        judge,
    )
    assert (verdict.passed, verdict.score) == (False, 0)
    failed = {"pass": False, "value": 0.0, "explanation": "run failed: timed out after 60 s"}
    assert details == {
        "checks": {"ready": failed, "code": failed},
        "output": "text",
        "ms": 60_000,
        "error": "timed out after 60 s",
    }
    assert (ran, judge.asked) == ([], [])


async def test_a_failed_judge_leaves_code_checks_alone() -> None:
    """And the other way round."""
    checks = {"ready": "Is it?", "good": lambda _: True, "bad": lambda _: 1 / 0, "rated": "Well?"}
    _, details = await graded(checks, trace(), ScriptedJudge(Fallback("network")))
    assert {name: (result["pass"], result.get("explanation")) for name, result in details["checks"].items()} == {
        "ready": (False, "judge: network"),
        "good": (True, None),
        "bad": (False, "raised ZeroDivisionError: division by zero"),
        "rated": (False, "judge: network"),
    }


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (BaseExceptionGroup("all", [KeyboardInterrupt()]), "BaseExceptionGroup: all (1 sub-exception)"),
        (UnprintableError(), "UnprintableError"),
    ],
)
async def test_whatever_a_check_raises_it_fails_alone(error: BaseException, said: str) -> None:
    """Also what ends programs, from a thread or on the event loop: other checks and cases go on."""

    def raises(_: RunRecord) -> bool:
        raise error

    async def raises_later(_: RunRecord) -> bool:
        raise error

    _, details = await graded({"now": raises, "later": raises_later, "good": lambda _: True}, trace())
    failed = {"pass": False, "value": 0.0, "explanation": f"raised {said}"}
    assert details["checks"] == {"now": failed, "later": failed, "good": {"pass": True, "value": 1.0}}


async def test_checks_that_hang_fail_and_hold_up_no_other() -> None:
    """All of a case run at once, the judge among them."""
    released, both = threading.Event(), threading.Barrier(2, timeout=30)

    def meets(_: RunRecord) -> bool:
        both.wait()
        return True

    found = grader(
        ScriptedJudge({"ready": 1}), timeout=5, hangs=lambda _: released.wait(), a=meets, b=meets, ready="Is it?"
    )
    task = asyncio.create_task(found.grade(case("hangs", "a", "b", "ready"), trace()))
    await asyncio.to_thread(released.wait, 0.05)
    assert not task.done()
    released.set()
    verdict = await task
    assert verdict.passed


async def test_an_output_without_a_json_form_is_judged_by_code_alone() -> None:
    """The judge's checks fail closed; it is stored as what Python prints."""
    output = object()
    checks = {"code": lambda run: type(run.output) is object, "ready": "Is it?"}
    _, details = await graded(checks, trace(output, text=repr(output), form="repr"), ScriptedJudge({"ready": 1}))
    assert details["checks"]["code"]["pass"]
    assert details["checks"]["ready"]["explanation"].startswith("judge: the output has no JSON form: ")
    assert details["output"] == "repr"


async def test_details_say_how_the_stored_output_is_to_be_read() -> None:
    """What the agent says of it is kept with the verdict."""
    _, details = await graded({"yes": lambda _: True}, trace({"a": 1}, text='{"a":1}', form="json"))
    assert details["output"] == "json"


async def test_a_trace_that_was_stored_cannot_be_graded() -> None:
    """What the task returned is gone."""
    with pytest.raises(EvaluatorError, match="checks need what the task returned") as e:
        await grader(yes=lambda _: True).grade(case("yes"), Trace(output="out"))
    assert e.value.type == "not_returned"


async def test_a_check_that_the_program_lacks_is_an_error() -> None:
    """The release is of another program."""
    with pytest.raises(EvaluatorError, match="the program has no check 'other'") as e:
        await grader(yes=lambda _: True).grade(case("other"), trace())
    assert e.value.type == "missing_check"


def test_the_evaluator_digest_is_of_the_digests_of_the_cases_checks() -> None:
    """And of their names."""
    found = grader(a=lambda _: True, b=lambda _: True)
    assert found.evaluator_digest(case("a")) == found.evaluator_digest(case("a", input={"other": 1}))
    assert len({found.evaluator_digest(case(*names)) for names in (("a",), ("b",), ("a", "b"))}) == 3
    assert len(found.evaluator_digest(case("a"))) == 64


async def test_steps_are_seen_by_checks_and_judge() -> None:
    """As records, and as JSON without times."""
    judge = ScriptedJudge({"ready": 1})
    found = trace(steps=(StepRecord("llm", ms=1), StepRecord("tool", "find", ms=2)))
    verdict, _ = await graded({"ran": ran_steps(["find"]), "ready": "Is it?"}, found, judge)
    assert verdict.passed
    state, _ = judge.asked[0]
    assert isinstance(state, dict)
    assert state["steps"] == [{"kind": "llm"}, {"kind": "tool", "name": "find"}]
