"""Running the checks that a judge decides: one question for each, all of them asked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.core.check_result import CheckResult
from trunchray.core.decisions import Decision, Fallback, Question
from trunchray.core.plain import plain
from trunchray.core.record import RunRecord
from trunchray.core.rule import judged
from trunchray.core.share import check_total, is_share
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.python.ended import ended
from trunchray.evaluators.python.escalation import ask_again
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.showing import clean, shown


async def judge_checks(
    scorers: Mapping[str, JudgeScorer], run: RunRecord, judge: Judge, seconds: float
) -> dict[str, CheckResult]:
    """What comes of the checks of one run. The judge has so many seconds, and after it each agent that is asked again.

    Without a decision on all of them every one fails, and its explanation begins with "judge: ".
    """
    if not scorers:
        return {}
    try:
        state = state_of(run)
        decisions = await decisions_about(
            judge, state, [scorer.question(name) for name, scorer in scorers.items()], seconds
        )
    except ValueError as e:
        return dict.fromkeys(scorers, CheckResult.failed(clean(f"judge: {e}")))
    limit = min(seconds, judge.timeout)
    return {name: await _decided(scorer, decisions[name], state, judge, limit) for name, scorer in scorers.items()}


def state_of(run: RunRecord) -> dict[str, JsonValue]:
    """What a judge sees of a run, as JSON: `{input, output, expectedOutput?, steps}`, and no times.

    Raises:
        ValueError: the output has no JSON form.
    """
    state: dict[str, JsonValue] = {"input": deepcopy(run.input)}
    try:
        state["output"] = plain(run.output)
    except ValueError as e:
        raise ValueError(f"the output has no JSON form: {e}") from e
    if run.has_expected_output:
        state["expectedOutput"] = deepcopy(run.expected_output)
    state["steps"] = [{name: part for name, part in step.to_json().items() if name != "ms"} for step in run.steps]
    return state


async def decisions_about(
    judge: Judge, state: JsonValue, questions: Sequence[Question], seconds: float
) -> dict[str, Decision]:
    """One for each question, by its id. The judge has so many seconds.

    Raises:
        ValueError: there is none; the message is the reason, then a colon and details if there are any.
    """
    found = await ended(call(judge.invoke, state, questions), seconds)
    if found.complaint is not None:
        raise ValueError(f"timeout: no answer in {seconds:g} s" if found.late else found.complaint)
    if isinstance(found.value, Fallback):
        detail = f": {found.value.detail}" if found.value.detail else ""
        raise ValueError(f"{found.value.reason}{detail}")
    try:
        return _checked(questions, found.value)
    except ValueError:
        raise
    except Exception as e:  # parts of other types than a decision has
        raise ValueError(f"parse-error: {type(e).__name__}: {e}") from e


def _checked(questions: Sequence[Question], reply: Any) -> dict[str, Decision]:
    """Our own judges check their replies; this checks those of judges that people write."""
    decisions = reply if isinstance(reply, list | tuple) and all(isinstance(each, Decision) for each in reply) else ()
    found: dict[str, Decision] = {decision.id: decision for decision in decisions}
    if len(found) != len(decisions) or found.keys() != {question.id for question in questions}:
        raise ValueError(f"parse-error: not one decision for each question: {shown(reply)}")
    for question in questions:
        try:
            _check(question, found[question.id].probabilities)
        except ValueError as e:
            raise ValueError(f"parse-error: decision {question.id!r}: {e}") from e
    return found


def _check(question: Question, probabilities: Mapping[str, float]) -> None:
    if probabilities.keys() != question.answers.keys():
        raise ValueError(
            f"its probabilities are of {shown(list(probabilities))}, not of {shown(list(question.answers))}"
        )
    if not all(map(is_share, probabilities.values())):
        raise ValueError(f"a probability is from 0 to 1: {shown(dict(probabilities))}")
    check_total(probabilities.values())


async def _decided(
    scorer: JudgeScorer, decision: Decision, state: JsonValue, judge: Judge, seconds: float
) -> CheckResult:
    try:
        first = judged(scorer.rule, decision, judge.thresholds)
    except Exception as e:
        return CheckResult.failed(clean(f"judge: parse-error: {type(e).__name__}: {e}"))
    if not first.unsure or judge.escalate is None:
        return first.result
    return await ask_again(scorer, first.result, state, judge.escalate, seconds)
