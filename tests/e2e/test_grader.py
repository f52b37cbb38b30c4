"""Custom evaluators through the grader and the real sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.core.case import Case
from trunchray.core.trial import ToolCall, Trace, Usage, Verdict
from trunchray.errors import EvaluatorError
from trunchray.evaluators.grade import Grader

CODE = b"""
export const mirror = { evaluate: (given) => ({ passed: true, score: 0.5, message: "seen", details: given }) };
export const strict = { evaluate: async ({ output, caseData }) => output === caseData.want };
export const broken = { evaluate: () => { throw new TypeError("no such field"); } };
"""

KEYS = ("mirror", "strict", "broken")


@pytest.fixture
async def grader() -> AsyncIterator[Grader]:
    sandbox = EvaluatorSandbox(slots=2)
    yield Grader({f"e/eval.ts#{name}": SandboxModule(name, CODE, name) for name in KEYS}, sandbox)
    await sandbox.close()


def case(*names: str) -> Case:
    checks: dict[str, Any] = {name: {"kind": "custom", "evaluatorKey": f"e/eval.ts#{name}"} for name in names}
    return Case.model_validate(
        {
            "id": "a",
            "evalId": "e",
            "title": "A",
            "input": {"prompt": "?"},
            "data": {"want": "yes"},
            "checks": checks,
            "source": {"path": "e/eval.ts"},
        }
    )


async def test_a_function_sees_what_it_was_promised(grader: Grader) -> None:
    """The object arrives in JavaScript as it was built, and what the function says becomes the verdict."""
    call = ToolCall(tool_call_id="1", tool_name="f", input={"b": 1, "a": "\u2028"}, error="refused")
    trace = Trace(output="héllo 😀", tool_calls=(call,), usage=Usage(input_tokens=3, output_tokens=4))
    verdict = await grader.grade(case("mirror"), trace)
    assert verdict == Verdict(
        passed=True,
        score=0.5,
        message="seen",
        details={
            "output": "héllo 😀",
            "caseData": {"want": "yes"},
            "toolCalls": [{"toolCallId": "1", "toolName": "f", "input": {"b": 1, "a": "\u2028"}, "error": "refused"}],
            "normalizedToolCalls": [{"toolName": "f", "arguments": {"a": "\u2028", "b": 1}}],
            "finishReason": "stop",
            "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        },
    )


async def test_custom_checks_combine(grader: Grader) -> None:
    """Two functions on one case both have to pass."""
    assert (await grader.grade(case("mirror", "strict"), Trace(output="yes"))).passed
    verdict = await grader.grade(case("mirror", "strict"), Trace(output="no"))
    assert (verdict.passed, verdict.score, verdict.message) == (False, 0.25, "strict: failed")


async def test_a_throwing_function_is_no_failed_verdict(grader: Grader) -> None:
    """It is an evaluator failure that quotes the error."""
    with pytest.raises(EvaluatorError, match="no such field") as raised:
        await grader.grade(case("broken"), Trace(output="yes"))
    assert raised.value.type == "threw"
