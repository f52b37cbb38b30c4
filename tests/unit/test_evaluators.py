"""Grading a case: several checks together, the custom function's input, and what identifies a grader."""

from __future__ import annotations

from typing import Any

import pytest

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.core.case import Case
from trunchray.core.digest import digest, sha256
from trunchray.core.trial import ToolCall, Trace, Usage, Verdict
from trunchray.errors import EvaluatorError
from trunchray.evaluators.custom import given
from trunchray.evaluators.grade import Grader, combined

KEY = "e/eval.ts#evaluate"
YES = {"kind": "exact", "expected": "yes"}
CUSTOM = {"kind": "custom", "evaluatorKey": KEY}
NO_CALLS = {"kind": "tool_call_syntax", "version": 1, "alternatives": [{"calls": []}]}
CALL = ToolCall(tool_call_id="1", tool_name="f", input={})


def case(id: str = "a", **checks: Any) -> Case:
    return Case.model_validate(
        {
            "id": id,
            "evalId": "e",
            "title": "A",
            "input": {"prompt": "?"},
            "data": {"want": 1},
            "checks": checks,
            "source": {"path": "e/eval.ts"},
        }
    )


def grader(code: bytes | None = None) -> Grader:
    modules = {} if code is None else {KEY: SandboxModule("k", code, "evaluate")}
    return Grader(modules, EvaluatorSandbox(slots=1))


async def test_one_check_is_its_own_verdict() -> None:
    """A case with one check gets that check's verdict as it is."""
    verdict = await grader().grade(case(primary=YES), Trace(output="no"))
    assert verdict == Verdict(passed=False, score=0, message='the answer is "no", not "yes"')


async def test_several_checks_all_have_to_pass() -> None:
    """The score is their mean, the message names those that failed, and details hold each by its name."""
    checked = case(text=YES, tools=NO_CALLS, some={"kind": "non_empty"})
    trace = Trace(output="yes", tool_calls=(CALL,))
    verdict = await grader().grade(checked, trace)
    assert (verdict.passed, verdict.score) == (False, pytest.approx(2 / 3))
    assert verdict.message == 'tools: alternatives[0]: toolCalls[0] ("f") is one call too many'
    assert isinstance(verdict.details, dict)
    assert verdict.details["text"] == {"passed": True, "score": 1.0, "message": None, "details": None}
    assert list(verdict.details) == ["text", "tools", "some"]
    assert (await grader().grade(checked, Trace(output="yes"))).passed


def test_a_silent_failure_among_several_is_named() -> None:
    """A check that failed without a message is still named."""
    verdict = combined({"a": Verdict(passed=False, score=0.5), "b": Verdict(passed=True, score=1)})
    assert (verdict.message, verdict.score) == ("a: failed", 0.75)


async def test_a_missing_module_is_an_evaluator_error() -> None:
    """A custom check whose module is not in the release is no failed verdict, and says what to do."""
    with pytest.raises(EvaluatorError, match=r"e/eval\.ts#evaluate.*compile it again"):
        await grader().grade(case(primary=CUSTOM), Trace(output=""))


async def test_a_crash_of_a_check_is_an_evaluator_error() -> None:
    """Whatever goes wrong while grading is named as grading, with the check and the case."""
    broken = Trace.model_construct(output=None)
    with pytest.raises(EvaluatorError, match="check 'primary' of case 'a'"):
        await grader().grade(case(primary=YES), broken)


def test_evaluator_digest_is_of_what_decides() -> None:
    """For a check as data it is the data's digest, for a custom one the module's, for several one over all names."""
    one = grader(b"code")
    exact = case("a", primary=YES).checks["primary"]
    assert one.evaluator_digest(case("a", primary=YES)) == digest(exact)
    assert one.evaluator_digest(case("b", other=CUSTOM)) == sha256(b"code")
    both = one.evaluator_digest(case("c", primary=YES, other=CUSTOM))
    assert both == digest({"primary": digest(exact), "other": sha256(b"code")})
    assert one.evaluator_digest(case("d", primary={**YES, "expected": "no"})) != digest(exact)


def test_defaults_do_not_change_the_digest() -> None:
    """Writing out what is the default anyway gives the same digest."""
    short = {"kind": "answer_bank", "answers": ["a"]}
    assert grader().evaluator_digest(case(p=short)) == grader().evaluator_digest(
        case(p={**short, "forbiddenAnswers": []})
    )


def test_what_a_custom_function_gets() -> None:
    """Exactly the promised fields: raw calls as they were, normalised ones with sorted keys, and summed usage."""
    calls = (
        ToolCall(tool_call_id="1", tool_name="f", input={"b": [{"z": 1, "a": 2}], "a": None}, output={"ok": True}),
        ToolCall(tool_call_id="2", tool_name="g", input='{"broken', error="arguments are not JSON"),
        ToolCall(tool_call_id="3", tool_name="h", input=[1]),
    )
    usage = Usage(input_tokens=5, output_tokens=2, cached_input_tokens=0)
    out: Any = given(case(primary=CUSTOM), Trace(output="hi", finish_reason="length", tool_calls=calls, usage=usage))
    assert out == {
        "output": "hi",
        "caseData": {"want": 1},
        "toolCalls": [
            {"toolCallId": "1", "toolName": "f", "input": {"b": [{"z": 1, "a": 2}], "a": None}, "output": {"ok": True}},
            {"toolCallId": "2", "toolName": "g", "input": '{"broken', "error": "arguments are not JSON"},
            {"toolCallId": "3", "toolName": "h", "input": [1]},
        ],
        "normalizedToolCalls": [{"toolName": "f", "arguments": {"a": None, "b": [{"a": 2, "z": 1}]}}],
        "finishReason": "length",
        "usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cachedInputTokens": 0},
    }
    assert list(out["normalizedToolCalls"][0]["arguments"]) == ["a", "b"]
    assert list(out["normalizedToolCalls"][0]["arguments"]["b"][0]) == ["a", "z"]


def test_unknown_usage_is_a_number_for_custom_functions() -> None:
    """When the provider is silent, the three promised counts are 0 and the optional ones absent; no data is null."""
    silent = case(primary=CUSTOM).model_copy(update={"data": None})
    out = given(silent, Trace(output=""))
    assert out["usage"] == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert out["caseData"] is None


def test_keys_sort_as_in_javascript() -> None:
    """Characters outside the basic plane sort by their surrogates, as Array.prototype.sort does."""
    call = ToolCall(tool_call_id="1", tool_name="f", input={"ﬀ": 1, "😀": 2, "a": 3})
    out: Any = given(case(primary=CUSTOM), Trace(output="", tool_calls=(call,)))
    assert list(out["normalizedToolCalls"][0]["arguments"]) == ["a", "😀", "ﬀ"]
